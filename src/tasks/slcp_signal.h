#pragma once

#include <span>

#include "nrec/core/array.h"
#include "nrec/core/random.h"
#include "nrec/priors/prior.h"

// The part that slcp and slcp_distractors share.
namespace nrec::tasks {

inline constexpr std::size_t kSlcpParameters = 5;

Prior slcp_prior();
// Four draws of a bivariate normal, point by point, into signal [8].
void simulate_slcp_signal(std::span<const double> theta, RandomStream& random, std::span<double> signal);
// Log density of signal [8] for each row of theta.
void slcp_signal_log_likelihood(MatrixView<const double> theta, std::span<const double> signal,
                                std::span<double> log_likelihood);

}  // namespace nrec::tasks
