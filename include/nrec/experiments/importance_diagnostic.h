#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/core/options.h"
#include "nrec/core/run_context.h"
#include "nrec/diagnostics/ratio_information.h"
#include "nrec/diagnostics/weighted_auc.h"
#include "nrec/training/ratio_estimator.h"
#include "nrec/training/train.h"

namespace nrec {

/// log p(x | theta)/p(x), exact or estimated, pair by pair; minus infinity is a ratio of 0.
///
/// Shapes   theta [n], x [n] in; log_ratio [n] out
using PairLogRatio = std::function<void(std::span<const double> theta, std::span<const double> x,
                                        std::span<double> log_ratio)>;

/// Whether importance sampling with a learned ratio gives back the likelihood, on a problem where all is known:
/// theta ~ U(-sqrt 3, sqrt 3), x = theta + 0.1 e, e ~ N(0, 1). The defaults are the published ones.
struct ImportanceDiagnosticOptions {
  NetworkOptions network = {.hidden_features = 256, .num_blocks = 2, .norm = "none"};
  TrainingOptions training = {.loss = "nre-c",
                              .num_classes = 9,
                              .gamma = 1.0,
                              .training_batch_size = 512,
                              .learning_rate = 1e-4,
                              .learning_rate_schedule = "constant",
                              .weight_decay = 0.0,
                              .ema_epochs = 0.0,
                              .validation_fraction = 0.25,
                              .max_num_epochs = 60,
                              .stop_after_epochs = 0};
  std::int64_t num_simulations = 40000;
  // The posterior at an observation simulated at theta = 1.
  std::int64_t num_posterior_draws = 100000;
  std::int64_t num_c2st_draws = 10000;  // the first so many of them, against as many exact ones
  std::int64_t num_bias_draws = 1000;   // drawn twice, without and with the known bias
  int posterior_bins = 100;
  // Histograms over x at three thetas.
  std::int64_t num_histogram_rows = 100000;
  int likelihood_bins = 1000;
  // The classifier 1 -> 10 -> 10 -> 1 and its ROC curves at theta = 1.
  std::int64_t num_classifier_rows = 10000;
  std::int64_t num_roc_rows = 100000;
  int classifier_epochs = 100;
  int classifier_batch_rows = 256;  // of each label
  double classifier_learning_rate = 1e-3;
  // Information and normalisation from validation rows.
  std::int64_t num_information_rows = 0;  // the first so many of them; 0: all
  int num_information_draws = 255;        // prior draws of each row's own

  /// Errors   ConfigError with every broken rule
  void validate() const;
};

/// Flags of the experiment and sections [network] and [training].
void describe(OptionTable& table, ImportanceDiagnosticOptions& options);

/// The published setting of a loss: 9 contrastive parameters for "nre-c", 10 atoms for "nre-b", one for "nre-a".
/// Errors   ConfigError: another word
ImportanceDiagnosticOptions published_importance_diagnostic(std::string_view loss);

/// c(x) = sin(5 x): added to a log ratio it leaves every posterior as it is and makes the ratio wrong.
double known_bias(double x);

/// A density over equal bins from low to high; its area is 1.
struct DensityHistogram {
  double low = 0.0, high = 0.0;
  std::vector<double> density;
  double outside = 0.0;  // share of the weight beyond low and high, which is left out

  double width() const { return (high - low) / static_cast<double>(density.size()); }
  double centre(std::size_t bin) const { return low + (static_cast<double>(bin) + 0.5) * width(); }
};

/// Draws from the posterior of the ratio beside the exact posterior, a truncated normal.
struct PosteriorComparison {
  double x_o = std::numeric_limits<double>::quiet_NaN();
  std::size_t num_draws = 0;
  std::string status, message;  // of the sampler
  DensityHistogram draws;
  std::vector<double> exact;  // density at the centres of the bins
  double mean = std::numeric_limits<double>::quiet_NaN(), sd = mean;
  double exact_mean = mean, exact_sd = mean;
  double c2st = mean, c2st_auc = mean;  // nan with fewer than 100 draws
  std::size_t num_c2st_draws = 0;
  /// Draws made again with the known bias added to the log ratio, and how many of them are another number. Samplers see
  /// the log ratio at one x up to a constant, so that only rounding could make any.
  std::size_t num_bias_draws = 0, num_bias_draws_changed = 0;
};

/// p(x | theta) as simulated, as x of the prior predictive weighted by exp h(theta, x), and exact.
struct LikelihoodComparison {
  double theta = 0.0;
  DensityHistogram simulated, weighted;
  std::vector<double> exact;           // density at the centres of the bins
  double effective_sample_size = 0.0;  // (sum w)^2 / sum w^2 of the weighted rows
  /// Largest difference of the cumulative weighted histogram from the exact distribution function, over the edges of bins.
  double largest_cdf_difference = 0.0;
};

/// What a classifier makes of x ~ p(x | theta = 1) against weighted x ~ p(x).
struct RocComparison {
  std::string
      weights;  // "weighted": exp h, as published; "unweighted": 1; "normalised": exp h / Z(x); "biased": exp(h + sin 5 x)
  WeightedAuc roc;             // auc is nan where the weights are no usable numbers
  double held_out_loss = 0.0;  // weighted cross entropy of the rows not trained on [nats]
  double effective_sample_size = 0.0;
  std::string message;  // why there is no area; "" where there is one
};

/// Z(x) = mean of exp h(theta, x) over the prior, by the midpoint rule: 1 for an exact ratio.
struct NormalisationCurve {
  std::vector<double> x, log_z;
  // Of log Z over x of the validation rows: without the noise that prior draws add to RatioInformation::sd_log_z.
  double mean = std::numeric_limits<double>::quiet_NaN(), sd = mean;

  /// Linear between the points, constant beyond them.
  double operator()(double at) const;
};

/// How the network came about.
struct DiagnosticTraining {
  std::string status, message;
  int num_epochs = 0, best_epoch = 0;
  double best_validation_loss = std::numeric_limits<double>::quiet_NaN();
  double seconds = std::numeric_limits<double>::quiet_NaN();  // of the call that finished it
  bool was_resumed = false;                                   // that call went on from a checkpoint
  bool was_reused = false;                                    // found finished in the folder
};

/// How an experiment ended.
enum class ExperimentStatus {
  done,
  stopped,       // a stop was requested; what was trained is kept in the folder
  budget_spent,  // the time limit was over
  failed,        // no usable network
};
std::string_view experiment_status_name(ExperimentStatus status);

/// Everything that one ratio showed. Parts behind the end of a run that did not get done are as they were initialised.
struct ImportanceDiagnosticResult {
  std::string ratio;  // name of the loss, or "exact"
  std::uint64_t seed = 0;
  int num_classes = 0;  // 0: not trained
  double gamma = std::numeric_limits<double>::quiet_NaN();
  ExperimentStatus status = ExperimentStatus::done;
  std::string message = "done";
  std::optional<DiagnosticTraining> training;
  PosteriorComparison posterior;
  std::vector<LikelihoodComparison> likelihoods;  // at -sqrt(3)/2, 0, sqrt(3)/2
  std::vector<RocComparison> rocs;
  NormalisationCurve normalisation;
  RatioInformation information;
  double exact_information = 0.0;  // mutual information of theta and x [nats]
  double sampling_seconds = 0.0, diagnostic_seconds = 0.0;
};

/// Trains a ratio and looks at it.
///
/// With a folder, the training leaves a checkpoint there while it runs and the estimator, <loss>_seed<seed>.safetensors, when it is
/// done: the same call goes on after any end, and does not train again. A time limit or a stop request that comes first is a status.
///
/// Errors   ConfigError: options; a network in the folder that was trained with other settings (the first that differs is
///          named); ShapeError: too few rows for num_classes; IoError: the folder cannot be written, a checkpoint of other settings
/// Numerics a pure function of options, run.seed and run.isa, whatever the number of threads, but for the seconds
/// Cost     the published setting: 2.8 10^13 flop for training, 3 10^12 flop for the rest
/// Source   [Miller2022, sec. 3.3, fig. 3]; docs/methods/importance_diagnostic.md
ImportanceDiagnosticResult run_importance_diagnostic(const ImportanceDiagnosticOptions& options,
                                                     const RunContext& run,
                                                     const std::filesystem::path& folder = {});

/// The same for a given log ratio; network and training of the options only say which simulations are validation rows.
/// Errors   ConfigError: options, an empty function; DomainError: a log ratio that is nan or plus infinity
ImportanceDiagnosticResult run_importance_diagnostic(const std::string& name, const PairLogRatio& log_ratio,
                                                     const ImportanceDiagnosticOptions& options,
                                                     const RunContext& run);

/// log p(x | theta)/p(x) of the problem in closed form.
PairLogRatio exact_pair_log_ratio();
/// The log ratio of an estimator of one theta and one x, which is copied; `run.pool` must outlive it.
/// Errors   ShapeError: another number of columns; UnsupportedError: a success model
PairLogRatio pair_log_ratio(const RatioEstimator& estimator, const RunContext& run);

}  // namespace nrec
