#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nrec/core/options.h"
#include "nrec/core/run_context.h"
#include "nrec/simulation/simulation_set.h"
#include "nrec/simulation/simulator.h"
#include "nrec/training/ratio_estimator.h"

namespace nrec {

/// Size and kind of the network.
struct NetworkOptions {
  int hidden_features = 128;
  int num_blocks = 3;
  std::string norm = "layer";
};

/// Loss, batches, optimiser and stopping rule.
struct TrainingOptions {
  std::string loss = "nre-c";
  int num_classes = 9;
  double gamma = 1.0;
  std::string contrast = "shared";
  std::string regime = "fixed";
  int steps_per_epoch = 20;
  int training_batch_size = 0;  // 0: settled_options()
  double learning_rate = 0.0;   // 0: settled_options()
  std::string learning_rate_schedule = "cosine";
  double clip_max_norm = 5.0;
  double weight_decay = 0.3;
  double ema_epochs = 2.0;
  double validation_fraction = 0.1;
  int max_num_epochs = 0;  // 0: settled_options()
  int stop_after_epochs = 0;
  std::string select_epoch = "loss";
  int information_thetas = 0;
  std::string information_epochs = "all";
  std::string gradients = "reset";
  std::string standardise_x = "independent";
  std::string standardise_from = "training";
};

/// The options with the values that are left to nrec (0) filled in for so many simulations. Mini-batches have 256 rows, fewer where
/// an epoch would have fewer than 16 of them, but at least 16 and what num_classes needs. The rate of Adam is 1e-2 at 256 rows
/// and above, below in proportion to the root of the rows. There are 120 epochs, of more than 10,000 simulations fewer in proportion
/// to the fourth root of their number (at least 10), and more where that would be fewer than 1,920 steps.
/// docs/decisions/0010-learning-rate.md, docs/decisions/0011-weight-decay-and-average.md
TrainingOptions settled_options(TrainingOptions options, std::size_t num_simulations);

/// Sets both to the published setting of NRE-C: batch norm, K = 99, mini-batches of 1,024, Adam at a constant 5e-4 without decay
/// or average of the weights, at most 1,000 epochs of which the best is kept; gradients and contrastive sets stay those of nrec. Source: [Miller2022, app. B]
void use_published_settings(NetworkOptions& network, TrainingOptions& training);

/// Sections [network] and [training]: names, ranges and help. The table is bound to the structs.
void describe(OptionTable& table, NetworkOptions& options);
void describe(OptionTable& table, TrainingOptions& options);

/// What options say against each other or against their choices, a sentence each; empty when nothing.
std::vector<std::string> broken_rules(const TrainingOptions& options);

/// Why training ended.
enum class TrainingStatus {
  converged,     // the value of select_epoch stopped improving
  epochs_done,   // max_num_epochs reached
  budget_spent,  // time limit
  stopped,       // a stop was requested; the checkpoint continues it
  diverged,      // the loss became non-finite; the best earlier state is kept
};
std::string_view training_status_name(TrainingStatus status);

/// What training did and whether its result may be used.
struct TrainingSummary {
  TrainingStatus status = TrainingStatus::epochs_done;
  bool usable = false;  // there is an estimator with a finite validation loss
  std::string message;  // one sentence: why it ended and what to do
  int num_epochs = 0;
  int best_epoch = 0;
  double best_validation_loss = 0.0;  // at best_epoch, whatever chose it
  double best_validation_loss_se = 0.0;
  std::size_t num_training_rows = 0;  // regime joint: rows made for mini-batches so far
  std::size_t num_validation_rows = 0, batch_size = 0;
  double seconds = 0.0;
  double step_seconds = 0.0;        // of them, in the steps of this call; not those of the success network
  double validation_seconds = 0.0;  // and in measuring its epochs
  std::string isa;
  std::vector<std::string> warnings;
  // Of learning P(ok | theta); empty or 0 when no row failed.
  std::string success_message;
  int success_epochs = 0;
  double success_seconds = 0.0;
};

/// What training returns.
struct TrainingResult {
  std::optional<RatioEstimator> estimator;  // empty when not usable
  TrainingSummary summary;
};

/// Where training leaves its state so that it can go on after any end of the process. Atomic; at most one write a second
/// besides the ones at stop and end.
struct CheckpointOptions {
  std::filesystem::path path;  // empty: none
  bool resume = false;         // go on from `path` if it exists
};

/// Simulations -> ratio estimator.
///
/// What a mini-batch is made of, by options.regime:
///   fixed   rows of the simulations; contrastive thetas are those of its other rows
///   prior   rows of the simulations; contrastive thetas are drawn from the prior, anew for every mini-batch, so that
///           num_classes has no bound
///   joint   rows that `simulator` makes for this mini-batch, steps_per_epoch of them an epoch; contrastive thetas as for fixed. The
///           given simulations only standardise and validate. Row i of step s is row N + s B + i of a campaign with this seed
///
/// Adam on mini-batches of contrastive pairs, its weight matrices decaying by weight_decay times the rate of the step [Loshchilov2019];
/// after every epoch the loss of all validation rows on fixed contrastive sets, with the moving average of the weights over
/// ema_epochs [MoralesBrotons2024]; the state of the epoch that is best by options.select_epoch is kept. Every random choice is a pure function of (seed, what, epoch or step): equal bits
/// for any number of threads and after a kill and resume.
///
/// A set with failed_theta (without_failures(), rule model) has P(ok | theta) learnt first, from all rows; the ratio is trained
/// on the successes. The first takes at most a quarter of the time limit.
///
/// Errors   UnsupportedError: a regime other than fixed where rows failed, or joint without a simulator; ShapeError: dimensions of prior and simulations differ, too few rows for num_classes or information_thetas (with the largest that fits);
///          DomainError: a row of regime joint failed, constant theta, theta outside the prior's support, failed rows left in theta and x;
///          ConfigError: option values, broken_rules(); IoError: checkpoint of another problem or unreadable
/// Cost     per step about 12 R H^2 B (K + 1) floating-point operations
/// Source   [Miller2022, sec. 2-4, app. B], [Loshchilov2019], [MoralesBrotons2024]
TrainingResult train(const Prior& prior, const SimulationSet& simulations, const NetworkOptions& network,
                     const TrainingOptions& options, const RunContext& run,
                     const CheckpointOptions& checkpoint = {}, const Simulator* simulator = nullptr);

/// Row numbers that training keeps for validation: a pure function of (seed, number of rows, validation_fraction).
std::vector<std::uint32_t> validation_rows(std::size_t num_rows, double validation_fraction,
                                           std::uint64_t seed);

}  // namespace nrec
