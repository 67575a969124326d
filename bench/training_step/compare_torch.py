#!/usr/bin/env python3
"""The same training step in PyTorch: first the same loss and gradient, then times in turn with nrec's program.

    compare_torch.py --program build/bench/bench/training_step [--threads 2] [--repeats 5] [--quick]

Prints one JSON object a line, those of the program and `torch-<norm>` with the ratio of the medians. PyTorch gets what makes it fast here: the
inputs of all pairs as one matrix, shared contrastive sets as in nrec, no Python in the loop over pairs, warm-up steps, and its best
number of threads when --threads is not given. Adam is not part of either step.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

BATCH_NORM_EPS, LAYER_NORM_EPS = 1e-3, 1e-5
MOST_DIFFERENCE = 1e-3  # of gradients, over the largest element: float32 sums in another order


def build_network(torch, arrays, norm):
    """The residual network of pairs with the weights of the dump."""
    blocks = 1 + max(int(name.split(".")[2]) for name in arrays if name.startswith("network.blocks."))
    parameters = {name[len("network."):]: torch.tensor(arrays[name], dtype=torch.float32, requires_grad=True)
                  for name in arrays if name.startswith("network.") and "running" not in name}

    def normalised(z, prefix):
        if norm == "none":
            return z
        weight, bias = parameters[prefix + ".gain"], parameters[prefix + ".shift"]
        if norm == "layer":
            return torch.nn.functional.layer_norm(z, z.shape[1:], weight, bias, LAYER_NORM_EPS)
        return torch.nn.functional.batch_norm(z, None, None, weight, bias, True, 0.1, BATCH_NORM_EPS)

    def network(theta, x):
        linear = torch.nn.functional.linear
        z = linear(theta, parameters["input.theta.weight"], parameters["input.bias"]) + linear(x, parameters["input.x.weight"])
        for i in range(blocks):
            p = f"blocks.{i}."
            inner = linear(torch.relu(normalised(z, p + "norm1")), parameters[p + "linear1.weight"], parameters[p + "linear1.bias"])
            z = z + linear(torch.relu(normalised(inner, p + "norm2")), parameters[p + "linear2.weight"], parameters[p + "linear2.bias"])
        return z @ parameters["output.weight"] + parameters["output.bias"]

    return network, parameters


def nre_c_loss(torch, logits, gamma=1.0):
    """Column 0 is the own theta; the marginal term uses columns 1..K, the joint term 0..K-1."""
    k = logits.shape[1] - 1
    log_k, log_gamma = torch.log(torch.tensor(float(k))), torch.log(torch.tensor(gamma))

    def denominator(h):
        return torch.logaddexp(log_k, log_gamma + torch.logsumexp(h, 1))

    marginal, joint = logits[:, 1:], logits[:, :-1]
    return -((log_k - denominator(marginal)) / (1 + gamma)
             + gamma / (1 + gamma) * (log_gamma + joint[:, 0] - denominator(joint))).mean()


def torch_step(torch, arrays, norm):
    """A function that makes one step; returns the loss. Gradients are in the parameters afterwards."""
    network, parameters = build_network(torch, arrays, norm)
    candidates = torch.tensor(arrays["candidates"]).long()
    theta, x = torch.tensor(arrays["theta"], dtype=torch.float32), torch.tensor(arrays["x"], dtype=torch.float32)
    rows, columns = candidates.shape

    def step():
        for parameter in parameters.values():
            parameter.grad = None
        logits = network(theta[candidates.reshape(-1)], x.repeat_interleave(columns, 0)).reshape(rows, columns)
        loss = nre_c_loss(torch, logits)
        loss.backward()
        return loss.item()

    return step, parameters


def difference(arrays, parameters, loss):
    import numpy as np
    pairs = [(parameters[name[len("gradient."):]].grad.numpy(), arrays[name])
             for name in arrays if name.startswith("gradient.") and name[len("gradient."):] in parameters]
    largest = max(np.abs(theirs).max() for _, theirs in pairs)
    return {"gradient": float(max(np.abs(ours - theirs.reshape(ours.shape)).max() for ours, theirs in pairs) / largest),
            "loss": abs(loss - float(arrays["loss"][0])) / abs(float(arrays["loss"][0]))}


def program_line(program, setting, threads, repeats, dump=None):
    words = [program, "--only", setting, "--threads", str(threads), "--repeats", str(repeats)]
    if dump:
        words += ["--dump", dump]
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    return json.loads(lines[-1])


def compare(torch, np, program, setting, threads, repeats):
    """One setting: equal results first, then both in turn."""
    norm = setting.split(",")[-1]
    with tempfile.TemporaryDirectory() as folder:
        dump = os.path.join(folder, "step.npz")
        program_line(program, setting, threads, 1, dump)
        arrays = dict(np.load(dump))
    step, parameters = torch_step(torch, arrays, norm)
    found = difference(arrays, parameters, step())
    if found["gradient"] > MOST_DIFFERENCE or found["loss"] > MOST_DIFFERENCE:
        raise SystemExit(f"{setting}: PyTorch and nrec differ: {found}; nothing is timed")
    ours, theirs = [], []
    for _ in range(repeats):
        line = program_line(program, setting, threads, 1)
        ours.append(line["ms"])
        start = time.perf_counter()
        step()
        theirs.append(1e3 * (time.perf_counter() - start))
    line["ms"], line["min_ms"] = statistics.median(ours), min(ours)
    line["gflops"] *= ours[-1] / line["ms"]
    line["share"] = line["gflops"] / line["peak_gflops"] if line["peak_gflops"] else 0.0
    print(json.dumps(line), flush=True)
    hidden, blocks, num_classes, batch = (int(word) for word in setting.split(",")[:4])
    ms = statistics.median(theirs)
    print(json.dumps({"variant": f"torch-{norm}", "hidden": hidden, "blocks": blocks, "num_classes": num_classes, "batch": batch,
                      "threads": torch.get_num_threads(), "ms": ms, "min_ms": min(theirs),
                      "gflops": 12e-6 * blocks * hidden * hidden * batch * (num_classes + 1) / ms,
                      "ratio": ms / line["ms"], "ratio_of_minima": min(theirs) / min(ours), "gradient_difference": found["gradient"],
                      "loss_difference": found["loss"], "torch": torch.__version__,
                      "cpu_capability": torch.backends.cpu.get_cpu_capability()}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="K = 9 only")
    arguments = parser.parse_args()
    try:
        import numpy as np
        import torch
    except ImportError as error:
        print(f"compare_torch.py: SKIPPED: {error}; install numpy and torch to compare", file=sys.stderr)
        return 0
    torch.set_num_threads(arguments.threads)
    sizes = ["50,2,9,1024", "128,3,9,1024"] + ([] if arguments.quick else ["128,3,99,1024"])
    for size in sizes:
        for norm in ("none", "layer", "batch"):
            compare(torch, np, arguments.program, f"{size},{norm}", arguments.threads, arguments.repeats)
    return 0


if __name__ == "__main__":
    sys.exit(main())
