#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/diagnostic_parts.h"
#include "experiments/toy_problem.h"
#include "experiments/weighted_classifier.h"

namespace nrec {

namespace {

constexpr double kTheta = 1.0;
constexpr std::array kWeights = {"weighted", "unweighted", "normalised", "biased"};

/// x of both labels at theta = 1, with the log ratios of the zeros.
struct LabelledX {
  std::vector<double> ones, zeros, log_ratio;

  LabelledX(const AskedRatio& ratio, std::int64_t rows, RowBlock ones_block, RowBlock zeros_block)
      : ones(static_cast<std::size_t>(rows)), zeros(ones.size()) {
    toy::conditional_rows(kTheta, ratio.seed(), first_row(ones_block), ones);
    toy::marginal_rows(ratio.seed(), first_row(zeros_block), zeros);
    log_ratio = ratio(kTheta, zeros);
  }

  /// Weights of the zeros, as they stand: the classifier sees their scale.
  std::vector<double> weights(std::string_view kind, const NormalisationCurve& normalisation) const {
    std::vector<double> weights(zeros.size(), 1.0);
    if (kind == "unweighted") return weights;
    for (std::size_t i = 0; i < zeros.size(); ++i) {
      double log_weight = log_ratio[i];
      if (kind == "normalised") log_weight -= normalisation(zeros[i]);
      if (kind == "biased") log_weight += known_bias(zeros[i]);
      weights[i] = std::exp(log_weight);
    }
    return weights;
  }
};

/// z = (x - mean) / sd of the zeros of the training, for every x that the classifier sees.
class Scale {
 public:
  explicit Scale(std::span<const double> zeros) {
    const auto n = static_cast<double>(zeros.size());
    for (const double x : zeros) mean_ += x / n;
    double squares = 0.0;
    for (const double x : zeros) squares += (x - mean_) * (x - mean_);
    sd_ = std::sqrt(squares / (n - 1.0));
  }
  std::vector<double> operator()(std::span<const double> values) const {
    std::vector<double> scaled;
    for (const double x : values) scaled.push_back((x - mean_) / sd_);
    return scaled;
  }

 private:
  double mean_ = 0.0, sd_ = 1.0;
};

/// Why weights are of no use, or "".
std::string fault(std::span<const double> weights) {
  double sum = 0.0;
  for (const double weight : weights) sum += weight;
  if (!std::isfinite(sum)) return "weights are too large for float64";
  if (!(sum > 0.0)) return "all weights are 0";
  return "";
}

/// Data that all classifiers share, standardised.
struct RocData {
  LabelledX training, test;
  std::vector<double> training_ones, training_zeros, test_ones, test_zeros;

  RocData(const AskedRatio& ratio, const ImportanceDiagnosticOptions& options)
      : training(ratio, options.num_classifier_rows, RowBlock::classifier_ones, RowBlock::classifier_zeros),
        test(ratio, options.num_roc_rows, RowBlock::roc_ones, RowBlock::roc_zeros) {
    const Scale scale(training.zeros);
    training_ones = scale(training.ones);
    training_zeros = scale(training.zeros);
    test_ones = scale(test.ones);
    test_zeros = scale(test.zeros);
  }
};

RocComparison without_area(RocComparison comparison) {
  comparison.roc.auc = comparison.roc.standard_error = comparison.roc.p_value = std::nan("");
  comparison.held_out_loss = std::nan("");
  return comparison;
}

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

RocComparison compare_roc(const char* kind, const RocData& data, const NormalisationCurve& normalisation,
                          const WeightedClassifierOptions& options, std::uint64_t seed) {
  RocComparison comparison{.weights = kind, .roc = {}, .message = ""};
  const std::vector<double> training_weights = data.training.weights(kind, normalisation);
  const std::vector<double> test_weights = data.test.weights(kind, normalisation);
  comparison.message = fault(training_weights);
  if (comparison.message.empty()) comparison.message = fault(test_weights);
  if (!comparison.message.empty()) return without_area(std::move(comparison));
  // All classifiers start from the same weights and see the pairs in the same order: only the weights of rows differ.
  WeightedClassifier classifier(RandomStream(seed, Stream::check, first_row(RowBlock::classifier_weights)));
  comparison.held_out_loss =
      classifier.train(data.training_ones, data.training_zeros, training_weights, options);
  std::vector<double> ones, zeros;
  for (const double x : data.test_ones) ones.push_back(classifier.score(x));
  for (const double x : data.test_zeros) zeros.push_back(classifier.score(x));
  if (!all_finite(ones) || !all_finite(zeros)) {
    comparison.message = "the classifier diverged";
    return without_area(std::move(comparison));
  }
  const std::vector<double> equal(ones.size(), 1.0);
  comparison.roc = weighted_auc(ones, zeros, equal, test_weights);
  comparison.effective_sample_size = effective_sample_size(test_weights);
  return comparison;
}

}  // namespace

std::vector<RocComparison> compare_rocs(const AskedRatio& ratio, const NormalisationCurve& normalisation,
                                        const ImportanceDiagnosticOptions& options) {
  ratio.say("classifiers");
  const RocData data(ratio, options);
  const WeightedClassifierOptions training{
      .epochs = options.classifier_epochs,
      .batch_rows = static_cast<std::size_t>(options.classifier_batch_rows),
      .learning_rate = options.classifier_learning_rate,
      .stop = ratio.stop()};
  std::vector<RocComparison> comparisons(kWeights.size());
  ratio.pool().run(kWeights.size(), [&](std::size_t i, int) {
    comparisons[i] = compare_roc(kWeights[i], data, normalisation, training, ratio.seed());
  });
  ratio.go_on();
  return comparisons;
}

}  // namespace nrec
