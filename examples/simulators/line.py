"""A straight line with noise, x_j = shift + slope t_j + 0.5 n_j, t = -1, 0, 1, as a program that answers line after line:
"row seed shift slope" comes in, "row x_1 x_2 x_3" goes out."""

import random
import sys

for line in sys.stdin:
    row, seed, shift, slope = line.split()
    noise = random.Random(int(seed))
    x = [float(shift) + float(slope) * t + noise.gauss(0.0, 0.5) for t in (-1, 0, 1)]
    print(row, *x, flush=True)
