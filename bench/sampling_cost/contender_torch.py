"""The same log ratio, and samplers on it, in PyTorch: the network of an estimator file (docs/formats/estimator.md).

Samplers are those of the package sbi through its public posterior classes, and slice sampling written for this comparison
(nrec's algorithm: all chains in one call of the network, bookkeeping in arrays), which has no cost of a general tool.
"""
import json
import math
import struct

import numpy as np
import torch

BATCH_NORM_EPS = 1e-3  # docs/methods/ratio_estimation.md
CHAINS, WARMUP_SWEEPS, TUNING_SWEEPS, THINNING, MOST_STEPS, FIRST_WIDTH, STARTS = 100, 250, 50, 10, 1000, 0.01, 100000


def read_estimator(path):
    """Header and arrays of estimator.safetensors."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    about = json.loads(header.pop("__metadata__")["header"])
    arrays = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        kind = {"F32": "<f4", "F64": "<f8"}[entry["dtype"]]
        arrays[name] = torch.from_numpy(np.frombuffer(data[begin:end], kind).reshape(entry["shape"]).copy())
    return about, arrays


class Block(torch.nn.Module):
    def __init__(self, arrays, start, width):
        super().__init__()
        for i in (1, 2):
            norm = torch.nn.BatchNorm1d(width, eps=BATCH_NORM_EPS)
            linear = torch.nn.Linear(width, width)
            norm.load_state_dict({"weight": arrays[f"{start}.norm{i}.gain"], "bias": arrays[f"{start}.norm{i}.shift"],
                                  "running_mean": arrays[f"{start}.norm{i}.running_mean"],
                                  "running_var": arrays[f"{start}.norm{i}.running_variance"],
                                  "num_batches_tracked": torch.tensor(0)})
            linear.load_state_dict({"weight": arrays[f"{start}.linear{i}.weight"],
                                    "bias": arrays[f"{start}.linear{i}.bias"]})
            setattr(self, f"norm{i}", norm)
            setattr(self, f"linear{i}", linear)

    def forward(self, z):
        a = self.linear1(torch.relu(self.norm1(z)))
        return z + self.linear2(torch.relu(self.norm2(a)))


class LogRatio(torch.nn.Module):
    """theta [n, D] -> log ratio [n] for one x_o, float32, evaluation mode; the x side of the input layer is computed once."""

    def __init__(self, path, x_o):
        super().__init__()
        about, arrays = read_estimator(path)
        if about["norm"] != "batch":
            raise SystemExit(f"{path}: norm {about['norm']!r}; this comparison knows batch norm only")
        self.dim, width = about["dim_theta"], about["hidden_features"]
        self.prior = Prior(about)
        x = ((torch.tensor(x_o, dtype=torch.float64) - arrays["x.shift"]) / arrays["x.scale"]).float()
        self.input = torch.nn.Linear(self.dim, width)
        self.input.load_state_dict({"weight": arrays["input.theta.weight"],
                                    "bias": arrays["input.bias"] + arrays["input.x.weight"] @ x})
        self.shift, self.scale = arrays["theta.shift"], arrays["theta.scale"]
        self.blocks = torch.nn.Sequential(*(Block(arrays, f"blocks.{i}", width) for i in range(about["num_blocks"])))
        self.output = torch.nn.Linear(width, 1)
        self.output.load_state_dict({"weight": arrays["output.weight"][None], "bias": arrays["output.bias"]})
        self.eval().requires_grad_(False)

    def of_unbounded(self, u):
        z = (u - self.shift.to(u.dtype)) / self.scale.to(u.dtype)  # theta in double near a bound keeps its digits
        return self.output(self.blocks(self.input(z.float()))).squeeze(-1)

    def forward(self, theta):
        return self.of_unbounded(self.prior.to_unbounded(theta))


class Prior:
    """A uniform box (transform "auto"), or a normal of a diagonal covariance."""

    def __init__(self, about):
        value = lambda i, key: about[f"prior.{i}.value.{key}"]  # noqa: E731
        families = {about[f"prior.{i}.family"] for i in range(about["prior.num_terms"])}
        count = about["prior.num_terms"]
        self.is_box = families == {"uniform"}
        if self.is_box and all(about[f"prior.{i}.transform"] == "auto" for i in range(count)):
            self.low, self.high = (torch.tensor([value(i, key)[0] for i in range(count)]) for key in ("low", "high"))
        elif families == {"normal"}:
            self.mean = torch.tensor([value(i, "mean")[0] for i in range(count)])
            self.sd = torch.tensor([value(i, "sd")[0] for i in range(count)])
        elif families == {"multivariate_normal"} and count == 1:
            self.mean = torch.tensor(value(0, "mean"))
            dim = len(self.mean)
            if "prior.0.value.precision" in about:
                covariance = torch.linalg.inv(torch.tensor(value(0, "precision")).reshape(dim, dim))
            else:
                covariance = torch.tensor(value(0, "covariance")).reshape(dim, dim)
            if (covariance - torch.diag(torch.diag(covariance))).abs().max() > 0:
                raise SystemExit("the prior has a covariance that is not diagonal")
            self.sd = torch.diag(covariance).sqrt()
        else:
            raise SystemExit(f"this comparison knows no prior of {sorted(families)}")

    def distribution(self):
        if self.is_box:
            return torch.distributions.Independent(torch.distributions.Uniform(self.low, self.high), 1)
        return torch.distributions.Independent(torch.distributions.Normal(self.mean, self.sd), 1)

    def to_unbounded(self, theta):
        return torch.log((theta - self.low) / (self.high - theta)) if self.is_box else theta

    def to_constrained(self, u):
        return self.low + (self.high - self.low) * torch.sigmoid(u) if self.is_box else u

    def unbounded_log_prob(self, u):
        """Up to a constant."""
        if self.is_box:
            return (torch.nn.functional.logsigmoid(u) + torch.nn.functional.logsigmoid(-u)).sum(-1)
        return -0.5 * (((u - self.mean) / self.sd) ** 2).sum(-1)


@torch.inference_mode()
def log_ratios(log_ratio, theta, chunk):
    return torch.cat([log_ratio(part) for part in theta.split(chunk)])


@torch.inference_mode()
def slice_by_arrays(log_ratio, num_draws, seed):
    """Coordinate-wise slice sampling as docs/methods/sampling.md describes it. Returns theta [draws, D], evaluations."""
    random = np.random.default_rng(seed)
    torch.manual_seed(seed)
    dim, rows = log_ratio.dim, np.arange(CHAINS)

    def density(u):
        u = torch.from_numpy(u).float()
        return (log_ratio.of_unbounded(u) + log_ratio.prior.unbounded_log_prob(u)).numpy()

    candidates = log_ratio.prior.distribution().sample((STARTS,))
    weights = log_ratios(log_ratio, candidates, 4096).softmax(0)
    u = log_ratio.prior.to_unbounded(candidates[torch.multinomial(weights, CHAINS, True)]).double().numpy()
    current = density(u)
    evaluations = STARTS + CHAINS
    width = np.full((CHAINS, dim), FIRST_WIDTH)
    kept = []
    for sweep in range(WARMUP_SWEEPS + num_draws // CHAINS * THINNING):
        order = random.permuted(np.tile(np.arange(dim), (CHAINS, 1)), axis=1)
        for place in range(dim):
            d = order[:, place]
            w, here = width[rows, d], u[rows, d]
            level = current + np.log(random.random(CHAINS))
            lower = here - w * random.random(CHAINS)
            upper = lower + w
            budget_lower = (random.random(CHAINS) * MOST_STEPS).astype(int)
            budget_upper = MOST_STEPS - 1 - budget_lower
            for bound, step, budget in ((lower, -w, budget_lower), (upper, w, budget_upper)):
                active = rows
                while len(active):
                    points = u[active].copy()
                    points[np.arange(len(active)), d[active]] = bound[active]
                    evaluations += len(active)
                    active = active[(density(points) >= level[active]) & (budget[active] > 0)]
                    bound[active] += step[active]
                    budget[active] -= 1
            active = rows
            while len(active):
                trial = lower[active] + (upper - lower)[active] * random.random(len(active))
                points = u[active].copy()
                points[np.arange(len(active)), d[active]] = trial
                value = density(points)
                evaluations += len(active)
                good = value >= level[active]
                done = active[good]
                u[done, d[done]], current[done] = trial[good], value[good]
                left, short = active[~good], trial[~good]
                below = short < here[left]
                lower[left[below]], upper[left[~below]] = short[below], short[~below]
                active = left
            if sweep <= TUNING_SWEEPS:
                width[rows, d] += (upper - lower - w) / (sweep + 1)
        if sweep >= WARMUP_SWEEPS and (sweep - WARMUP_SWEEPS + 1) % THINNING == 0:
            kept.append(u.copy())
    draws = np.stack(kept, 1).reshape(-1, dim)
    return log_ratio.prior.to_constrained(torch.from_numpy(draws)).numpy(), evaluations
