#include <cmath>
#include <utility>

#include "catalogue.h"
#include "truncated_normal.h"

namespace nrec::tasks {
namespace {

constexpr std::size_t kDim = 10;
constexpr double kVariance = 0.1;  // of the noise, and of the Gaussian prior: a variance, not an sd
constexpr double kBox = 1.0;       // half width of the uniform prior

std::unique_ptr<const Simulator> make_simulator(const char* name) {
  return std::make_unique<FunctionSimulator>(
      name, kDim, kDim,
      [sd = std::sqrt(kVariance)](std::span<const double> theta, RandomStream& random, std::span<double> x) {
        for (std::size_t d = 0; d < kDim; ++d) x[d] = theta[d] + sd * random.normal();
      });
}

// x ~ N(theta, 0.1 I), under either prior.
class GaussianNoiseTask : public Task {
 protected:
  GaussianNoiseTask(const char* name, Prior prior) : Task(name, std::move(prior), make_simulator(name)) {}

 private:
  void evaluate_log_likelihood(MatrixView<const double> theta, std::span<const double> x_o,
                               std::span<double> log_likelihood) const override {
    const double log_normaliser = 0.5 * kDim * (kLogTwoPi + std::log(kVariance));
    for (std::size_t i = 0; i < theta.rows; ++i) {
      double square = 0.0;
      for (std::size_t d = 0; d < kDim; ++d) {
        const double residual = x_o[d] - theta(i, d);
        square += residual * residual;
      }
      log_likelihood[i] = -0.5 * square / kVariance - log_normaliser;
    }
  }
};

Prior gaussian_prior() {
  std::vector<double> covariance(kDim * kDim, 0.0);
  for (std::size_t d = 0; d < kDim; ++d) covariance[d * kDim + d] = kVariance;
  return Prior::from_terms(
      {{numbered_parameters(kDim),
        "multivariate_normal",
        {{"mean", std::vector<double>(kDim, 0.0)}, {"covariance", std::move(covariance)}}}});
}

class GaussianLinear final : public GaussianNoiseTask {
 public:
  GaussianLinear() : GaussianNoiseTask("gaussian_linear", gaussian_prior()) {}
  bool has_reference_posterior() const override { return true; }

 private:
  // theta | x_o ~ N(x_o / 2, 0.05 I): prior and noise have equal variance.
  void draw_reference(std::span<const double> x_o, RandomStream& random,
                      std::span<double> theta) const override {
    const double sd = std::sqrt(0.5 * kVariance);
    for (std::size_t d = 0; d < kDim; ++d) theta[d] = 0.5 * x_o[d] + sd * random.normal();
  }
};

class GaussianLinearUniform final : public GaussianNoiseTask {
 public:
  GaussianLinearUniform() : GaussianNoiseTask("gaussian_linear_uniform", uniform_box(kDim, -kBox, kBox)) {}
  bool has_reference_posterior() const override { return true; }

 private:
  // theta | x_o ~ N(x_o, 0.1 I) inside the box: ten independent truncated normals.
  void draw_reference(std::span<const double> x_o, RandomStream& random,
                      std::span<double> theta) const override {
    const double sd = std::sqrt(kVariance);
    for (std::size_t d = 0; d < kDim; ++d) theta[d] = draw_truncated_normal(x_o[d], sd, -kBox, kBox, random);
  }
};

}  // namespace

std::unique_ptr<Task> make_gaussian_linear(const TaskOptions&) { return std::make_unique<GaussianLinear>(); }
std::unique_ptr<Task> make_gaussian_linear_uniform(const TaskOptions&) {
  return std::make_unique<GaussianLinearUniform>();
}

}  // namespace nrec::tasks
