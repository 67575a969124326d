#include "nrec/diagnostics/c2st.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/mt19937_stream.h"
#include "diagnostics/c2st_fold.h"
#include "nrec/core/error.h"
#include "nrec/core/random.h"

namespace nrec {
namespace {

Matrix<double> normal_rows(std::size_t rows, std::size_t cols, double mean, std::uint64_t key) {
  RandomStream random(123, Stream::check, key);
  Matrix<double> values(rows, cols);
  for (double& value : values.values()) value = mean + random.normal();
  return values;
}

C2stSummary run(const Matrix<double>& reference, const Matrix<double>& samples,
                const C2stOptions& options = {}, int threads = 2) {
  ThreadPool pool(threads);
  return c2st(reference, samples, options, pool, silent_sink());
}

double standard_normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

TEST(Mt19937Stream, MatchesNumpyRandomState) {  // numpy.random.RandomState(1)
  Mt19937Stream uniforms(1);
  EXPECT_EQ(uniforms.uniform(), 0.417022004702574);
  EXPECT_EQ(uniforms.uniform(), 0.7203244934421581);
  EXPECT_EQ(uniforms.uniform(), 0.00011437481734488664);
  Mt19937Stream stream(1);
  std::vector<std::uint32_t> values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  stream.shuffle(values);
  EXPECT_EQ(values, (std::vector<std::uint32_t>{2, 3, 4, 10, 1, 6, 0, 7, 11, 9, 8, 5}));
  EXPECT_EQ(stream.uniform(), 0.39676747423066994);
}

TEST(RocAuc, CountsOrderedPairsAndHalvesTies) {
  const std::vector<float> p{0.1f, 0.4f, 0.4f, 0.8f};
  EXPECT_EQ(roc_auc(p, std::vector<std::uint8_t>{0, 0, 1, 1}), 3.5 / 4.0);
  EXPECT_EQ(roc_auc(p, std::vector<std::uint8_t>{1, 1, 0, 0}), 0.5 / 4.0);
  EXPECT_EQ(roc_auc(p, std::vector<std::uint8_t>{0, 0, 0, 1}), 1.0);
  EXPECT_TRUE(std::isnan(roc_auc(p, std::vector<std::uint8_t>{1, 1, 1, 1})));
}

TEST(C2st, GivesTheSameBitsForAnyNumberOfThreads) {
  const Matrix<double> reference = normal_rows(603, 3, 0.0, 1);
  const Matrix<double> samples = normal_rows(500, 3, 0.3, 2);
  C2stOptions options;
  options.max_iterations = 40;
  options.keep_loss_curves = true;
  const C2stSummary one = run(reference, samples, options, 1);
  for (const int threads : {2, 3, 7}) {
    const C2stSummary many = run(reference, samples, options, threads);
    EXPECT_EQ(one.accuracy, many.accuracy);
    EXPECT_EQ(one.auc, many.auc);
    EXPECT_EQ(one.fold_accuracy, many.fold_accuracy);
    EXPECT_EQ(one.epochs, many.epochs);
    EXPECT_EQ(one.loss_curves, many.loss_curves);
  }
  options.seed = 2;
  EXPECT_NE(one.loss_curves, run(reference, samples, options).loss_curves);
}

// 10 000 + 10 000 rows in two columns: the optimum is Phi(mu sqrt(2) / 2); the sd from new data is 0.004.
TEST(C2st, FindsTheBayesAccuracyOfShiftedNormals) {
  constexpr double kBound = 0.012;  // 3 sd
  const Matrix<double> reference = normal_rows(10000, 2, 0.0, 10);
  for (const double mean : {0.0, 0.5, 1.0}) {
    const C2stSummary summary = run(reference, normal_rows(10000, 2, mean, 11));
    const double optimum = standard_normal_cdf(mean / std::sqrt(2.0));
    EXPECT_NEAR(summary.accuracy, optimum, kBound) << mean;
    EXPECT_GT(std::abs(summary.accuracy - standard_normal_cdf((mean + 0.15) / std::sqrt(2.0))), kBound)
        << "negative control";
    EXPECT_NEAR(summary.auc, standard_normal_cdf(mean), kBound)
        << mean;  // P(difference of two projections > 0)
    EXPECT_TRUE(summary.all_converged());
    EXPECT_EQ(summary.chance, 0.5);
  }
}

TEST(C2st, ChanceOfUnequalSetsIsTheShareOfTheLarger) {
  const C2stSummary summary = run(normal_rows(2000, 2, 0.0, 20), normal_rows(1000, 2, 0.0, 21));
  EXPECT_EQ(summary.chance, 2000.0 / 3000.0);
  EXPECT_NEAR(summary.accuracy, summary.chance, 4.0 * std::sqrt(2.0 / 9.0 / 3000.0));
}

TEST(C2st, ScalesByTheReferenceSoThatUnitsDoNotMatter) {
  Matrix<double> reference = normal_rows(400, 2, 0.0, 30);
  Matrix<double> samples = normal_rows(400, 2, 0.5, 31);
  C2stOptions options;
  options.max_iterations = 5;
  const C2stSummary plain = run(reference, samples, options);
  for (Matrix<double>* set : {&reference, &samples}) {
    for (std::size_t i = 0; i < set->rows(); ++i) (*set)(i, 1) = 1024.0 * (*set)(i, 1);
  }
  EXPECT_EQ(plain.fold_accuracy, run(reference, samples, options).fold_accuracy);
  options.z_score = false;
  EXPECT_NE(plain.final_loss, run(reference, samples, options).final_loss);
}

TEST(C2st, SaysWhenTheEpochLimitEndsAFold) {
  C2stOptions options;
  options.max_iterations = 3;
  options.num_folds = 3;
  const C2stSummary summary = run(normal_rows(50, 1, 0.0, 40), normal_rows(40, 1, 0.0, 41), options);
  EXPECT_EQ(summary.epochs, (std::vector<int>{3, 3, 3}));
  EXPECT_EQ(summary.fold_status, (std::vector<C2stFoldStatus>(3, C2stFoldStatus::epoch_limit)));
  EXPECT_FALSE(summary.all_converged());
  EXPECT_TRUE(summary.loss_curves.empty());
}

TEST(C2st, ReportsDivergenceAsAStatus) {
  Matrix<double> reference = normal_rows(50, 2, 0.0, 42);
  for (double& value : reference.values()) value *= 1e38;
  C2stOptions options;
  options.z_score = false;
  const C2stSummary summary = run(reference, normal_rows(50, 2, 0.0, 43), options);
  EXPECT_EQ(summary.fold_status[0], C2stFoldStatus::diverged);
  EXPECT_TRUE(std::isnan(summary.fold_accuracy[0]));
  EXPECT_TRUE(std::isnan(summary.accuracy));
  EXPECT_TRUE(std::isnan(summary.auc));
}

TEST(C2st, HandlesManyColumns) {
  C2stOptions options;
  options.max_iterations = 1;
  options.num_folds = 2;
  const C2stSummary summary = run(normal_rows(60, 47, 0.0, 44), normal_rows(70, 47, 0.0, 45), options);
  EXPECT_TRUE(std::isfinite(summary.final_loss[0]));
}

struct WarningSink : LogSink {
  std::vector<std::string> warnings;
  void warning(std::string_view text) override { warnings.emplace_back(text); }
};

TEST(C2st, WarnsAboutAColumnThatSaysNothing) {
  Matrix<double> reference = normal_rows(50, 2, 0.0, 50);
  Matrix<double> samples = normal_rows(50, 2, 0.0, 51);
  for (std::size_t i = 0; i < 50; ++i) reference(i, 1) = samples(i, 1) = 7.25;
  C2stOptions options;
  options.max_iterations = 2;
  ThreadPool pool(1);
  WarningSink sink;
  const C2stSummary summary = c2st(reference, samples, options, pool, sink);
  ASSERT_EQ(sink.warnings.size(), 1u);
  EXPECT_EQ(sink.warnings[0],
            "c2st: column 1 (counted from 0) holds the same number (7.25) in every row of both sets; it says "
            "nothing and is left unscaled");
  EXPECT_TRUE(std::isfinite(summary.accuracy));
}

template <class Failure>
void expect_refusal(const Matrix<double>& reference, const Matrix<double>& samples,
                    const C2stOptions& options, const std::string& text) {
  try {
    run(reference, samples, options);
    FAIL() << "accepted; expected: " << text;
  } catch (const Failure& error) {
    EXPECT_EQ(std::string(error.what()), text);
  }
}

// Normals shifted by mu in each of d columns: the best accuracy is Phi(mu sqrt(d) / 2).
TEST(RegularisedC2st, ComesNearTheBayesAccuracyInFiveColumns) {
  constexpr std::size_t kRows = 2000;
  const double bayes = standard_normal_cdf(0.4 * std::sqrt(5.0) / 2.0);
  const Matrix<double> reference = normal_rows(kRows, 5, 0.0, 21), samples = normal_rows(kRows, 5, 0.4, 22);
  const C2stSummary regularised = run(reference, samples, {.regularised = true});
  const double error = std::sqrt(bayes * (1.0 - bayes) / (2.0 * kRows));
  EXPECT_LT(regularised.accuracy, bayes + 4 * error);
  EXPECT_GT(regularised.accuracy, bayes - 4 * error);
  EXPECT_TRUE(regularised.all_converged());
  // Control: the published recipe over-trains and reads lower by much more than that.
  const C2stSummary published = run(reference, samples);
  EXPECT_LT(published.accuracy, bayes - 4 * error);
  EXPECT_GT(published.epochs[0], 3 * regularised.epochs[0]);
}

TEST(RegularisedC2st, SeesNothingBetweenEqualSetsAndRepeatsItself) {
  const Matrix<double> reference = normal_rows(1500, 5, 0.0, 23), samples = normal_rows(1500, 5, 0.0, 24);
  const C2stSummary one = run(reference, samples, {.regularised = true}, 1);
  EXPECT_NEAR(one.accuracy, 0.5, 4 * 0.5 / std::sqrt(3000.0));
  EXPECT_EQ(run(reference, samples, {.regularised = true}, 3).fold_accuracy, one.fold_accuracy);
}

TEST(C2st, StopsWhenAsked) {
  StopRequest stop;
  stop.request(15);
  const C2stSummary summary = run(normal_rows(300, 2, 0.0, 1), normal_rows(300, 2, 0.0, 2), {.stop = &stop});
  EXPECT_TRUE(std::isnan(summary.accuracy));
  for (const C2stFoldStatus status : summary.fold_status) EXPECT_EQ(status, C2stFoldStatus::stopped);
  EXPECT_EQ(summary.epochs, std::vector<int>(5, 0));
}

TEST(C2st, RefusesWrongInput) {
  const Matrix<double> good = normal_rows(20, 2, 0.0, 60);
  expect_refusal<ShapeError>(
      good, normal_rows(20, 3, 0.0, 61), {},
      "c2st: reference has 2 columns and samples 3; both need the same number, at least 1");
  expect_refusal<ShapeError>(good, normal_rows(4, 2, 0.0, 61), {},
                             "c2st: samples has 4 rows; at least 5 are needed (num_folds)");
  expect_refusal<ShapeError>(normal_rows(4, 2, 0.0, 61), good, {},
                             "c2st: reference has 4 rows; at least 5 are needed (num_folds)");
  Matrix<double> bad = good;
  bad(7, 1) = std::numeric_limits<double>::quiet_NaN();
  expect_refusal<DomainError>(
      good, bad, {},
      "c2st: samples holds nan in row 7, column 1 (counted from 0); remove such rows before comparing");
  bad(7, 1) = 1e300;
  expect_refusal<DomainError>(
      good, bad, {.z_score = false},
      "c2st: samples holds 1e+300 in row 7, column 1 (counted from 0), which after scaling is beyond "
      "float32; rescale the column or remove the row");
  Matrix<double> constant = good;
  for (std::size_t i = 0; i < 20; ++i) constant(i, 0) = 3.0;
  expect_refusal<DomainError>(
      constant, good, {},
      "c2st: column 0 (counted from 0) of reference is constant (3) but samples differ there, so it "
      "cannot be z-scored; leave the column out or set z_score = false");
  expect_refusal<ConfigError>(
      good, good, {.num_folds = 1, .max_iterations = 0},
      "c2st: num_folds = 1 must be at least 2; max_iterations = 0 must be at least 1");
}

}  // namespace
}  // namespace nrec
