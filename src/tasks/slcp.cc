#include <algorithm>
#include <cmath>

#include "catalogue.h"
#include "frozen_inputs.h"
#include "slcp_signal.h"

namespace nrec::tasks {
namespace {

constexpr double kBox = 3.0;      // half width of the uniform prior
constexpr double kJitter = 1e-6;  // added to both variances
constexpr std::size_t kPoints = kSlcpSignal / 2;

struct Covariance {
  double first;   // variance of the first coordinate
  double second;  // variance of the second
  double cross;
};

// Standard deviations are squares of theta, so variances are fourth powers.
Covariance covariance(std::span<const double> theta) {
  const double s1 = theta[2] * theta[2];
  const double s2 = theta[3] * theta[3];
  return {s1 * s1 + kJitter, s2 * s2 + kJitter, std::tanh(theta[4]) * s1 * s2};
}

class Slcp final : public Task {
 public:
  Slcp()
      : Task(
            "slcp", slcp_prior(),
            std::make_unique<FunctionSimulator>("slcp", kSlcpParameters, kSlcpSignal, simulate_slcp_signal)) {
  }

 private:
  void evaluate_log_likelihood(MatrixView<const double> theta, std::span<const double> x_o,
                               std::span<double> log_likelihood) const override {
    slcp_signal_log_likelihood(theta, x_o, log_likelihood);
  }
};

}  // namespace

Prior slcp_prior() { return uniform_box(kSlcpParameters, -kBox, kBox); }

void simulate_slcp_signal(std::span<const double> theta, RandomStream& random, std::span<double> signal) {
  const Covariance s = covariance(theta);
  const double l11 = std::sqrt(s.first);
  const double l21 = s.cross / l11;
  const double l22 = std::sqrt(std::max(0.0, s.second - l21 * l21));
  for (std::size_t point = 0; point < kPoints; ++point) {
    const double a = random.normal();
    const double b = random.normal();
    signal[2 * point] = theta[0] + l11 * a;
    signal[2 * point + 1] = theta[1] + l21 * a + l22 * b;
  }
}

void slcp_signal_log_likelihood(MatrixView<const double> theta, std::span<const double> signal,
                                std::span<double> log_likelihood) {
  for (std::size_t i = 0; i < theta.rows; ++i) {
    const Covariance s = covariance(theta.row(i));
    const double determinant = s.first * s.second - s.cross * s.cross;
    double square = 0.0;
    for (std::size_t point = 0; point < kPoints; ++point) {
      const double a = signal[2 * point] - theta(i, 0);
      const double b = signal[2 * point + 1] - theta(i, 1);
      square += (s.second * a * a - 2.0 * s.cross * a * b + s.first * b * b) / determinant;
    }
    log_likelihood[i] =
        -0.5 * square - static_cast<double>(kPoints) * (kLogTwoPi + 0.5 * std::log(determinant));
  }
}

std::unique_ptr<Task> make_slcp(const TaskOptions&) { return std::make_unique<Slcp>(); }

}  // namespace nrec::tasks
