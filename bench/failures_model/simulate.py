#!/usr/bin/env python3
"""theta ~ U(0, 1), x = theta + N(0, 0.1); the simulator fails (nan) when x > 0.8. Writes a .csv.
usage: simulate.py SEED ROWS FILE"""
import random
import sys

seed, rows, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
stream = random.Random(seed)
with open(path, "w", encoding="ascii") as file:
    file.write("theta,x\n")
    for _ in range(rows):
        theta = stream.random()
        x = stream.gauss(theta, 0.1)
        file.write(f"{theta!r},{'nan' if x > 0.8 else repr(x)}\n")
