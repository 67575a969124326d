"""A straight line with noise, x_j = shift + slope t_j + 0.5 n_j, t = -1, 0, 1, for whole blocks of rows: two .npy arrays
come in (seeds [n], theta [n, 2]), one goes out (x [n, 3])."""

import io
import sys

import numpy as np


class Input:
    """np.load wants a file in which it can seek; a pipe is none."""

    read = sys.stdin.buffer.read


while sys.stdin.buffer.peek(1):
    seeds = np.lib.format.read_array(Input)
    theta = np.lib.format.read_array(Input)
    noise = np.stack([np.random.default_rng(seed).normal(0.0, 0.5, 3) for seed in seeds])
    frame = io.BytesIO()
    np.save(frame, theta[:, :1] + theta[:, 1:] * np.array([-1.0, 0.0, 1.0]) + noise)
    sys.stdout.buffer.write(frame.getvalue())
    sys.stdout.buffer.flush()
