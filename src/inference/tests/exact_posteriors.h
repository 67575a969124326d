#pragma once
// Posteriors with exact log ratios and gradients.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "nrec/inference/posterior.h"

namespace nrec::testing {

inline Prior one_term(std::string family,
                      std::vector<std::pair<std::string, std::vector<double>>> parameters) {
  return Prior::from_terms({{{"t"}, std::move(family), std::move(parameters), "auto"}});
}

inline Prior product_prior(std::size_t dim, const PriorTerm& one) {
  std::vector<PriorTerm> terms(dim, one);
  for (std::size_t d = 0; d < dim; ++d) terms[d].names = {"t" + std::to_string(d)};
  return Prior::from_terms(terms);
}
inline Prior uniform_prior(double low, double high, std::size_t dim) {
  return product_prior(dim, {{"t"}, "uniform", {{"low", {low}}, {"high", {high}}}, "auto"});
}
inline Prior normal_prior(double mean, double sd, std::size_t dim) {
  return product_prior(dim, {{"t"}, "normal", {{"mean", {mean}}, {"sd", {sd}}}, "auto"});
}

/// Values and gradients from one function.
inline Posterior exact(Prior prior, Posterior::LogRatioGradient function) {
  const auto values = [function](MatrixView<const double> theta, std::span<double> log_ratio) {
    Matrix<double> unused(theta.rows, theta.cols);
    function(theta, log_ratio, unused);
  };
  return Posterior::from_log_ratio(std::move(prior), values, function);
}

inline Posterior constant_ratio(Prior prior) {
  return exact(std::move(prior),
               [](MatrixView<const double> theta, std::span<double> log_ratio, MatrixView<double> d_theta) {
                 std::fill(log_ratio.begin(), log_ratio.end(), 0.4);
                 for (std::size_t i = 0; i < theta.rows; ++i)
                   std::fill(d_theta.row(i).begin(), d_theta.row(i).end(), 0.0);
               });
}

/// log N(theta; mean, sd^2 ((1 - correlation) 1 + correlation)) for every coordinate, up to a constant: under a wide prior the
/// posterior has this mean and sd.
inline Posterior gaussian_ratio(Prior prior, double mean, double sd, double correlation = 0.0) {
  const double dim = static_cast<double>(prior.dim());
  const double own = 1 / (1 - correlation);
  const double common = correlation / ((1 - correlation) * (1 - correlation + correlation * dim));
  return exact(std::move(prior),
               [=](MatrixView<const double> theta, std::span<double> log_ratio, MatrixView<double> d_theta) {
                 for (std::size_t i = 0; i < theta.rows; ++i) {
                   double sum = 0.0, square = 0.0;
                   for (const double t : theta.row(i)) {
                     sum += (t - mean) / sd;
                     square += (t - mean) / sd * (t - mean) / sd;
                   }
                   log_ratio[i] = -0.5 * (own * square - common * sum * sum);
                   for (std::size_t d = 0; d < theta.cols; ++d)
                     d_theta(i, d) = -(own * (theta(i, d) - mean) / sd - common * sum) / sd;
                 }
               });
}

/// Neal's funnel: v ~ N(0, 3^2), the others N(0, exp(v)) given v. Source [Neal2003, sec. 8]
inline Posterior funnel(std::size_t others) {
  std::vector<PriorTerm> terms = {{{"v"}, "normal", {{"mean", {0}}, {"sd", {3}}}, "auto"}};
  for (std::size_t d = 0; d < others; ++d)
    terms.push_back({{"x" + std::to_string(d)}, "uniform", {{"low", {-1e3}}, {"high", {1e3}}}, "identity"});
  return exact(Prior::from_terms(terms),
               [](MatrixView<const double> theta, std::span<double> log_ratio, MatrixView<double> d_theta) {
                 for (std::size_t i = 0; i < theta.rows; ++i) {
                   const double v = theta(i, 0);
                   log_ratio[i] = d_theta(i, 0) = 0.0;
                   for (std::size_t d = 1; d < theta.cols; ++d) {
                     const double square = theta(i, d) * theta(i, d) * std::exp(-v);
                     log_ratio[i] -= 0.5 * (square + v);
                     d_theta(i, 0) += 0.5 * (square - 1);
                     d_theta(i, d) = -theta(i, d) * std::exp(-v);
                   }
                 }
               });
}

}  // namespace nrec::testing
