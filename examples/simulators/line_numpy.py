"""A straight line with noise, x_j = shift + slope t_j + 0.5 n_j, t = -1, 0, 1, for whole blocks of rows: two .npy arrays
come in (seeds [n], theta [n, 2]), one goes out (x [n, 3])."""

import sys

import numpy as np

while sys.stdin.buffer.peek(1):
    seeds = np.lib.format.read_array(sys.stdin.buffer)
    theta = np.lib.format.read_array(sys.stdin.buffer)
    noise = np.stack([np.random.default_rng(seed).normal(0.0, 0.5, 3) for seed in seeds])
    x = theta[:, :1] + theta[:, 1:] * np.array([-1.0, 0.0, 1.0]) + noise
    np.lib.format.write_array(sys.stdout.buffer, x)
    sys.stdout.buffer.flush()
