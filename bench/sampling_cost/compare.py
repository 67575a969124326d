"""What draws and log ratios cost in nrec and in PyTorch on the same network: README.md beside this file.

    python compare.py PROGRAM FOLDER --out results/sampling_cost [--repeats 5] [--only PATTERN] [--threads 1 2]

FOLDER is what prepare.sh made. Every repeat runs the contenders of a case one after the other; a row of OUT.jsonl per run,
a row of OUT.csv per case, number of draws and contender. The log ratios of both are compared first, and draws in standard errors.
Needs torch and sbi; without them nrec is measured alone.
"""
import argparse
import csv
import fnmatch
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

try:
    import sbi
    import torch

    import contender_sbi
    import contender_torch
    VERSIONS = {"torch": torch.__version__.split("+")[0], "sbi": sbi.__version__}
except ImportError as error:
    print(f"nrec alone: {error}", file=sys.stderr)
    torch, VERSIONS = None, {}

PRIOR_DRAWS, LARGEST_DIFFERENCE = 1000000, 1e-4
CHUNKS = (1024, 4096, 16384, 65536, PRIOR_DRAWS)
TASKS = ("slcp", "gaussian_linear")
# Rejection accepts one prior draw in 1e5 on this observation: a share of the draws shows what an evaluation costs there.
REJECTION_SHARE = {"slcp": 1.0, "gaussian_linear": 0.005}
# Prior draws per draw that nrec evaluates before its importance weights are good enough.
OVERSAMPLING = {"slcp": 72, "gaussian_linear": 629}


class Runner:
    def __init__(self, arguments):
        self.arguments, self.rows = arguments, []
        self.scratch = Path(tempfile.mkdtemp())
        self.ratios = {}

    def files(self, task):
        return str(self.arguments.folder / task / "estimator.safetensors"), str(self.arguments.folder / f"{task}.csv")

    def program(self, *words):
        text = subprocess.run([self.arguments.program, *map(str, words)], check=True, capture_output=True, text=True).stdout
        return json.loads(text)

    def nrec(self, task, method, threads, seed, draws):
        return self.program("draws", *self.files(task), method, threads, seed, draws)

    def log_ratio(self, task):
        if task not in self.ratios:
            estimator, observations = self.files(task)
            x_o = np.loadtxt(observations, delimiter=",", max_rows=1)
            self.ratios[task] = contender_torch.LogRatio(estimator, x_o)
        return self.ratios[task]

    def python(self, contender, method, threads, call):
        """call() -> draws or log ratios, evaluations."""
        torch.set_num_threads(threads)
        cpu, wall = time.process_time(), time.perf_counter()
        draws, evaluations = call()
        row = {"contender": contender, "method": method, "threads": threads, "seconds": time.perf_counter() - wall,
               "cpu_seconds": time.process_time() - cpu, "evaluations": evaluations}
        if draws is not None:
            row |= {"draws": len(draws), "mean": draws.mean(0).tolist(), "sd": draws.std(0, ddof=1).tolist()}
        return row

    def keep(self, task, repeat, row):
        row = {"task": task, "repeat": repeat, "load": round(os.getloadavg()[0], 1), **row}
        self.rows.append(row)
        with open(f"{self.arguments.out}.jsonl", "a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{task} {row['method']} {row['contender']} {row['threads']} threads: {row['seconds']:.3f} s, "
              f"cpu {row['cpu_seconds']:.3f} s", file=sys.stderr)

    def draws(self, task, method):
        return round(self.arguments.draws * (REJECTION_SHARE[task] if method == "rejection" else 1))

    def wanted(self, task, method, contender):
        return any(fnmatch.fnmatch(f"{task}/{method}/{contender}", p) for p in self.arguments.only)

    def check_log_ratios(self, task):
        theta_file, ratio_file = self.scratch / "theta.npy", self.scratch / "log_ratio.npy"
        self.program("ratios", *self.files(task), 1, 1, 20000, theta_file, ratio_file)
        theta = torch.from_numpy(np.load(theta_file))
        found = contender_torch.log_ratios(self.log_ratio(task), theta, 4096).double().numpy()
        difference = np.abs(found - np.load(ratio_file)[:, 0])
        print(f"{task}: log ratios of 20,000 prior draws differ by at most {difference.max():.2g}", file=sys.stderr)
        self.keep(task, 0, {"contender": "both", "method": "agreement", "threads": 1, "seconds": 0.0, "cpu_seconds": 0.0,
                            "largest_difference": float(difference.max())})
        if difference.max() > LARGEST_DIFFERENCE:
            raise SystemExit(f"{task}: the networks disagree: {difference.max()}")

    def contenders(self, task, seed):
        """(method, contender, threads) -> a call that measures it."""
        calls = {}
        for threads in self.arguments.threads:
            calls["ratios", "nrec", threads] = (
                lambda t=threads: self.program("ratios", *self.files(task), t, seed, PRIOR_DRAWS))
            for method in ("rejection", "importance", "slice", "nuts", "auto"):
                calls[method, "nrec", threads] = (
                    lambda m=method, t=threads: self.nrec(task, m, t, seed, self.draws(task, m)))
            if torch:
                calls |= self.python_contenders(task, seed, threads)
        return calls

    def python_contenders(self, task, seed, threads):
        ratio = self.log_ratio(task)
        theta = ratio.prior.distribution().sample((PRIOR_DRAWS,))
        calls = {}
        for chunk in CHUNKS:
            calls["ratios", f"torch, chunks of {chunk}", threads] = lambda c=chunk: self.python(
                f"torch, chunks of {c}", "ratios", threads,
                lambda: (None, len(contender_torch.log_ratios(ratio, theta, c))))
        calls["slice", "torch, arrays", threads] = lambda: self.python(
            "torch, arrays", "slice", threads, lambda: contender_torch.slice_by_arrays(ratio, self.arguments.draws, seed))
        for method, name, draw in contender_sbi.samplers(ratio, OVERSAMPLING[task]):
            calls[method, name, threads] = lambda m=method, n=name, d=draw: self.python(
                n, m, threads, lambda: d(self.draws(task, m), seed))
        return calls

    def run(self):
        for repeat in range(1, self.arguments.repeats + 1):
            for task in TASKS:
                calls = {key: call for key, call in self.contenders(task, repeat).items()
                         if self.wanted(task, key[0], key[1])}
                for key in sorted(calls, key=lambda key: key[0]):  # the contenders of a method side by side
                    self.keep(task, repeat, calls[key]())


def least_ess(rows):
    values = [row["least_ess"] for row in rows if row.get("least_ess") is not None]
    return round(statistics.median(values)) if values else ""


def difference_of_means(rows, own):
    """Largest difference of a posterior mean from nrec's in posterior sds: compare before looking at times."""
    values = [abs(a - b) / sd for row in rows if "mean" in row and "mean" in own.get(row["repeat"], {})
              for a, b, sd in zip(row["mean"], own[row["repeat"]]["mean"], own[row["repeat"]]["sd"])]
    return f"{max(values):.3f}" if values else ""


def write_table(rows, path):
    groups = {}
    for row in rows:
        if row["contender"] != "both":
            groups.setdefault((row["task"], row["method"], row["contender"], row["threads"], row.get("draws", "")),
                              []).append(row)
    with open(path, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["task", "method", "contender", "threads", "runs", "draws", "evaluations", "least_ess", "median_seconds",
                      "min_seconds", "median_cpu_seconds", "min_cpu_seconds", "seconds_over_nrec", "cpu_over_nrec",
                      "largest_difference_of_means_in_sd"])
        for (task, method, contender, threads, draws), group in groups.items():
            own = {row["repeat"]: row for row in groups.get((task, method, "nrec", threads, draws), [])}
            ratio = lambda key: (  # noqa: E731
                f"{statistics.median(r[key] / own[r['repeat']][key] for r in group if r['repeat'] in own):.2f}"
                if any(r["repeat"] in own for r in group) else "")
            seconds, cpu = [r["seconds"] for r in group], [r["cpu_seconds"] for r in group]
            evaluations = [r["evaluations"] for r in group if r["evaluations"]]
            out.writerow([task, method, contender, threads, len(group), draws,
                          round(statistics.median(evaluations)) if evaluations else "", least_ess(group),
                          *(f"{value:.4g}" for value in (statistics.median(seconds), min(seconds),
                                                         statistics.median(cpu), min(cpu))),
                          ratio("seconds"), ratio("cpu_seconds"), difference_of_means(group, own)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--draws", type=int, default=10000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of task/method/contender")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    runner = Runner(arguments)
    if torch:
        for task in TASKS:
            runner.check_log_ratios(task)
    runner.run()
    with open(f"{arguments.out}.jsonl") as file:
        write_table([json.loads(line) for line in file], f"{arguments.out}.csv")
    print(json.dumps(VERSIONS), file=sys.stderr)


if __name__ == "__main__":
    main()
