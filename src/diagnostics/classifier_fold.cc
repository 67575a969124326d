#include "diagnostics/classifier_fold.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nrec {

namespace {

constexpr std::size_t kHidden = 32;
constexpr std::size_t kBatchRows = 128;
constexpr int kMostEpochs = 150;
constexpr int kPatience = 12;  // epochs without a better loss on the pairs held back
constexpr SmallMlpAdam kAdam = {.learning_rate = 3e-3, .weight_penalty = 1e-3};
constexpr float kLeastProbability = 1e-6f;

}  // namespace

ClassifierFold::ClassifierFold(MatrixView<const float> features, std::span<const std::uint8_t> labels,
                               std::span<const double> weights, std::vector<std::uint32_t> train_pairs,
                               RandomStream random)
    : features_(features),
      labels_(labels),
      weights_(weights),
      train_pairs_(std::move(train_pairs)),
      random_(random),
      network_(features.cols, kHidden, kBatchRows, kAdam) {
  random_.shuffle(train_pairs_);
  const std::size_t kept = train_pairs_.size() - train_pairs_.size() / 5;
  held_back_pairs_.assign(train_pairs_.begin() + static_cast<std::ptrdiff_t>(kept), train_pairs_.end());
  train_pairs_.resize(kept);
  initialise_weights();
}

// Uniform(-b, b), b = sqrt(6 / (fan_in + fan_out)), layer by layer.
void ClassifierFold::initialise_weights() {
  std::vector<float> values;
  values.reserve(network_.num_parameters());
  const auto layer = [&](std::size_t fan_in, std::size_t fan_out) {
    const double bound = std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
    for (std::size_t i = 0; i < (fan_in + 1) * fan_out; ++i)
      values.push_back(static_cast<float>(random_.uniform(-bound, bound)));
  };
  layer(features_.cols, kHidden);
  layer(kHidden, kHidden);
  layer(kHidden, 1);
  network_.set_parameters(values);
}

// As many zeros as ones, drawn by systematic resampling, so that a row appears as often as its weight says.
void ClassifierFold::epoch() {
  double total = 0.0;
  for (const std::uint32_t pair : train_pairs_) total += weights_[pair];
  rows_ = train_pairs_;
  const double step = total / static_cast<double>(train_pairs_.size());
  double next = random_.uniform() * step, below = 0.0;
  for (const std::uint32_t pair : train_pairs_) {
    below += weights_[pair];
    for (; next < below && rows_.size() < 2 * train_pairs_.size(); next += step)
      rows_.push_back(zero_of(pair));
  }
  random_.shuffle(rows_);
  for (std::size_t first = 0; first < rows_.size(); first += kBatchRows) {
    const std::size_t count = std::min(kBatchRows, rows_.size() - first);
    network_.train_step(features_, labels_, std::span<const std::uint32_t>(rows_).subspan(first, count));
  }
}

double ClassifierFold::held_back_loss() {
  std::vector<std::uint32_t> zeros;
  for (const std::uint32_t pair : held_back_pairs_) zeros.push_back(zero_of(pair));
  const std::vector<float> of_ones = score(held_back_pairs_);
  const std::vector<float> of_zeros = score(zeros);
  double one_loss = 0.0, zero_loss = 0.0, total = 0.0;
  for (std::size_t i = 0; i < zeros.size(); ++i) {
    const double weight = weights_[held_back_pairs_[i]];
    one_loss -= std::log(static_cast<double>(std::max(of_ones[i], kLeastProbability)));
    zero_loss -= weight * std::log(static_cast<double>(std::max(1.0f - of_zeros[i], kLeastProbability)));
    total += weight;
  }
  return one_loss / static_cast<double>(zeros.size()) + (total > 0.0 ? zero_loss / total : 0.0);
}

void ClassifierFold::train() {
  std::vector<float> best(network_.num_parameters());
  network_.get_parameters(best);
  double best_loss = std::numeric_limits<double>::infinity();
  int since_best = 0;
  for (int i = 0; i < kMostEpochs && since_best < kPatience; ++i) {
    epoch();
    const double loss = held_back_loss();
    ++since_best;
    if (!(loss < best_loss)) continue;
    best_loss = loss;
    since_best = 0;
    network_.get_parameters(best);
  }
  network_.set_parameters(best);
}

std::vector<float> ClassifierFold::score(std::span<const std::uint32_t> rows) {
  std::vector<float> probabilities(rows.size());
  network_.predict(features_, rows, probabilities);
  return probabilities;
}

}  // namespace nrec
