#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace nrec {

/// Step size that brings the acceptance rate to a target.
///
///   x_t = mu - sqrt(t)/0.05 * mean of (target - acceptance), weights favouring early terms less (t0 = 10)
///   mean x_t weighted by t^-0.75: the step size to keep
///
/// Source   [Hoffman2014, sec. 3.2]
class DualAveraging {
 public:
  explicit DualAveraging(double target) : target_(target) {}
  /// Starts again around 10 times `step_size`, > 0.
  void restart(double step_size);
  /// Takes an acceptance rate in [0, 1] and gives the step size to try next.
  double next(double acceptance_rate);
  /// The step size to keep; that of restart() if next() was never called.
  double averaged() const;

 private:
  double target_, mu_ = 0.0, error_ = 0.0, log_average_ = 0.0;
  std::size_t count_ = 0;
  double first_ = 1.0;
};

/// When the warm-up learns what: step size alone, then variances in windows of doubling length, then step size alone.
///
/// Source   [Stan, reference manual, sec. adaptation]
class WarmupSchedule {
 public:
  /// 30 % and 20 % of `length` at the ends, first window a tenth. Any length >= 0.
  explicit WarmupSchedule(std::size_t length);
  std::size_t length() const { return length_; }
  bool is_in_window(std::size_t iteration) const;
  /// Whether the variances are renewed after this iteration.
  bool ends_window(std::size_t iteration) const;

 private:
  std::size_t length_, first_, last_;
  std::vector<std::size_t> ends_;
};

/// Variance within chains of every coordinate, pooled over chains: means of their own, so that separate modes count as what
/// they are, not as width.
class PooledVariance {
 public:
  PooledVariance(std::size_t num_chains, std::size_t dim);
  void add(std::size_t chain, std::span<const double> u);
  /// Variances, drawn towards `guess` with the weight of 5 draws; the guess where nothing moved. Clears what was added.
  /// Shapes   guess [dim], > 0
  std::vector<double> take(std::span<const double> guess);

 private:
  std::size_t dim_;
  std::vector<std::size_t> counts_;
  std::vector<std::vector<double>> means_;
  std::vector<double> squares_;
};

}  // namespace nrec
