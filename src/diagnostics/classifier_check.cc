#include "nrec/diagnostics/classifier_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "diagnostics/classifier_fold.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/training/standardiser.h"

namespace nrec {

namespace {

constexpr std::size_t kFolds = 5;
constexpr std::size_t kLeastRows = 50;
constexpr float kClip = 10.0f;  // in quartile sds: beyond, how far out says nothing more

void check(MatrixView<const double> ones, MatrixView<const double> zeros, std::span<const double> weights) {
  if (ones.rows != zeros.rows || ones.cols != zeros.cols || weights.size() != ones.rows || ones.cols == 0)
    throw ShapeError("classifier_check: ones [" + std::to_string(ones.rows) + ", " +
                     std::to_string(ones.cols) + "], zeros [" + std::to_string(zeros.rows) + ", " +
                     std::to_string(zeros.cols) + "], weights [" + std::to_string(weights.size()) +
                     "] must have equal rows and columns, at least one column");
  if (ones.rows < kLeastRows)
    throw ShapeError("classifier_check: there are " + std::to_string(ones.rows) +
                     " rows; it needs at least " + std::to_string(kLeastRows));
}

/// Ones and behind them zeros, scaled and clipped.
Matrix<float> scaled_features(MatrixView<const double> ones, MatrixView<const double> zeros) {
  Matrix<double> all(2 * ones.rows, ones.cols);
  for (std::size_t i = 0; i < all.rows(); ++i) {
    const auto row = i < ones.rows ? ones.row(i) : zeros.row(i - ones.rows);
    for (std::size_t j = 0; j < row.size(); ++j) {
      if (std::isnan(row[j]))
        throw DomainError("classifier_check: a feature is nan, row " + std::to_string(i) + ", column " +
                          std::to_string(j));
      all(i, j) = std::clamp(row[j], -1e30, 1e30);
    }
  }
  StandardiserReport report;
  const Standardiser scale = fit_standardiser(all, StandardiserMethod::robust, report);
  Matrix<float> features(all.rows(), all.cols());
  scale.apply(all, features);
  for (float& value : features.values()) value = std::clamp(value, -kClip, kClip);
  return features;
}

/// Places of scores in their order, divided by their number; equal scores share a place. Comparable between folds.
std::vector<double> relative_places(std::span<const float> scores) {
  std::vector<float> sorted(scores.begin(), scores.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> places;
  for (const float score : scores) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), score);
    places.push_back(0.5 * static_cast<double>((first - sorted.begin()) + (last - sorted.begin())) /
                     static_cast<double>(sorted.size()));
  }
  return places;
}

}  // namespace

WeightedAuc classifier_check(MatrixView<const double> ones, MatrixView<const double> zeros,
                             std::span<const double> weights, std::uint64_t seed, ThreadPool& pool) {
  check(ones, zeros, weights);
  const std::size_t n = ones.rows;
  const Matrix<float> features = scaled_features(ones, zeros);
  std::vector<std::uint8_t> labels(2 * n, 0);
  std::fill(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(n), std::uint8_t{1});
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  RandomStream(seed, Stream::check).shuffle(order);
  std::vector<double> one_scores(n), zero_scores(n);
  pool.run(kFolds, [&](std::size_t fold, int) {
    std::vector<std::uint32_t> train, test;
    for (std::size_t i = 0; i < n; ++i) (i % kFolds == fold ? test : train).push_back(order[i]);
    ClassifierFold classifier(features, labels, weights, train, RandomStream(seed, Stream::check, 1 + fold));
    classifier.train();
    std::vector<std::uint32_t> rows = test;
    for (const std::uint32_t pair : test) rows.push_back(static_cast<std::uint32_t>(n) + pair);
    const std::vector<double> places = relative_places(classifier.score(rows));
    for (std::size_t i = 0; i < test.size(); ++i) {
      one_scores[test[i]] = places[i];
      zero_scores[test[i]] = places[test.size() + i];
    }
  });
  const std::vector<double> equal(n, 1.0);
  return weighted_auc(one_scores, zero_scores, equal, weights);
}

}  // namespace nrec
