#include "commands/benchmark_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "nrec/diagnostics/c2st.h"
#include "nrec/diagnostics/mmd.h"
#include "nrec/diagnostics/moment_metrics.h"
#include "nrec/diagnostics/predictive_distance.h"
#include "nrec/inference/evidence.h"
#include "nrec/inference/posterior.h"
#include "nrec/tasks/reference_posterior.h"

namespace nrec {

namespace {

constexpr std::size_t kFewestDraws = 50;  // below, two-sample metrics are noise

/// `count` rows at equal distances, so that every chain is seen.
Matrix<double> thinned(const Matrix<double>& draws, std::size_t count) {
  Matrix<double> rows(count, draws.cols());
  for (std::size_t i = 0; i < count; ++i)
    std::ranges::copy(draws.row(i * draws.rows() / count), rows.row(i).begin());
  return rows;
}

/// Measures one observation.
class Measurement {
 public:
  Measurement(const BenchmarkTask& task, std::size_t index, const PosteriorDraws& draws,
              const RatioEstimator& estimator, const RunContext& run)
      : task_(*task.task), reference_(task.references[index]), estimator_(estimator), run_(run) {
    const std::size_t rows = std::min(draws.size(), reference_.theta.rows());
    if (rows < kFewestDraws) {
      result_.problem = fmt::format("{} draws are too few to compare", rows);
      return;
    }
    draws_ = thinned(draws.theta, rows);
    truth_ = reference_.theta.view().middle_rows(0, rows);
  }

  ObservationMetrics result() {
    if (!draws_.empty()) {
      attempt("c2st", [&] { classify(); });
      attempt("mmd", [&] { result_.mmd2 = mmd(truth_, draws_, {}, run_.pool).mmd2; });
      attempt("moments", [&] { compare_moments(); });
      attempt("gaussian_kl", [&] { result_.gaussian_kl = gaussian_kl(truth_, draws_); });
      attempt("median_distance", [&] { predict(); });
    }
    attempt("nltp", [&] { densities(); });
    return result_;
  }

 private:
  /// A metric that cannot be had leaves nan and its reason; the others go on.
  template <class Body>
  void attempt(const char* name, const Body& body) {
    if (run_.stop_requested()) return;
    try {
      body();
    } catch (const InternalError&) {
      throw;
    } catch (const Error& error) {
      result_.problem += fmt::format("{}{}: {}", result_.problem.empty() ? "" : "; ", name, error.what());
    }
  }

  void classify() {
    const C2stSummary summary = c2st(truth_, draws_, {.stop = run_.stop}, run_.pool, silent_sink());
    result_.c2st = summary.accuracy;
    result_.c2st_auc = summary.auc;
  }

  void compare_moments() {
    const MomentErrors errors = moment_errors(truth_, draws_);
    result_.posterior_mean_error = errors.posterior_mean_error;
    result_.posterior_variance_ratio = errors.posterior_variance_ratio;
    result_.mean_error = errors.absolute_mean_error;
    result_.sd_error = errors.absolute_sd_error;
  }

  void predict() {
    // A seed that no training simulation of this run has.
    const std::uint64_t seed =
        RandomStream(run_.seed, Stream::check, static_cast<std::uint64_t>(reference_.number)).bits64();
    result_.median_distance =
        median_predictive_distance(task_.simulator(), draws_, reference_.x_o, seed, run_.pool).median;
  }

  void densities() {
    result_.reference_nltp =
        -reference_log_density(task_, reference_.x_o, reference_.true_parameters, reference_.log_evidence);
    const Posterior posterior = Posterior::from_estimator(estimator_, reference_.x_o, run_);
    double log_density = 0.0;
    const MatrixView<const double> theta(reference_.true_parameters.data(), 1,
                                         reference_.true_parameters.size());
    const LogEvidence evidence = log_evidence(posterior, run_);
    result_.log_z = evidence.log_z;
    result_.log_z_se = evidence.standard_error;
    result_.log_z_k_hat = evidence.k_hat;
    normalised_log_density(posterior, evidence, theta, {&log_density, 1});
    result_.nltp = -log_density;
  }

  const Task& task_;
  const BenchmarkReference& reference_;
  const RatioEstimator& estimator_;
  const RunContext& run_;
  Matrix<double> draws_;
  MatrixView<const double> truth_;
  ObservationMetrics result_;
};

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

ObservationMetrics measure(const BenchmarkTask& task, std::size_t index, const PosteriorDraws& draws,
                           const RatioEstimator& estimator, const RunContext& run) {
  return Measurement(task, index, draws, estimator, run).result();
}

void add_metrics(Record& record, const std::vector<ObservationMetrics>& metrics) {
  const auto list = [&](double ObservationMetrics::*field) {
    std::vector<double> values;
    for (const ObservationMetrics& one : metrics) values.push_back(one.*field);
    return values;
  };
  const auto add = [&](const std::string& name, double ObservationMetrics::*field) {
    const std::vector<double> values = list(field);
    record.set(name, RecordValue(values));
    record.set(name + "_mean", mean(values));
  };
  add("c2st", &ObservationMetrics::c2st);
  add("c2st_auc", &ObservationMetrics::c2st_auc);
  add("mmd2", &ObservationMetrics::mmd2);
  add("posterior_mean_error", &ObservationMetrics::posterior_mean_error);
  add("posterior_variance_ratio", &ObservationMetrics::posterior_variance_ratio);
  add("mean_error", &ObservationMetrics::mean_error);
  add("sd_error", &ObservationMetrics::sd_error);
  add("gaussian_kl", &ObservationMetrics::gaussian_kl);
  add("median_distance", &ObservationMetrics::median_distance);
  add("nltp", &ObservationMetrics::nltp);
  add("reference_nltp", &ObservationMetrics::reference_nltp);
  record.set("log_z", RecordValue(list(&ObservationMetrics::log_z)));
  record.set("log_z_se", RecordValue(list(&ObservationMetrics::log_z_se)));
  record.set("log_z_k_hat", RecordValue(list(&ObservationMetrics::log_z_k_hat)));
  std::vector<std::string> problems;
  for (const ObservationMetrics& one : metrics) problems.push_back(one.problem);
  record.set("problems", RecordValue(problems));
}

}  // namespace nrec
