#!/usr/bin/env python3
"""Kills a campaign's coordinator or its workers with SIGKILL at random moments and looks for lost or doubled rows.

    bench/campaign/kill_campaign.py --nrec build/release/nrec --kills 300 --out results/campaign_kills.json

Each round starts `nrec simulate` on one growing campaign, waits a random time, and kills either the program itself or one
of its simulator processes. After a kill of the program, what it had last acknowledged (its progress file) is compared with
what the database holds, and no simulator may be left running. In the end the campaign is completed and compared, value by
value, with one that was never disturbed.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROBLEM = """[parameters]
mass = {{ prior = "uniform", low = 0, high = 5 }}
rate = {{ prior = "normal", mean = 1, sd = 2 }}

[simulations]
command = "{command}"
{line}num_simulations = {rows}
workers = 4
"""
LINES = 'python3 sim.py kill_campaign_{mark}'
PYTHON = """import sys, time
for line in sys.stdin:
    row, seed, mass, rate = line.split()
    if int(row) % 16 == 0:
        time.sleep(0.001)
    print(row, repr(float(mass) + float(rate)), seed, flush=True)
"""
RUN = 'sh sim.sh {{mass}} {{rate}} {{seed}} kill_campaign_{mark}'
SH = 'sleep 0.01\nawk -v m="$1" -v r="$2" -v s="$3" \'BEGIN { printf "%.17g %.17g\\n", m + r, s }\'\n'


def processes(mark):
    """Numbers of the living processes whose command line holds `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if mark.encode() in words and state != "Z":
                found.append(int(entry.name))
    return found


def stored(folder):
    """Row number -> bytes of all its databases; opening them recovers what a killed writer left."""
    rows = {}
    for database in sorted(Path(folder).glob("rows-*.sqlite")):
        with contextlib.closing(sqlite3.connect(database)) as connection:
            for row, status, theta, x in connection.execute("select row, status, theta, x from rows"):
                assert row not in rows, f"row {row} twice"
                rows[row] = (status, theta, x)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nrec", default="build/release/nrec")
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--protocol", choices=["lines", "run"], default="lines")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    nrec = str(Path(options.nrec).resolve())
    folder = Path(tempfile.mkdtemp(prefix="nrec_kill_campaign_"))
    mark = f"{os.getpid()}_{options.seed}"
    (folder / "sim.py").write_text(PYTHON)
    (folder / "sim.sh").write_text(SH)
    is_lines = options.protocol == "lines"
    command = (LINES if is_lines else RUN).format(mark=mark)
    line = 'line = "{row} {seed} {theta}"\n' if is_lines else ""
    (folder / "p.toml").write_text(PROBLEM.format(command=command.replace("{{", "{").replace("}}", "}"), line=line,
                                                  rows=10**8))
    start = [nrec, "simulate", "p.toml", "--quiet"]
    own_kills = worker_kills = lost = left_running = 0
    acknowledged = 0
    began = time.time()
    while own_kills + worker_kills < options.kills:
        program = subprocess.Popen(start, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.05, 1.2))
        while chance.random() < 0.5:
            workers = [p for p in processes(f"kill_campaign_{mark}") if p != program.pid]
            if workers:
                try:
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    worker_kills += 1
                except ProcessLookupError:
                    pass
            time.sleep(chance.uniform(0.0, 0.3))
        if program.poll() is not None:
            sys.exit("the program ended by itself: " + program.stderr.read().decode())
        program.kill()
        program.wait()
        own_kills += 1
        time.sleep(0.3)
        left = processes(f"kill_campaign_{mark}")
        left_running += len(left)
        try:
            acknowledged = json.loads((folder / "p_campaign" / "progress-1-of-1.json").read_text())["num_stored"]
        except FileNotFoundError:
            acknowledged = 0
        present = len(stored(folder / "p_campaign")) if (folder / "p_campaign").exists() else 0
        if present < acknowledged:
            lost += acknowledged - present
            print(f"round {own_kills}: {acknowledged} acknowledged, {present} there", file=sys.stderr)
    rows = max(stored(folder / "p_campaign")) + 1
    for name in ("p_campaign", "unbroken"):
        done = subprocess.run([nrec, "simulate", "p.toml", "--quiet", "-n", str(rows), "--out", name], cwd=folder,
                              capture_output=True)
        if done.returncode != 0:
            sys.exit(done.stderr.decode())
    broken, unbroken = stored(folder / "p_campaign"), stored(folder / "unbroken")
    report = {"command": " ".join(sys.argv), "protocol": options.protocol, "kills_of_program": own_kills,
              "kills_of_workers": worker_kills, "rows": rows, "rows_in_the_end": len(broken), "acknowledged_lost": lost,
              "simulators_left_running": left_running, "failed_rows": sum(r[0] != 0 for r in broken.values()),
              "equal_to_unbroken": len(broken) == rows and broken == unbroken, "seconds": round(time.time() - began, 1)}
    print(json.dumps(report))
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=1) + "\n")
    shutil.rmtree(folder)
    if lost or left_running or not report["equal_to_unbroken"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
