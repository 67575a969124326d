#include "inference/chain_starts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "nrec/core/random.h"

namespace nrec {

namespace {
constexpr std::size_t kCandidates = 100000;
}

ChainStarts chain_starts(const Posterior& posterior, std::size_t num_chains, std::int64_t max_evaluations,
                         const RunContext& run) {
  const std::size_t n = std::min<std::size_t>(kCandidates, static_cast<std::size_t>(max_evaluations));
  const std::size_t dim = posterior.prior().dim();
  ChainStarts starts{Matrix<double>(0, dim), Matrix<double>(n, dim)};
  const Matrix<double>& theta = starts.candidates;
  posterior.prior().sample(run.seed, Stream::sampler, 0, starts.candidates);
  std::vector<double> weight(n);
  posterior.log_ratio(theta, weight);
  const double top = *std::max_element(weight.begin(), weight.end());
  if (top == -std::numeric_limits<double>::infinity()) return starts;
  for (double& w : weight) w = std::exp(w - top);
  std::partial_sum(weight.begin(), weight.end(), weight.begin());
  starts.theta.resize_rows(num_chains);
  RandomStream random(run.seed, Stream::resampling);
  for (std::size_t c = 0; c < num_chains; ++c) {
    const auto found = std::upper_bound(weight.begin(), weight.end(), random.uniform() * weight.back());
    const auto row = std::min<std::size_t>(static_cast<std::size_t>(found - weight.begin()), n - 1);
    std::copy(theta.row(row).begin(), theta.row(row).end(), starts.theta.row(c).begin());
  }
  return starts;
}

}  // namespace nrec
