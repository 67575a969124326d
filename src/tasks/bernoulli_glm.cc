#include <algorithm>
#include <array>
#include <cmath>

#include "catalogue.h"
#include "frozen_inputs.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"

namespace nrec::tasks {
namespace {

double predictor(std::span<const double> theta, std::span<const double> design_row) {
  double psi = 0.0;
  for (std::size_t d = 0; d < kGlmParameters; ++d) psi += design_row[d] * theta[d];
  return psi;
}

double sigmoid(double psi) { return 1.0 / (1.0 + std::exp(-psi)); }

// log(1 + e^psi) without overflow.
double softplus(double psi) { return std::max(psi, 0.0) + std::log1p(std::exp(-std::abs(psi))); }

void simulate_spikes(std::span<const double> theta, RandomStream& random, std::span<double> y) {
  const Matrix<double>& design = glm_design().design;
  for (std::size_t t = 0; t < kGlmBins; ++t)
    y[t] = random.uniform() < sigmoid(predictor(theta, design.row(t))) ? 1.0 : 0.0;
  // A comparison would make a spike train without spikes of a nan; the row must fail instead.
  if (std::any_of(theta.begin(), theta.end(), [](double value) { return std::isnan(value); }))
    y[0] = std::nan("");
}

// X^T y: the spike count and the nine spike-triggered sums.
void summarise(std::span<const double> y, std::span<double> summary) {
  const Matrix<double>& design = glm_design().design;
  std::fill(summary.begin(), summary.end(), 0.0);
  for (std::size_t t = 0; t < kGlmBins; ++t) {
    for (std::size_t d = 0; d < kGlmParameters; ++d) summary[d] += y[t] * design(t, d);
  }
}

void simulate_summary(std::span<const double> theta, RandomStream& random, std::span<double> x) {
  std::array<double, kGlmBins> y;
  simulate_spikes(theta, random, y);
  summarise(y, x);
}

Prior glm_prior() {
  return Prior::from_terms({{numbered_parameters(kGlmParameters),
                             "multivariate_normal",
                             {{"mean", std::vector<double>(kGlmParameters, 0.0)},
                              {"precision", glm_design().prior_precision.values()}}}});
}

// sum_t (y_t psi_t - log(1 + e^psi_t)) with sum_t y_t psi_t = (X^T y) . theta.
void spike_train_log_likelihood(MatrixView<const double> theta, std::span<const double> summary,
                                std::span<double> log_likelihood) {
  const Matrix<double>& design = glm_design().design;
  for (std::size_t i = 0; i < theta.rows; ++i) {
    double sum = predictor(theta.row(i), summary);
    for (std::size_t t = 0; t < kGlmBins; ++t) sum -= softplus(predictor(theta.row(i), design.row(t)));
    log_likelihood[i] = sum;
  }
}

class BernoulliGlm final : public Task {
 public:
  BernoulliGlm()
      : Task("bernoulli_glm", glm_prior(),
             std::make_unique<FunctionSimulator>("bernoulli_glm", kGlmParameters, kGlmParameters,
                                                 simulate_summary)) {}

 private:
  // The summary is sufficient: the log probability is that of one spike train that has it.
  void evaluate_log_likelihood(MatrixView<const double> theta, std::span<const double> x_o,
                               std::span<double> log_likelihood) const override {
    spike_train_log_likelihood(theta, x_o, log_likelihood);
  }
};

class BernoulliGlmRaw final : public Task {
 public:
  BernoulliGlmRaw()
      : Task("bernoulli_glm_raw", glm_prior(),
             std::make_unique<FunctionSimulator>("bernoulli_glm_raw", kGlmParameters, kGlmBins,
                                                 simulate_spikes)) {}

 private:
  void check_observation(std::span<const double> x_o) const override {
    for (std::size_t t = 0; t < x_o.size(); ++t) {
      if (x_o[t] == 0.0 || x_o[t] == 1.0) continue;
      throw DomainError("task bernoulli_glm_raw: x_o column " + std::to_string(t + 1) + " = " +
                        number_text(x_o[t]) + " is neither 0 nor 1; give the spike train of 100 bins");
    }
  }
  void evaluate_log_likelihood(MatrixView<const double> theta, std::span<const double> x_o,
                               std::span<double> log_likelihood) const override {
    std::array<double, kGlmParameters> summary;
    summarise(x_o, summary);
    spike_train_log_likelihood(theta, summary, log_likelihood);
  }
};

}  // namespace

std::unique_ptr<Task> make_bernoulli_glm(const TaskOptions&) { return std::make_unique<BernoulliGlm>(); }
std::unique_ptr<Task> make_bernoulli_glm_raw(const TaskOptions&) {
  return std::make_unique<BernoulliGlmRaw>();
}

}  // namespace nrec::tasks
