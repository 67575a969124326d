#include "inference/chain_draws.h"

#include <algorithm>
#include <cmath>

#include "inference/chain_statistics.h"

namespace nrec {

namespace {

/// Every `thinning`-th point, chain after chain.
Matrix<double> pooled_theta(const Prior& space, const VisitedPoints& visited, std::size_t thinning) {
  const std::size_t per_chain = draws_of_chain(visited.front().size(), thinning);
  Matrix<double> theta(visited.size() * per_chain, space.dim());
  for (std::size_t c = 0; c < visited.size(); ++c) {
    for (std::size_t i = 0; i < per_chain; ++i) {
      const std::vector<double>& u = visited[c][(i + 1) * thinning - 1];
      std::copy(u.begin(), u.end(), theta.row(c * per_chain + i).begin());
    }
  }
  if (per_chain > 0) space.to_constrained(theta, theta);
  return theta;
}

Chains column_of(const Matrix<double>& theta, std::size_t num_chains, std::size_t column) {
  const std::size_t per_chain = theta.rows() / num_chains;
  Chains chains(num_chains, std::vector<double>(per_chain));
  for (std::size_t c = 0; c < num_chains; ++c) {
    for (std::size_t i = 0; i < per_chain; ++i) chains[c][i] = theta(c * per_chain + i, column);
  }
  return chains;
}

}  // namespace

std::vector<double> r_hats(const Prior& space, const VisitedPoints& visited) {
  const Matrix<double> all = pooled_theta(space, visited, 1);
  std::vector<double> r_hat;
  for (std::size_t d = 0; d < space.dim(); ++d)
    r_hat.push_back(split_r_hat(column_of(all, visited.size(), d)));
  return r_hat;
}

double largest_r_hat(const std::vector<double>& r_hat) {
  double worst = 0.0;
  for (const double value : r_hat) worst = std::max(worst, std::isnan(value) ? 0.0 : value);
  return worst;
}

double collect_chains(const Posterior& posterior, const Prior& space, const VisitedPoints& visited,
                      std::size_t thinning, std::size_t wanted, PosteriorDraws& draws) {
  const std::size_t num_chains = visited.size();
  draws.names = space.names();
  draws.theta = pooled_theta(space, visited, thinning);
  const std::vector<double> r_hat = r_hats(space, visited);
  const double worst = largest_r_hat(r_hat);
  std::vector<double> bulk, tail, of_mean, of_sd;
  for (std::size_t d = 0; d < space.dim(); ++d) {
    const Chains chains = column_of(draws.theta, num_chains, d);
    bulk.push_back(bulk_ess(chains));
    tail.push_back(tail_ess(chains));
    of_mean.push_back(mcse_mean(chains));
    of_sd.push_back(mcse_sd(chains));
  }
  if (draws.status == SamplingStatus::complete && worst > kAgreeingRHat)
    draws.status = SamplingStatus::chains_disagree;
  const bool is_cut = draws.theta.rows() > wanted;
  if (is_cut) draws.theta.resize_rows(wanted);
  draws.num_chains = is_cut ? 1 : num_chains;
  draws.log_ratio.resize(draws.theta.rows());
  if (draws.size() > 0) posterior.log_ratio(draws.theta, draws.log_ratio);
  draws.statistics.set("r_hat", r_hat);
  draws.statistics.set("ess_bulk", bulk);
  draws.statistics.set("ess_tail", tail);
  draws.statistics.set("mcse_mean", of_mean);
  draws.statistics.set("mcse_sd", of_sd);
  draws.statistics.set("num_chains", num_chains);
  draws.statistics.set("thinning", thinning);
  return worst;
}

}  // namespace nrec
