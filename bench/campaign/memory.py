#!/usr/bin/env python3
"""Memory and speed of a campaign's coordinator over many rows of a fast program that answers line after line.

    bench/campaign/memory.py --nrec build/release/nrec --rows 1000000 --out results/campaign_memory.json

The resident memory of nrec is read from /proc every 0.1 s. "growth" is the median over the last fifth of the rows by that over
the second fifth, less one: the first rows fill what is kept at hand.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROBLEM = """[parameters]
shift = {{ prior = "normal", mean = 0, sd = 1 }}
slope = {{ prior = "normal", mean = 0, sd = 1 }}
[simulations]
command = "./line"
line = "{{row}} {{seed}} {{theta}}"
num_simulations = {rows}
workers = {workers}
"""
PROGRAM = r"""
#include <stdio.h>
int main(void) {
  unsigned long long row;
  unsigned seed;
  double shift, slope;
  while (scanf("%llu %u %lf %lf", &row, &seed, &shift, &slope) == 4) {
    printf("%llu %.17g %.17g %u\n", row, shift + slope, shift - slope, seed);
    fflush(stdout);
  }
  return 0;
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nrec", default="build/release/nrec")
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="nrec_memory_"))
    (folder / "line.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O2", "-o", "line", "line.c"], cwd=folder, check=True)
    (folder / "p.toml").write_text(PROBLEM.format(rows=options.rows, workers=options.workers))
    began = time.time()
    program = subprocess.Popen([str(Path(options.nrec).resolve()), "simulate", "p.toml", "--quiet"], cwd=folder)
    samples = []
    progress = folder / "p_campaign" / "progress-1-of-1.json"
    while program.poll() is None:
        try:
            status = Path(f"/proc/{program.pid}/status").read_text()
            done = json.loads(progress.read_text())["num_stored"]
            samples.append((done, int(re.search(r"VmRSS:\s+(\d+)", status).group(1))))
        except (OSError, ValueError, AttributeError):
            pass
        time.sleep(0.1)
    seconds = time.time() - began
    early = statistics.median(kb for done, kb in samples if 0.2 <= done / options.rows <= 0.4)
    late = statistics.median(kb for done, kb in samples if 0.8 <= done / options.rows < 1)
    report = {"command": " ".join(sys.argv), "exit_code": program.returncode, "rows": options.rows,
              "workers": options.workers, "seconds": round(seconds, 1), "rows_per_second": round(options.rows / seconds),
              "resident_early_kb": early, "resident_late_kb": late, "growth": round(late / early - 1, 4)}
    print(json.dumps(report))
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=1) + "\n")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
