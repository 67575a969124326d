#include <algorithm>
#include <cmath>
#include <limits>

#include "nrec/training/train.h"

namespace nrec {

namespace {

constexpr double kBatchRows = 256, kLeastBatchRows = 16, kStepsPerEpoch = 16;
constexpr double kLearningRate = 1e-2;  // at kBatchRows
constexpr double kEpochs = 120, kLeastEpochs = 10, kLeastSteps = kEpochs * kStepsPerEpoch;
constexpr double kSimulationsOfAllEpochs = 10000;

/// Rows of a mini-batch that the contrastive sets of the loss ask for.
double rows_of_contrast(const TrainingOptions& options) {
  if (options.regime == "prior") return 1.0;
  if (options.loss == "nre-a") return 2.0;
  return options.num_classes + (options.loss == "nre-b" || std::isinf(options.gamma) ? 0.0 : 1.0);
}

}  // namespace

TrainingOptions settled_options(TrainingOptions options, std::size_t num_simulations) {
  const bool makes_rows = options.regime == "joint";
  const double rows =
      std::max(1.0, (1.0 - options.validation_fraction) * static_cast<double>(num_simulations));
  const double wished =
      makes_rows ? kBatchRows : std::clamp(rows / kStepsPerEpoch, kLeastBatchRows, kBatchRows);
  if (options.training_batch_size == 0) {
    constexpr double kMost = std::numeric_limits<int>::max();
    options.training_batch_size =
        static_cast<int>(std::min(std::max(wished, rows_of_contrast(options)), kMost));
  }
  const double batch =
      makes_rows ? options.training_batch_size : std::min<double>(options.training_batch_size, rows);
  if (options.learning_rate == 0.0)
    options.learning_rate = kLearningRate * std::sqrt(std::min(1.0, batch / kBatchRows));
  if (options.max_num_epochs == 0) {
    const double share = std::pow(kSimulationsOfAllEpochs / std::max<double>(1.0, num_simulations), 0.25);
    const double epochs = std::clamp(kEpochs * share, kLeastEpochs, kEpochs);
    const double steps = std::floor(rows / batch);
    options.max_num_epochs =
        static_cast<int>(std::lround(makes_rows ? kEpochs : std::max(epochs, kLeastSteps / steps)));
  }
  return options;
}

void use_published_settings(NetworkOptions& network, TrainingOptions& training) {
  network = {.hidden_features = 128, .num_blocks = 3, .norm = "batch"};
  training = {.num_classes = 99,
              .training_batch_size = 1024,
              .learning_rate = 5e-4,
              .learning_rate_schedule = "constant",
              .weight_decay = 0.0,
              .ema_epochs = 0.0,
              .max_num_epochs = 1000,
              .stop_after_epochs = 0};
}

void describe(OptionTable& table, NetworkOptions& options) {
  table.add("network", "hidden_features", &options.hidden_features,
            {.low = 1, .high = PairNetwork::kMostFeatures}, "width of the residual network");
  table.add("network", "num_blocks", &options.num_blocks, {.low = 0, .high = 64}, "residual blocks");
  table.add("network", "norm", &options.norm, {"batch", "layer", "none"},
            "normalisation in front of every rectifier");
}

void describe(OptionTable& table, TrainingOptions& options) {
  const char* section = "training";
  table.add(section, "loss", &options.loss, {"nre-a", "nre-b", "nre-c"}, "contrastive loss");
  table
      .add(section, "num_classes", &options.num_classes, {.low = 1},
           "contrastive parameters per row (K; number of atoms for nre-b)")
      .aliases = {"K", "num_atoms"};
  table.add(section, "gamma", &options.gamma, {.low = 0, .low_open = true},
            "odds of dependent to independent classes; inf is nre-b");
  table.add(section, "contrast", &options.contrast, {"shared", "independent"},
            "one contrastive set for both terms of the loss, or a separate draw for each, as published");
  table.add(section, "regime", &options.regime, {"fixed", "prior", "joint"},
            "where mini-batches come from. fixed: rows of the simulations; prior: the same with contrastive "
            "parameters drawn from the prior; joint: new simulations for every mini-batch (built-in tasks)");
  table.add(section, "steps_per_epoch", &options.steps_per_epoch, {.low = 1},
            "mini-batches of an epoch; regime joint only, the others pass over the training rows");
  table
      .add(section, "training_batch_size", &options.training_batch_size, {.low = 0},
           "rows of a mini-batch; 0: 256, fewer (to 16, and to what num_classes needs) where an epoch would "
           "have "
           "fewer than 16 steps; lowered to the training rows if there are fewer")
      .aliases = {"batch_size"};
  table.add(section, "learning_rate", &options.learning_rate, {.low = 0, .high = 1},
            "step size of Adam; 0: 1e-2, with mini-batches of fewer than 256 rows less, as the root of them");
  table.add(section, "learning_rate_schedule", &options.learning_rate_schedule,
            {"constant", "plateau", "cosine"},
            "constant; halved, from the best state on, whenever 5 epochs bring no better validation loss; or "
            "falling to 0 over max_num_epochs along a cosine");
  table.add(section, "clip_max_norm", &options.clip_max_norm, {.low = 0},
            "largest norm of a gradient; 0 = no clipping");
  table.add(section, "weight_decay", &options.weight_decay, {.low = 0, .high = 100},
            "decoupled weight decay (AdamW): a step at the learning rate r shrinks the weight matrices by "
            "the share r weight_decay; 0: none");
  table.add(section, "ema_epochs", &options.ema_epochs, {.low = 0, .high = 1e6},
            "epochs that the exponential moving average of the weights looks back; the average is what is "
            "measured after an epoch and kept; 0: the weights themselves");
  table.add(section, "validation_fraction", &options.validation_fraction,
            {.low = 0, .high = 1, .low_open = true, .high_open = true},
            "share of the simulations kept for validation");
  table.add(
      section, "max_num_epochs", &options.max_num_epochs, {.low = 0},
      "most passes over the training rows; 0: 120; of more than 10,000 simulations fewer (to 10), as the "
      "fourth root of their number; more where that would be fewer than 1,920 steps");
  table.add(
      section, "stop_after_epochs", &options.stop_after_epochs, {.low = 0},
      "stop after so many epochs without a better validation loss; 0 = never, keep the best of all epochs");
  table.add(
      section, "select_epoch", &options.select_epoch, {"loss", "nre-a", "i0"},
      "what chooses the epoch that is kept, and ends training: the smallest validation loss, the smallest "
      "one with gamma = 1 and K = 1, or the largest bound I0 on the mutual information");
  table.add(section, "information_thetas", &options.information_thetas, {.low = 0},
            "contrastive parameters per validation row that Z, I0 and I1 are estimated from, those of other "
            "validation rows; 0: those of the loss, at no further cost");
  table.add(section, "information_epochs", &options.information_epochs, {"all", "log"},
            "epochs in which Z, I0 and I1 are measured; log: the first 8, then 8 per doubling, and the last");
  table.add(section, "gradients", &options.gradients, {"reset", "accumulate"},
            "reset: a step takes the gradient of its mini-batch; accumulate: the clipped sum of those of its "
            "epoch so far, as in the published experiments");
  table.add(section, "standardise_x", &options.standardise_x, {"independent", "robust", "none"},
            "mean and sd per column of x, median and quartiles, or nothing");
  table.add(section, "standardise_from", &options.standardise_from, {"training", "first_batch"},
            "training: statistics of all simulations, constant columns keep their scale; first_batch: of the "
            "first mini-batch, sd at least 1e-7, as in the published experiments");
}

std::vector<std::string> broken_rules(const TrainingOptions& options) {
  TrainingOptions copy = options;
  OptionTable table;
  describe(table, copy);
  std::vector<std::string> sentences;
  for (const OptionEntry& entry : table.entries()) {
    if (entry.kind != OptionEntry::Kind::text || entry.choices.empty()) continue;
    const std::string value = std::get<std::string>(entry.current());
    if (std::ranges::find(entry.choices, value) == entry.choices.end())
      sentences.push_back(entry.name + " = \"" + value + "\" is unknown; it must be " + entry.rule_text());
  }
  if (options.information_thetas < 0)
    sentences.push_back("information_thetas = " + std::to_string(options.information_thetas) +
                        " must be at least 0");
  if (options.select_epoch == "i0" && options.information_epochs == "log")
    sentences.push_back(
        "select_epoch = \"i0\" compares I0 of all epochs, but information_epochs = \"log\" measures it in a "
        "few; "
        "take information_epochs = \"all\", or another select_epoch");
  return sentences;
}

}  // namespace nrec
