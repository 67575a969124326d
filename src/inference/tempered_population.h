#pragma once

#include <cstddef>
#include <vector>

#include "inference/chain_ensemble.h"
#include "inference/sampling_budget.h"
#include "nrec/core/run_context.h"
#include "nrec/inference/posterior.h"

namespace nrec {

/// Draws from the posterior, all of the same weight, for chains to start from.
struct TemperedPopulation {
  SamplingStatus status = SamplingStatus::complete;  // else why there are none
  std::vector<TemperedPoint> points;                 // some may be copies
  std::vector<double> width;                         // [D] of slice sampling's brackets
  std::size_t num_stages = 0;                        // exponents below 1
  Matrix<double> candidates;                         // [n, D] theta: the prior draws they grew from
};

/// Sequential Monte Carlo from the prior to the posterior: prior x ratio^b with b rising from 0 to 1.
///
/// The first b is the largest at which 100,000 prior draws are worth 1,000 [Kish]; 1,000 systematic draws of them begin. Every
/// later b is the largest at which their weights ratio^(b' - b) are worth half of them; they are resampled and moved by slice
/// sampling and jumps. Where the first b is 1, this is importance resampling. Modes keep the weights that they have while they
/// are still broad, to within about sqrt(1 + stages) / sqrt(1,000).
///
/// Numerics a pure function of the seed, whatever the number of threads; ends after at most some 1,000 stages
/// Source   [DelMoral2006]
TemperedPopulation temper(const Posterior& posterior, SamplingBudget& budget, const RunContext& run);

/// Kish's number of weights exp(exponent log_weight): (sum w)^2 / sum w^2; 0 when all are zero.
double effective_number(std::span<const double> log_weight, double exponent);

/// The largest exponent in (0, most] at which the weights are worth at least `wanted`, to a thousandth; 0 where none is.
double largest_exponent(std::span<const double> log_weight, double wanted, double most);

}  // namespace nrec
