"""Samplers of the package sbi (public posterior classes) on the log ratio of contender_torch.

Slice sampling has nrec's chains, warm-up and thinning ("as nrec"), and sbi's own defaults ("defaults"). Importance resampling
evaluates as many prior draws as nrec does. Rejection and NUTS have sbi's defaults.
"""
import torch
from sbi.inference import ImportanceSamplingPosterior, MCMCPosterior, RejectionPosterior
from sbi.utils import mcmc_transform

from contender_torch import CHAINS, STARTS, THINNING, WARMUP_SWEEPS

NUTS_CHAINS, NUTS_WARMUP = 1, 150  # more chains are more processes: one at a time costs the same processor time


class Potential:
    """log r + log prior of a batch of thetas; counts them."""

    def __init__(self, log_ratio):
        self.log_ratio, self.prior, self.evaluations = log_ratio, log_ratio.prior.distribution(), 0

    def __call__(self, theta, x_o):
        theta = theta.float()
        self.evaluations += theta.numel() // self.log_ratio.dim
        theta = theta.reshape(-1, self.log_ratio.dim)
        inside = self.prior.support.check(theta)
        safe = torch.where(inside[:, None], theta, torch.zeros_like(theta)) if self.log_ratio.prior.is_box else theta
        value = self.log_ratio(safe) + self.prior.log_prob(safe)
        return torch.where(inside & ~value.isnan(), value, -torch.inf)  # a float32 theta may lie on the box's edge


def mcmc(log_ratio, **settings):
    def draw(count, seed):
        torch.manual_seed(seed)
        potential = Potential(log_ratio)
        posterior = MCMCPosterior(potential, proposal=potential.prior, theta_transform=mcmc_transform(potential.prior),
                                  **settings)
        posterior.set_default_x(torch.zeros(1, 1))  # the potential has its observation
        return posterior.sample((count,), show_progress_bars=False).numpy(), potential.evaluations
    return draw


def rejection(log_ratio):
    def draw(count, seed):
        torch.manual_seed(seed)
        potential = Potential(log_ratio)
        posterior = RejectionPosterior(potential, proposal=potential.prior)
        posterior.set_default_x(torch.zeros(1, 1))
        return posterior.sample((count,), show_progress_bars=False).numpy(), potential.evaluations
    return draw


def importance(log_ratio, oversampling):
    def draw(count, seed):
        torch.manual_seed(seed)
        potential = Potential(log_ratio)
        posterior = ImportanceSamplingPosterior(potential, proposal=potential.prior, method="sir",
                                                oversampling_factor=oversampling)
        posterior.set_default_x(torch.zeros(1, 1))
        with torch.no_grad():
            return posterior.sample((count,), oversampling_factor=oversampling).numpy(), potential.evaluations
    return draw


def samplers(log_ratio, oversampling):
    """(nrec's word for the method, name of the contender, draw(count, seed) -> theta [count, D], evaluations)"""
    return [
        ("slice", "sbi, as nrec", mcmc(log_ratio, method="slice_np_vectorized", num_chains=CHAINS, thin=THINNING,
                                       warmup_steps=WARMUP_SWEEPS, init_strategy="resample",
                                       init_strategy_parameters={"num_candidate_samples": STARTS // CHAINS})),
        ("slice", "sbi, defaults", mcmc(log_ratio, method="slice_np_vectorized")),
        ("nuts", "sbi, pyro", mcmc(log_ratio, method="nuts_pyro", num_chains=NUTS_CHAINS, warmup_steps=NUTS_WARMUP, thin=1)),
        ("rejection", "sbi", rejection(log_ratio)),
        ("importance", "sbi", importance(log_ratio, oversampling)),
    ]
