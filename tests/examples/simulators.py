#!/usr/bin/env python3
"""Builds the example simulators and runs `nrec infer` on each; the posterior must be the known one.

    simulators.py NREC SOURCE [NAME ...]

What needs a compiler or a package that is not there says SKIPPED; when all are skipped the exit code is 77.
"""

import json
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

X_O = (0.3, 0.8, 1.6)
VARIANCE = 0.25
# Conjugate: precision 1 + n / variance with n = 3 for shift and sum t^2 = 2 for slope.
EXACT = {
    "shift": (sum(X_O) / VARIANCE / 13, 1 / math.sqrt(13)),
    "slope": ((X_O[2] - X_O[0]) / VARIANCE / 9, 1 / 3),
}
MEAN_TOLERANCE = 0.25  # of the exact sd: a small network on 4,000 rows
SD_TOLERANCE = 0.2     # relative

BUILD = {
    "c": ["cc", "-shared", "-fPIC", "-O2", "-I", "{source}/include", "-o", "libline.so", "line.c", "-lm"],
    "cxx": ["c++", "-O2", "-o", "line", "line.cc"],
    "fortran": ["gfortran", "-O2", "-o", "line_f90", "line.f90"],
    "numpy": ["python3", "-c", "import numpy"],
    "python": [],
    "shell": [],
}


def built(name, folder, source):
    command = [word.format(source=source) for word in BUILD[name]]
    if not command:
        return True
    if shutil.which(command[0]) is None:
        print(f"{name}: SKIPPED: {command[0]} is not installed")
        return False
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode == 0:
        return True
    if name == "numpy":
        print("numpy: SKIPPED: python3 has no numpy")
        return False
    raise SystemExit(f"{name}: does not compile: {done.stderr}")


def check(name, nrec, folder):
    done = subprocess.run([nrec, "infer", f"{name}.toml", "--json", "--quiet"], cwd=folder, capture_output=True,
                          text=True)
    if done.returncode != 0:
        print(f"{name}: FAILED: exit code {done.returncode}\n{done.stderr}")
        return False
    record = json.loads(done.stdout)
    good = record["simulations.num_rows"] == 4000
    for i, parameter in enumerate(record["marginals.name"]):
        mean, sd = record["marginals.mean"][i], record["marginals.sd"][i]
        exact_mean, exact_sd = EXACT[parameter]
        off, ratio = (mean - exact_mean) / exact_sd, sd / exact_sd
        good = good and abs(off) < MEAN_TOLERANCE and abs(ratio - 1) < SD_TOLERANCE
        print(f"{name}: {parameter} {mean:.4f} +- {sd:.4f}, exact {exact_mean:.4f} +- {exact_sd:.4f} "
              f"(mean off by {off:+.3f} sd, sd ratio {ratio:.3f})")
    warnings = [line for line in done.stderr.splitlines() if "reproduc" in line or "same" in line]
    if warnings:
        print(f"{name}: FAILED: {warnings}")
    if not good:
        print(f"{name}: FAILED")
    return good and not warnings


def main():
    nrec, source = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve()
    names = sys.argv[3:] or list(BUILD)
    folder = Path(tempfile.mkdtemp(prefix="nrec_examples_"))
    shutil.copytree(source / "examples" / "simulators", folder, dirs_exist_ok=True)
    run = [name for name in names if built(name, folder, source)]
    results = [check(name, nrec, folder) for name in run]
    shutil.rmtree(folder)
    if not run:
        sys.exit(77)
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
