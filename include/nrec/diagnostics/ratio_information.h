#pragma once

#include <cstddef>
#include <span>

namespace nrec {

/// Mean of exp(values) without overflow, with its relative error.
struct LogMeanExp {
  double value = 0.0;              // log mean of exp
  double relative_variance = 0.0;  // of the mean: (variance of exp / n) / mean^2, from the same values
};
/// Shapes   values [n], n >= 1; minus infinity counts as 0. Numerics: log-sum-exp in double.
LogMeanExp log_mean_exp(std::span<const double> values);

/// What log ratios of joint pairs and of prior draws say about a ratio. Information in nats.
struct RatioInformation {
  std::size_t num_rows = 0;
  double mean_log_ratio = 0.0;
  double mean_log_z = 0.0,
         mean_log_z_se = 0.0;  // log Z(x), Z = mean ratio over the prior: 0 for an exact ratio
  double sd_log_z = 0.0;
  double mean_ratio = 0.0, mean_ratio_se = 0.0;  // mean over x of Z: 1 for an exact ratio
  double i0 = 0.0, i0_se = 0.0;                  // mean of h - log Z
  double i0_bias = 0.0;          // by which finitely many prior draws raise it, to first order: subtract it
  double i1 = 0.0, i1_se = 0.0;  // mean of h - Z + 1; not raised by few draws
};

/// Bounds on the mutual information of theta and x, and the normalisation of a ratio h.
///
///   Z_n = mean over prior draws of exp h(theta_m, x_n)
///   I0 = mean_n (h_n - log Z_n),   I1 = mean_n (h_n - Z_n + 1),   I >= I0 >= I1 up to errors
///
/// I0 does not change when a function of x is added to h, I1 does. Standard errors are those over rows.
///
/// Shapes   log_ratio [n] of joint pairs; z [n] of the same x
/// Errors   ShapeError: lengths differ, or fewer than 2 rows
/// Source   [Miller2022, sec. 3.4]; docs/methods/calibration.md
RatioInformation ratio_information(std::span<const double> log_ratio, std::span<const LogMeanExp> z);

}  // namespace nrec
