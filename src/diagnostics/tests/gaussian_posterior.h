#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "nrec/core/random.h"
#include "nrec/inference/sample_many.h"
#include "nrec/priors/prior.h"

namespace nrec::testing {

/// theta ~ N(0, 1)^D, x = theta + noise N(0, 1)^D. The posterior is N(x s, s), s = noise^2/(1 + noise^2), exactly or with errors that are
/// known: moved by `shift` of its sds, its sds multiplied by `width`, and the ratio by exp c(x_1).
struct GaussianPosterior {
  std::size_t dim = 1;
  double noise = 0.5;
  std::vector<double> shift = {};  // [D]; empty: none
  double width = 1.0;
  double (*c)(double) = nullptr;

  Prior prior() const {
    std::vector<PriorTerm> terms;
    for (std::size_t j = 0; j < dim; ++j)
      terms.push_back({{"t" + std::to_string(j)}, "normal", {{"mean", {0.0}}, {"sd", {1.0}}}, "auto"});
    return Prior::from_terms(terms);
  }

  /// n pairs (theta, x).
  std::pair<Matrix<double>, Matrix<double>> pairs(std::size_t n, std::uint64_t seed) const {
    Matrix<double> theta(n, dim), x(n, dim);
    for (std::size_t i = 0; i < n; ++i) {
      RandomStream random(seed, Stream::simulator, i);
      for (std::size_t j = 0; j < dim; ++j) {
        theta(i, j) = random.normal();
        x(i, j) = theta(i, j) + noise * random.normal();
      }
    }
    return {theta, x};
  }

  /// log q(theta | x) - log p(theta) + c(x_1)
  double log_ratio(std::span<const double> theta, std::span<const double> x) const {
    const double variance = noise * noise / (1.0 + noise * noise), sd = width * std::sqrt(variance);
    double sum = c ? c(x[0]) : 0.0;
    for (std::size_t j = 0; j < dim; ++j) {
      const double mean =
          x[j] / (1.0 + noise * noise) + (shift.empty() ? 0.0 : shift[j] * std::sqrt(variance));
      const double z = (theta[j] - mean) / sd;
      sum += -0.5 * z * z - std::log(sd) + 0.5 * theta[j] * theta[j];
    }
    return sum;
  }

  Posterior at(const Prior& shared, std::span<const double> x) const {
    return Posterior::from_log_ratio(shared, [self = *this, x = std::vector<double>(x.begin(), x.end())](
                                                 MatrixView<const double> theta, std::span<double> out) {
      for (std::size_t i = 0; i < theta.rows; ++i) out[i] = self.log_ratio(theta.row(i), x);
    });
  }

  /// The posterior of each row of x, which must outlive it.
  PosteriorMaker maker(MatrixView<const double> x) const {
    return [self = *this, shared = prior(), x](std::size_t i, const RunContext&) {
      return self.at(shared, x.row(i));
    };
  }
};

}  // namespace nrec::testing
