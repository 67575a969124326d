#pragma once

#include <cstddef>
#include <vector>

#include "nrec/inference/posterior.h"
#include "nrec/inference/posterior_draws.h"

namespace nrec {

/// Chains that disagree have an R-hat above this.
inline constexpr double kAgreeingRHat = 1.05;

/// Where chains have been: [chain][iteration][dim] in unbounded coordinates, equal lengths.
using VisitedPoints = std::vector<std::vector<std::vector<double>>>;

/// How many draws chains of `length` iterations hand over: every `thinning`-th.
inline std::size_t draws_of_chain(std::size_t length, std::size_t thinning) { return length / thinning; }

/// The last `count` iterations of every chain, if there are more.
template <class Chain>
void keep_last(std::vector<Chain>& chains, std::size_t count) {
  for (Chain& chain : chains) {
    if (chain.size() > count) chain.erase(chain.begin(), chain.end() - static_cast<std::ptrdiff_t>(count));
  }
}

/// Split R-hat of every coordinate of `space`'s theta over all points of the chains; nan for fewer than 4 points a chain.
std::vector<double> r_hats(const Prior& space, const VisitedPoints& visited);

/// The largest of them that is a number, 0 if none is.
double largest_r_hat(const std::vector<double>& r_hat);

/// How long chains run: as planned, and up to eight times as long where they disagree now but are on the way to agree.
///
///   R-hat^2 - 1 falls like 1 / length where chains mix
class RunLength {
 public:
  /// Iterations after the warm-up.
  explicit RunLength(std::size_t planned) : total_(planned) {}
  std::size_t total() const { return total_; }
  /// Doubles the length if that helps; false if the run is over.
  bool extend(double worst_r_hat) {
    constexpr double kMostFactor = 8.0;
    constexpr double kAgreeing = kAgreeingRHat * kAgreeingRHat - 1.0;
    if (!(worst_r_hat > kAgreeingRHat) ||
        factor_ * (worst_r_hat * worst_r_hat - 1.0) > kMostFactor * kAgreeing)
      return false;
    factor_ *= 2.0;
    total_ *= 2;
    return true;
  }
  bool is_extended() const { return factor_ > 1.0; }

 private:
  std::size_t total_;
  double factor_ = 1.0;
};

/// Fills theta, num_chains, log_ratio and names of `draws` with every `thinning`-th point of chains in the coordinates of
/// `space`, and the statistics r_hat (of all points, because few thinned ones would not judge the chains), ess_bulk,
/// ess_tail, mcse_mean, mcse_sd (of the draws), one number per parameter, num_chains and thinning.
///
/// At most `wanted` draws are handed over; when that cuts the last chain short, num_chains is 1. The status "complete" becomes
/// "chains disagree" when an R-hat is above kAgreeingRHat. Returns the largest R-hat, 0 if none is a number.
double collect_chains(const Posterior& posterior, const Prior& space, const VisitedPoints& visited,
                      std::size_t thinning, std::size_t wanted, PosteriorDraws& draws);

}  // namespace nrec
