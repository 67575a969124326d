#include "experiments/weighted_classifier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "nrec/diagnostics/weighted_auc.h"

namespace nrec {
namespace {

constexpr std::size_t kRows = 2000;
constexpr WeightedClassifierOptions kShort = {.epochs = 30, .batch_rows = 100, .learning_rate = 3e-3};

/// Ones ~ N(shift, 1) and zeros ~ N(0, 1).
struct Rows {
  std::vector<double> ones, zeros, weights;

  Rows(double shift, std::uint64_t seed) : weights(kRows, 1.0) {
    RandomStream random(seed, Stream::check);
    for (std::size_t i = 0; i < kRows; ++i) {
      ones.push_back(shift + random.normal());
      zeros.push_back(random.normal());
    }
  }
  /// exp(shift x - shift^2/2): the weighted zeros are N(shift, 1).
  void weight_to(double shift) {
    for (std::size_t i = 0; i < kRows; ++i) weights[i] = std::exp(shift * zeros[i] - 0.5 * shift * shift);
  }
};

std::vector<double> scores(const WeightedClassifier& classifier, const std::vector<double>& x) {
  std::vector<double> result;
  for (const double value : x) result.push_back(classifier.score(value));
  return result;
}

WeightedAuc area(const WeightedClassifier& classifier, const Rows& rows) {
  const std::vector<double> equal(kRows, 1.0);
  return weighted_auc(scores(classifier, rows.ones), scores(classifier, rows.zeros), equal, rows.weights);
}

TEST(WeightedClassifier, FindsTheBestAreaOfTwoNormals) {
  const Rows rows(1.0, 1), fresh(1.0, 2);
  WeightedClassifier classifier(RandomStream(1, Stream::check, 1));
  classifier.train(rows.ones, rows.zeros, rows.weights, kShort);
  const WeightedAuc found = area(classifier, fresh);
  const double best = 0.5 * std::erfc(-0.5);  // Phi(1 / sqrt 2) = 0.7602
  EXPECT_NEAR(found.auc, best, 4.0 * found.standard_error);
}

TEST(WeightedClassifier, LearnsTheLogOddsOfItsWeightedRows) {
  Rows rows(0.0, 3);
  for (double& weight : rows.weights) weight = 3.0;
  WeightedClassifier classifier(RandomStream(1, Stream::check, 1));
  const double loss = classifier.train(rows.ones, rows.zeros, rows.weights, kShort);
  // One against three everywhere: log odds -log 3, loss (log 4 + 3 log(4/3)) / 2.
  EXPECT_NEAR(classifier.score(0.0), -std::log(3.0), 0.15);
  EXPECT_NEAR(loss, 0.5 * (std::log(4.0) + 3.0 * std::log(4.0 / 3.0)), 0.02);
}

TEST(WeightedClassifier, SeesNoDifferenceWhereWeightsMendIt) {
  Rows rows(0.5, 4), fresh(0.5, 5);
  WeightedClassifier classifier(RandomStream(1, Stream::check, 1)), control = classifier;
  control.train(rows.ones, rows.zeros, rows.weights, kShort);
  rows.weight_to(0.5);
  classifier.train(rows.ones, rows.zeros, rows.weights, kShort);
  const WeightedAuc without = area(control, fresh);
  EXPECT_GT(without.auc - 0.5, 5.0 * without.standard_error);
  fresh.weight_to(0.5);
  const WeightedAuc with = area(classifier, fresh);
  EXPECT_NEAR(with.auc, 0.5, 4.0 * with.standard_error);
}

TEST(WeightedClassifier, GradientIsThatOfTheLoss) {
  // A first step of Adam moves every weight by the learning rate against the sign of its gradient: for a small rate the loss of a
  // batch of everything falls by rate sum |gradient|, which grows with the rate in proportion.
  const Rows rows(1.0, 6);
  const auto loss = [&](const WeightedClassifier& classifier) {
    double sum = 0.0;
    for (std::size_t i = 0; i < kRows; ++i)
      sum += std::log1p(std::exp(-classifier.score(rows.ones[i]))) +
             std::log1p(std::exp(classifier.score(rows.zeros[i])));
    return sum / (2.0 * kRows);
  };
  const WeightedClassifier start(RandomStream(1, Stream::check, 1));
  const auto fall = [&](double rate) {
    WeightedClassifier classifier = start;
    classifier.train(rows.ones, rows.zeros, rows.weights,
                     {.epochs = 1, .batch_rows = kRows, .learning_rate = rate, .training_share = 1.0});
    return loss(start) - loss(classifier);
  };
  const double once = fall(1e-5), twice = fall(2e-5);
  EXPECT_GT(once, 0.0);
  EXPECT_NEAR(twice / once, 2.0, 0.02);
}

TEST(WeightedClassifier, IsAFunctionOfItsStreamAndStopsOnRequest) {
  const Rows rows(1.0, 7);
  WeightedClassifier first(RandomStream(1, Stream::check, 1)), second = first,
                                                               other(RandomStream(2, Stream::check, 1));
  StopRequest stop;
  stop.request(15);
  WeightedClassifier stopped = first;
  const double untrained = stopped.score(0.3);
  first.train(rows.ones, rows.zeros, rows.weights, kShort);
  second.train(rows.ones, rows.zeros, rows.weights, kShort);
  EXPECT_EQ(first.score(0.3), second.score(0.3));
  EXPECT_NE(other.score(0.3), untrained);
  WeightedClassifierOptions options = kShort;
  options.stop = &stop;
  stopped.train(rows.ones, rows.zeros, rows.weights, options);
  EXPECT_EQ(stopped.score(0.3), untrained);
}

}  // namespace
}  // namespace nrec
