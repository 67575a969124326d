#pragma once

#include <cmath>
#include <numeric>
#include <vector>

#include "nrec/networks/pair_step.h"
#include "nrec/simulation/simulation_set.h"
#include "nrec/training/train.h"

namespace nrec::testing {

/// The numbers of an EpochRecord that need nothing but logits, from those of every validation row with every validation theta. Works on
/// the estimator alone, one x at a time.
inline EpochRecord naive_information(const RatioEstimator& estimator, const SimulationSet& simulations,
                                     const std::vector<std::uint32_t>& rows, ThreadPool& pool) {
  const std::size_t n = rows.size();
  Matrix<double> theta(n, simulations.dim_theta());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < theta.cols(); ++j) theta(i, j) = simulations.theta(rows[i], j);
  }
  Matrix<float> encoded(n, theta.cols());
  estimator.encode_theta(theta, encoded);
  EpochRecord sums;
  std::vector<double> h(n), log_z;
  const double count = static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::vector<float> x = estimator.encode_x(simulations.x.row(rows[i]));
    PairEvaluator(estimator.network, x, "auto", pool)(encoded, h);
    double z = 0.0;
    for (std::size_t j = 0; j < n; ++j) z += j == i ? 0.0 : std::exp(h[j]) / (count - 1.0);
    log_z.push_back(std::log(z));
    sums.mean_ratio += z / count;
    sums.mean_log_z += std::log(z) / count;
    sums.i0 += (h[i] - std::log(z)) / count;
    sums.i1 += (h[i] - z + 1.0) / count;
    sums.mean_log_ratio += h[i] / count;
    sums.kld += (h[i] + std::exp(-h[i]) - 1.0) / count;
  }
  for (const double z : log_z) sums.sd_log_z += (z - sums.mean_log_z) * (z - sums.mean_log_z) / (count - 1.0);
  sums.sd_log_z = std::sqrt(sums.sd_log_z);
  return sums;
}

}  // namespace nrec::testing
