#include "nrec/diagnostics/sharpness_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nrec/priors/prior.h"

namespace nrec {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Three epochs, of which the second is kept.
RatioEstimator with_losses(double training, double validation, double validation_se) {
  RatioEstimator estimator{
      .network = PairNetwork({.dim_theta = 1, .dim_x = 1, .hidden_features = 4, .num_blocks = 1}),
      .prior = Prior::from_terms({{{"a"}, "uniform", {{"low", {0.0}}, {"high", {1.0}}}, "auto"}}),
      .theta_standardiser = {{0.0}, {1.0}},
      .x_standardiser = {{0.0}, {1.0}},
      .x_low = {0.0},
      .x_high = {1.0},
      .settings = {},
      .history = {}};
  estimator.history.resize(3);
  estimator.history[0] = {.training_loss = 9.0, .validation_loss = 9.0};
  estimator.history[1] = {
      .training_loss = training, .validation_loss = validation, .validation_loss_se = validation_se};
  estimator.history[2] = {.training_loss = 0.1, .validation_loss = 9.0};
  estimator.best_epoch = 2;
  return estimator;
}

Verdict verdict_at(double training, double validation, double validation_se) {
  Record record;
  const std::optional<CheckItem> item =
      sharpness_item(with_losses(training, validation, validation_se), record);
  EXPECT_TRUE(item);
  return item->verdict;
}

TEST(SharpnessItem, LooksAtTheKeptEpochAlone) {
  EXPECT_EQ(verdict_at(0.95, 1.0, 0.01), Verdict::trusted);
  EXPECT_EQ(verdict_at(1.10, 1.0, 0.01), Verdict::trusted);
  EXPECT_EQ(verdict_at(0.84, 1.0, 0.01), Verdict::cannot_tell);
}

TEST(SharpnessItem, AGapWithinTheErrorOfTheValidationLossIsNone) {
  EXPECT_EQ(verdict_at(0.7, 1.0, 0.16), Verdict::trusted);
  EXPECT_EQ(verdict_at(0.7, 1.0, 0.14), Verdict::cannot_tell);
}

TEST(SharpnessItem, SaysThatTheValidationLossRoseAfterwards) {
  Record record;
  RatioEstimator estimator = with_losses(0.95, 1.0, 0.01);
  std::optional<CheckItem> item = sharpness_item(estimator, record);
  EXPECT_EQ(item->verdict, Verdict::trusted);
  EXPECT_NE(item->caveat.find("after epoch 2 the validation loss rose from 1 to 9"), std::string::npos)
      << item->caveat;
  EXPECT_DOUBLE_EQ(std::get<double>(*record.find("sharpness.rise")), 8.0);
  EXPECT_EQ(passed_sentence("all checks passed", {{*item}}), "all checks passed; but " + item->caveat);
  estimator.history[2].validation_loss_se = 5.0;  // it may be chance
  EXPECT_EQ(sharpness_item(estimator, record)->caveat, "");
  estimator.history[2] = {.training_loss = 0.9, .validation_loss = 1.4};
  EXPECT_EQ(sharpness_item(estimator, record)->caveat, "");
  EXPECT_EQ(passed_sentence("all checks passed", {}), "all checks passed");
}

TEST(SharpnessItem, RecordsItsNumbers) {
  Record record;
  (void)sharpness_item(with_losses(0.6, 0.8, 0.01), record);
  EXPECT_DOUBLE_EQ(std::get<double>(*record.find("sharpness.training_loss")), 0.6);
  EXPECT_DOUBLE_EQ(std::get<double>(*record.find("sharpness.validation_loss")), 0.8);
  EXPECT_NEAR(std::get<double>(*record.find("sharpness.gap")), 0.25, 1e-12);
}

TEST(SharpnessItem, SaysNothingWithoutBothLosses) {
  Record record;
  EXPECT_FALSE(sharpness_item(with_losses(kNan, 1.0, 0.01), record));
  EXPECT_FALSE(sharpness_item(with_losses(0.5, kNan, 0.01), record));
  EXPECT_FALSE(sharpness_item(with_losses(0.5, 0.0, 0.01), record));
  RatioEstimator none = with_losses(0.5, 1.0, 0.01);
  none.history.clear();
  EXPECT_FALSE(sharpness_item(none, record));
  none.best_epoch = 0;
  EXPECT_FALSE(sharpness_item(none, record));
}

}  // namespace
}  // namespace nrec
