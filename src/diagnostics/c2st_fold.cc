#include "diagnostics/c2st_fold.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace nrec {
namespace {

constexpr std::size_t kHiddenPerColumn = 10;
constexpr std::size_t kBatchRows = 200;
constexpr double kTolerance = 1e-4;     // [nats] an epoch must gain, or it counts as flat
constexpr int kAllowedFlatEpochs = 10;  // training stops at one more in a row
// Regularised variant.
constexpr std::size_t kValidationShare = 10;  // one row in so many judges the epochs
constexpr int kPatience = 10;                 // epochs in a row without a better loss of these rows

}  // namespace

C2stFold::C2stFold(MatrixView<const float> features, std::span<const std::uint8_t> labels,
                   std::vector<std::uint32_t> train_rows, std::vector<std::uint32_t> test_rows,
                   const C2stOptions& options)
    : features_(features),
      labels_(labels),
      order_(std::move(train_rows)),
      shuffle_(order_.size()),
      old_order_(order_.size()),
      test_rows_(std::move(test_rows)),
      batch_rows_(std::min(kBatchRows, order_.size())),
      max_iterations_(options.max_iterations),
      keep_loss_curve_(options.keep_loss_curves),
      random_(options.seed),
      network_(features.cols, kHiddenPerColumn * features.cols, batch_rows_, SmallMlpAdam{}, options.target) {
  initialise_weights();
  if (options.regularised) hold_out_validation_rows();
}

void C2stFold::hold_out_validation_rows() {
  shuffle_order();
  const std::size_t count = std::max<std::size_t>(order_.size() / kValidationShare, 1);
  validation_rows_.assign(order_.end() - static_cast<std::ptrdiff_t>(count), order_.end());
  std::sort(validation_rows_.begin(), validation_rows_.end());
  order_.resize(order_.size() - count);
  shuffle_.resize(order_.size());
  old_order_.resize(order_.size());
  validation_probabilities_.resize(count);
  best_parameters_.resize(network_.num_parameters());
  network_.get_parameters(best_parameters_);
}

// Keeps the weights of the epoch whose cross-entropy on the held-out rows is lowest, and puts them back at the end.
void C2stFold::judge_by_validation() {
  network_.predict(features_, validation_rows_, validation_probabilities_);
  double loss = 0.0;
  for (std::size_t i = 0; i < validation_rows_.size(); ++i) {
    const double p = std::clamp(static_cast<double>(validation_probabilities_[i]), 1e-7, 1.0 - 1e-7);
    loss -= std::log(labels_[validation_rows_[i]] != 0 ? p : 1.0 - p);
  }
  ++epochs_without_better_;
  if (loss < best_validation_loss_) {
    best_validation_loss_ = loss;
    epochs_without_better_ = 0;
    network_.get_parameters(best_parameters_);
  }
  if (epochs_without_better_ >= kPatience) {
    is_finished_ = true;
    status_ = C2stFoldStatus::converged;
  }
  if (is_finished_) network_.set_parameters(best_parameters_);
}

// Weights and biases uniform(-b, b), b = sqrt(6 / (fan_in + fan_out)), layer by layer: the matrix row by row,
// then the biases.
void C2stFold::initialise_weights() {
  const std::size_t d = features_.cols;
  const std::size_t hidden = kHiddenPerColumn * d;
  std::vector<float> values;
  values.reserve(network_.num_parameters());
  const auto layer = [&](std::size_t fan_in, std::size_t fan_out) {
    const double bound = std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
    for (std::size_t i = 0; i < (fan_in + 1) * fan_out; ++i) {
      values.push_back(static_cast<float>(-bound + 2.0 * bound * random_.uniform()));
    }
  };
  layer(d, hidden);
  layer(hidden, hidden);
  layer(hidden, 1);
  network_.set_parameters(values);
}

// New order = old order composed with a shuffle of 0 .. n - 1.
void C2stFold::shuffle_order() {
  std::iota(shuffle_.begin(), shuffle_.end(), 0u);
  random_.shuffle(shuffle_);
  std::swap(order_, old_order_);
  for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = old_order_[shuffle_[i]];
}

void C2stFold::advance_epoch() {
  shuffle_order();
  double sum = 0.0;
  for (std::size_t first = 0; first < order_.size(); first += batch_rows_) {
    const std::size_t rows = std::min(batch_rows_, order_.size() - first);
    sum +=
        static_cast<double>(rows) *
        network_.train_step(features_, labels_, std::span<const std::uint32_t>(order_).subspan(first, rows));
  }
  judge(sum / static_cast<double>(order_.size()));
}

void C2stFold::judge(double loss) {
  ++epochs_;
  loss_ = loss;
  if (keep_loss_curve_) loss_curve_.push_back(loss);
  if (!std::isfinite(loss)) {
    is_finished_ = true;
    status_ = C2stFoldStatus::diverged;
    return;
  }
  flat_epochs_ = loss > best_loss_ - kTolerance ? flat_epochs_ + 1 : 0;
  best_loss_ = std::min(best_loss_, loss);
  if (flat_epochs_ > kAllowedFlatEpochs && validation_rows_.empty()) {
    is_finished_ = true;
    status_ = C2stFoldStatus::converged;
  } else if (epochs_ >= max_iterations_) {
    is_finished_ = true;
    status_ = C2stFoldStatus::epoch_limit;
  }
  if (!validation_rows_.empty()) judge_by_validation();
}

C2stFold::Score C2stFold::score() {
  if (status_ == C2stFoldStatus::diverged || status_ == C2stFoldStatus::stopped) {
    return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  }
  std::vector<float> probabilities(test_rows_.size());
  network_.predict(features_, test_rows_, probabilities);
  std::vector<std::uint8_t> truth(test_rows_.size());
  std::size_t correct = 0;
  for (std::size_t i = 0; i < test_rows_.size(); ++i) {
    truth[i] = labels_[test_rows_[i]];
    if ((probabilities[i] > 0.5f) == (truth[i] != 0)) ++correct;
  }
  return {static_cast<double>(correct) / static_cast<double>(test_rows_.size()),
          roc_auc(probabilities, truth)};
}

double roc_auc(std::span<const float> probabilities, std::span<const std::uint8_t> labels) {
  std::vector<std::uint32_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return probabilities[a] < probabilities[b]; });
  double wins = 0.0;
  double zeros_below = 0.0;
  double ones_in_all = 0.0;
  for (std::size_t first = 0; first < order.size();) {
    double zeros = 0.0;
    double ones = 0.0;
    std::size_t last = first;
    for (; last < order.size() && probabilities[order[last]] == probabilities[order[first]]; ++last) {
      (labels[order[last]] != 0 ? ones : zeros) += 1.0;
    }
    wins += ones * (zeros_below + 0.5 * zeros);
    zeros_below += zeros;
    ones_in_all += ones;
    first = last;
  }
  return wins / (zeros_below * ones_in_all);  // 0 / 0 = nan when a label is missing
}

}  // namespace nrec
