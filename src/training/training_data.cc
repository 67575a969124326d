#include "training/training_data.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "training/standardise_data.h"

namespace nrec {

namespace {

void check_rows(const Prior& prior, const SimulationSet& simulations) {
  if (simulations.dim_theta() != prior.dim()) {
    throw ShapeError("train: theta has " + std::to_string(simulations.dim_theta()) +
                     " columns but the prior has " + std::to_string(prior.dim()) +
                     " parameters; list every column of theta under [parameters], in order");
  }
  if (simulations.x.rows() != simulations.theta.rows()) {
    throw ShapeError("train: theta has " + std::to_string(simulations.theta.rows()) + " rows but x has " +
                     std::to_string(simulations.x.rows()) +
                     "; row i of x must be the simulation of row i of theta");
  }
  const auto refuse = [](const char* name, std::size_t row, std::size_t column, double value,
                         const char* remedy) {
    throw DomainError("train: " + std::string(name) + "[" + std::to_string(row) + ", " +
                      std::to_string(column) + "] = " + number_text(value) + "; " + remedy);
  };
  for (std::size_t i = 0; i < simulations.num_rows(); ++i) {
    for (std::size_t j = 0; j < simulations.dim_theta(); ++j) {
      if (!std::isfinite(simulations.theta(i, j)))
        refuse("theta", i, j, simulations.theta(i, j), "parameters must be finite");
    }
    for (std::size_t j = 0; j < simulations.dim_x(); ++j) {
      if (!std::isfinite(simulations.x(i, j)))
        refuse("x", i, j, simulations.x(i, j),
               "rows of failed simulations must be dealt with before training: without_failures() stops, "
               "models or drops them (--failures)");
    }
    if (!simulations.status.empty() && simulations.status[i] != RowStatus::ok) {
      throw DomainError(
          "train: row " + std::to_string(i) + " has the status \"" +
          std::string(row_status_name(simulations.status[i])) +
          "\"; rows of failed simulations must be dealt with before training: without_failures() "
          "stops, models or drops them (--failures)");
    }
    if (const std::string outside = prior.outside_text(simulations.theta.row(i), i); !outside.empty()) {
      throw DomainError(
          "train: theta" + outside +
          "; the simulations must be drawn from the prior that the problem names, and the columns of theta "
          "be in its order");
    }
  }
}

void check_options(const TrainingOptions& options) {
  std::string text;
  for (const std::string& sentence : broken_rules(options))
    text += (text.empty() ? "" : "\n") + ("train: " + sentence);
  if (!text.empty()) throw ConfigError(text);
}

void take_information_thetas(const TrainingOptions& options, std::size_t rows, TrainingData& data) {
  data.information_thetas = static_cast<std::size_t>(options.information_thetas);
  if (data.information_thetas < data.validation.size()) return;
  throw ShapeError(
      "train: information_thetas = " + std::to_string(options.information_thetas) + " needs at least " +
      std::to_string(data.information_thetas + 1) + " validation rows but only " +
      std::to_string(data.validation.size()) + " of the " + std::to_string(rows) +
      " simulations are validation rows; lower information_thetas to at most " +
      std::to_string(data.validation.size() - 1) + ", raise validation_fraction or simulate more");
}

std::vector<std::uint32_t> split_order(std::size_t rows, std::uint64_t seed) {
  std::vector<std::uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0u);
  RandomStream random(seed, Stream::split);
  random.shuffle(order);
  return order;
}

/// floor((1 - f) N), where a product that is whole up to rounding counts as whole.
std::size_t num_training_rows(std::size_t rows, double validation_fraction) {
  return static_cast<std::size_t>(
      std::floor((1.0 - validation_fraction) * static_cast<double>(rows) * (1 + 1e-12)));
}

void split_rows(std::size_t rows, const TrainingOptions& options, std::uint64_t seed, TrainingData& data) {
  const std::vector<std::uint32_t> order = split_order(rows, seed);
  const std::size_t num_training = num_training_rows(rows, options.validation_fraction);
  // Contrastive thetas from the prior ask nothing of the batch.
  const std::size_t wanted = options.regime == "prior" ? 1 : data.loss.distinct_contrastive() + 1;
  data.batch_size = static_cast<std::size_t>(options.training_batch_size);
  if (options.regime != "joint") data.batch_size = std::min(data.batch_size, num_training);
  if (data.batch_size < wanted || num_training == rows) {
    const std::size_t offset =
        data.loss.kind() == LossKind::nre_b ? 0 : 1;  // num_classes = distinct + 1 - offset
    const std::size_t largest = data.batch_size > offset ? data.batch_size - offset : 0;
    std::string text = "train: num_classes = " + std::to_string(data.loss.num_classes()) +
                       " needs a batch of at least " + std::to_string(wanted) + " rows but ";
    if (num_training == rows || num_training == 0) {
      throw ShapeError(
          "train: " + std::to_string(rows) +
          " simulations cannot be split into training and validation rows with validation_fraction = " +
          number_text(options.validation_fraction) + "; simulate more");
    }
    if (data.batch_size < num_training || options.regime == "joint") {
      text += "training_batch_size = " + std::to_string(options.training_batch_size) +
              "; raise it or lower num_classes to at most " + std::to_string(largest);
    } else {
      text += "only " + std::to_string(num_training) + " of the " + std::to_string(rows) +
              " simulations are training rows; simulate more";
      if (largest >= 1 + (1 - offset)) text += " or lower num_classes to at most " + std::to_string(largest);
    }
    throw ShapeError(text);
  }
  if (options.regime != "joint" && options.steps_per_epoch != TrainingOptions{}.steps_per_epoch) {
    data.warnings.push_back("steps_per_epoch = " + std::to_string(options.steps_per_epoch) +
                            " has no effect with regime = \"" + options.regime +
                            "\": an epoch passes over all training rows; it is for regime = \"joint\"");
  }
  data.training.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(num_training));
  data.validation.assign(order.begin() + static_cast<std::ptrdiff_t>(num_training), order.end());
  if (data.validation.size() < wanted) {
    data.warnings.push_back(
        "only " + std::to_string(data.validation.size()) +
        " validation rows: fewer than num_classes = " + std::to_string(data.loss.num_classes()) +
        " asks for, so their contrastive parameters come from all simulations; "
        "the validation loss is uncertain, see its standard error");
  }
}

}  // namespace

std::vector<std::uint32_t> validation_rows(std::size_t num_rows, double validation_fraction,
                                           std::uint64_t seed) {
  const std::vector<std::uint32_t> order = split_order(num_rows, seed);
  return {order.begin() + static_cast<std::ptrdiff_t>(num_training_rows(num_rows, validation_fraction)),
          order.end()};
}

TrainingData prepare_training_data(const Prior& prior, const SimulationSet& simulations,
                                   const TrainingOptions& options, const RunContext& run,
                                   const Simulator* simulator) {
  check_options(options);
  check_rows(prior, simulations);
  const std::size_t failed = simulations.failed_theta.rows() + simulations.num_dropped;
  if (options.regime != "fixed" && failed > 0) {
    throw UnsupportedError(
        "train: regime = \"" + options.regime + "\" with " + std::to_string(failed) +
        " failed simulations is not in this version: parameters of the successes are not draws "
        "from the prior; use regime = \"fixed\" with failures = \"model\"");
  }
  TrainingData data(ContrastiveLoss(loss_kind(options.loss), static_cast<std::size_t>(options.num_classes),
                                    options.gamma, options.contrast == "shared"));
  split_rows(simulations.num_rows(), options, run.seed, data);
  take_information_thetas(options, simulations.num_rows(), data);
  standardise(prior, simulations, options, run, simulator, data);
  data.x_low.assign(simulations.x.row(0).begin(), simulations.x.row(0).end());
  data.x_high = data.x_low;
  for (std::size_t i = 1; i < simulations.num_rows(); ++i) {
    for (std::size_t j = 0; j < simulations.dim_x(); ++j) {
      data.x_low[j] = std::min(data.x_low[j], simulations.x(i, j));
      data.x_high[j] = std::max(data.x_high[j], simulations.x(i, j));
    }
  }
  return data;
}

}  // namespace nrec
