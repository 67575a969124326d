#!/usr/bin/env python3
"""The same training step in PyTorch: first the same loss and gradient, then times in turn with nrec's program.

    compare_torch.py --program build/bench/bench/training_step [--isa avx512,amx] [--threads 2] [--torch-threads 1] [--repeats 5] [--quick | --only H,R,K,B,NORM]

Prints one JSON object a line: those of the program, one for each --isa, and PyTorch's, with `ratios`: its median over theirs. PyTorch gets what
makes it fast here: the inputs of all pairs as one matrix, no Python in the loop over pairs, warm-up steps. `torch-<norm>` shares the
contrastive sets as nrec does; `torch-<norm>-two_passes` evaluates the pairs of either term of the loss in a pass of its own, as
the published code does (with batch norm each pass then has its own statistics, so its gradient is another one and is not compared).
Adam is not part of any step.
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


def nre_c_loss(torch, marginal, joint, gamma=1.0):
    """Logits [B, K] of contrastive thetas, and of the own theta (column 0) beside K - 1 of them."""
    k = marginal.shape[1]
    log_k, log_gamma = torch.log(torch.tensor(float(k))), torch.log(torch.tensor(gamma))

    def denominator(h):
        return torch.logaddexp(log_k, log_gamma + torch.logsumexp(h, 1))

    return -((log_k - denominator(marginal)) / (1 + gamma)
             + gamma / (1 + gamma) * (log_gamma + joint[:, 0] - denominator(joint))).mean()


def torch_step(torch, arrays, norm, two_passes):
    """A function that makes one step; returns the loss. Gradients are in the parameters afterwards."""
    network, parameters = build_network(torch, arrays, norm)
    candidates = torch.tensor(arrays["candidates"]).long()
    theta, x = torch.tensor(arrays["theta"], dtype=torch.float32), torch.tensor(arrays["x"], dtype=torch.float32)
    rows = candidates.shape[0]

    def logits_of(chosen):
        return network(theta[chosen.reshape(-1)], x.repeat_interleave(chosen.shape[1], 0)).reshape(rows, chosen.shape[1])

    def step():
        for parameter in parameters.values():
            parameter.grad = None
        if two_passes:
            loss = nre_c_loss(torch, logits_of(candidates[:, 1:]), logits_of(candidates[:, :-1]))
        else:
            logits = logits_of(candidates)
            loss = nre_c_loss(torch, logits[:, 1:], logits[:, :-1])
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


def cpu_capability(torch):
    """What PyTorch chose; releases before 2.0 cannot say it, so there what they were told."""
    backend = getattr(torch.backends, "cpu", None)
    return backend.get_cpu_capability() if backend else os.environ.get("ATEN_CPU_CAPABILITY", "not told")


def program_line(program, setting, isa, threads, repeats, dump=None):
    words = [program, "--only", setting, "--isa", isa, "--threads", str(threads), "--repeats", str(repeats)]
    if dump:
        words += ["--dump", dump]
    lines = map(json.loads, subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines())
    return next(line for line in lines if "variant" in line and not line["variant"].startswith("onednn"))


def compare(torch, np, program, setting, isas, threads, repeats):
    """One setting: equal results first, then all in turn."""
    norm = setting.split(",")[-1]
    with tempfile.TemporaryDirectory() as folder:
        dump = os.path.join(folder, "step.npz")
        program_line(program, setting, isas[0], threads, 1, dump)
        arrays = dict(np.load(dump))
    steps, differences = {}, {}
    for name, two_passes in ((f"torch-{norm}", False), (f"torch-{norm}-two_passes", True)):
        steps[name], parameters = torch_step(torch, arrays, norm, two_passes)
        found = difference(arrays, parameters, steps[name]())
        differences[name] = None if two_passes and norm == "batch" else found
        if differences[name] and max(found.values()) > MOST_DIFFERENCE:
            raise SystemExit(f"{setting}: {name} and nrec differ: {found}; nothing is timed")
    lines, times = {}, {name: [] for name in (*isas, *steps)}
    for _ in range(repeats):
        for isa in isas:
            lines[isa] = program_line(program, setting, isa, threads, 1)
            times[isa].append(lines[isa]["ms"])
        together = lines[isas[0]]["steps"]  # as many as the program times together, after one that is not timed
        for name, step in steps.items():
            step()
            start = time.perf_counter()
            for _ in range(together):
                step()
            times[name].append(1e3 * (time.perf_counter() - start) / together)
    for isa, line in lines.items():
        last, line["ms"], line["min_ms"] = line["ms"], statistics.median(times[isa]), min(times[isa])
        line["gflops"] *= last / line["ms"]
        line["share"] = line["gflops"] / line["peak_gflops"] if line["peak_gflops"] else 0.0
        print(json.dumps(line), flush=True)
    hidden, blocks, num_classes, batch = (int(word) for word in setting.split(",")[:4])
    for name in steps:
        ms, found = statistics.median(times[name]), differences[name]
        print(json.dumps({"variant": name, "hidden": hidden, "blocks": blocks, "num_classes": num_classes, "batch": batch,
                          "threads": torch.get_num_threads(), "ms": ms, "min_ms": min(times[name]),
                          "gflops": 12e-6 * blocks * hidden * hidden * batch * (num_classes + 1) / ms,
                          "ratios": {isa: round(ms / line["ms"], 2) for isa, line in lines.items()},
                          "ratios_of_minima": {isa: round(min(times[name]) / line["min_ms"], 2) for isa, line in lines.items()},
                          "gradient_difference": found and found["gradient"], "loss_difference": found and found["loss"],
                          "torch": torch.__version__, "cpu_capability": cpu_capability(torch)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--isa", default="auto", help="one or more, with commas; gradients are compared with the first")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--torch-threads", type=int, help="if others than --threads: second threads help PyTorch little")
    parser.add_argument("--only", help="one setting, H,R,K,B,NORM, as of the program")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="K = 9 only")
    arguments = parser.parse_args()
    try:
        import numpy as np
        import torch
    except ImportError as error:
        print(f"compare_torch.py: SKIPPED: {error}; install numpy and torch to compare", file=sys.stderr)
        return 0
    torch.set_num_threads(arguments.torch_threads or arguments.threads)
    sizes = ["50,2,9,1024", "128,3,9,1024"] + ([] if arguments.quick else ["128,3,99,1024"])
    settings = [arguments.only] if arguments.only else [f"{size},{norm}" for size in sizes for norm in ("none", "layer", "batch")]
    for setting in settings:
        compare(torch, np, arguments.program, setting, arguments.isa.split(","), arguments.threads, arguments.repeats)
    return 0


if __name__ == "__main__":
    sys.exit(main())
