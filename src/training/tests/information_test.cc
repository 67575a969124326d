// What an epoch measures, and in which epochs.
#include "training/information.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "nrec/core/error.h"
#include "training/tests/naive_information.h"
#include "training/tests/train_fixture.h"
#include "training/validation.h"

namespace nrec {
namespace {

using testing::error_of;
using testing::short_training;
using testing::small_network;
using testing::toy_prior;
using testing::toy_simulations;

/// Columns of a history that are about Z(x), and the others.
constexpr double EpochRecord::*kOfZ[] = {&EpochRecord::mean_ratio, &EpochRecord::mean_log_z,
                                         &EpochRecord::sd_log_z, &EpochRecord::i0, &EpochRecord::i1};
constexpr double EpochRecord::*kNotOfZ[] = {&EpochRecord::training_loss,      &EpochRecord::validation_loss,
                                            &EpochRecord::validation_loss_se, &EpochRecord::mean_log_ratio,
                                            &EpochRecord::nre_a_loss,         &EpochRecord::kld};

using Information = testing::TrainTest;

/// What every row gets when the network says the constant c.
EpochRecord constant_record(const TrainingOptions& options, double c, ThreadPool& pool) {
  const RunContext run{.pool = pool};
  const Prior prior = toy_prior();
  const TrainingData data = prepare_training_data(prior, toy_simulations(600, pool), options, run);
  Validation validation =
      options.regime == "prior" ? Validation(prior, data, run) : Validation(data, run.seed);
  PairNetwork network(
      {.dim_theta = 1, .dim_x = 1, .hidden_features = 16, .num_blocks = 1, .norm = Norm::layer});
  network.weights()[network.out_bias()] = static_cast<float>(c);
  return validation.measure(*make_pair_step("auto", pool), network, true);
}

TEST_F(Information, OfAConstantNetworkIsKnown) {
  const std::pair<const char*, int> losses[] = {
      {"nre-a", 1}, {"nre-b", 2}, {"nre-b", 7}, {"nre-c", 1}, {"nre-c", 9}};
  for (const auto& [loss, num_classes] : losses) {
    for (const char* contrast : {"shared", "independent"}) {
      for (const int thetas : {0, 1, 59}) {
        TrainingOptions options = short_training();
        options.loss = loss;
        options.num_classes = num_classes;
        options.contrast = contrast;
        options.information_thetas = thetas;
        options.regime = thetas == 1 ? "prior" : "fixed";
        SCOPED_TRACE(std::string(loss) + " " + contrast + " " + std::to_string(num_classes));
        EXPECT_NEAR(constant_record(options, 0.0, pool_).nre_a_loss, std::log(2.0), 1e-12);
        for (const double c : {0.0, 1.5, -2.25}) {  // exact in float32
          const EpochRecord record = constant_record(options, c, pool_);
          EXPECT_NEAR(record.nre_a_loss, 0.5 * (std::log(1 + std::exp(c)) + std::log(1 + std::exp(-c))),
                      1e-12);
          EXPECT_NEAR(record.mean_log_ratio, c, 1e-12);
          EXPECT_NEAR(record.kld, c + std::exp(-c) - 1.0, 1e-12);
          EXPECT_NEAR(record.mean_ratio, std::exp(c), 1e-12);
          EXPECT_NEAR(record.mean_log_z, c, 1e-12);
          EXPECT_NEAR(record.sd_log_z, 0.0, 1e-12);
          EXPECT_NEAR(record.i0, 0.0, 1e-12);
          EXPECT_NEAR(record.i1, c - std::exp(c) + 1.0, 1e-12);
        }
      }
    }
  }
}

TEST_F(Information, LossOfNreAIsTheLossWhereThatIsTrained) {
  TrainingOptions options = short_training();
  options.loss = "nre-a";
  const TrainingResult result = train_toy(options);
  for (const EpochRecord& epoch : result.estimator->history)
    EXPECT_NEAR(epoch.nre_a_loss, epoch.validation_loss, 1e-12);
  options.loss = "nre-c";
  const std::vector<EpochRecord> other = train_toy(options).estimator->history;
  EXPECT_GT(std::fabs(other.back().nre_a_loss - other.back().validation_loss), 0.1);
}

TEST_F(Information, FromAllOtherThetasIsThatOfEveryPair) {
  struct Case {
    const char *regime, *norm, *loss;
    std::size_t rows;
  };
  // 200 validation rows take two parts of 100 columns, 60 one.
  const Case cases[] = {{"fixed", "batch", "nre-c", 600},
                        {"fixed", "layer", "nre-b", 2000},
                        {"prior", "layer", "nre-c", 600},
                        {"joint", "none", "nre-c", 600}};
  for (const Case& c : cases) {
    TrainingOptions options = short_training();
    options.regime = c.regime;
    options.loss = c.loss;
    options.steps_per_epoch = 4;
    options.information_thetas = static_cast<int>(c.rows / 10) - 1;
    const TrainingResult result = train_toy(options, c.norm, c.rows);
    const EpochRecord truth =
        testing::naive_information(*result.estimator, toy_simulations(c.rows, pool_),
                                   validation_rows(c.rows, options.validation_fraction, run_.seed), pool_);
    for (double EpochRecord::*column : kOfZ)
      EXPECT_NEAR(best(result).*column, truth.*column, 2e-5 * (1 + std::fabs(truth.*column))) << c.regime;
    EXPECT_NEAR(best(result).mean_log_ratio, truth.mean_log_ratio, 2e-5);
    EXPECT_NEAR(best(result).kld, truth.kld, 2e-5 * (1 + truth.kld));
    // Those of the loss are other, fewer thetas.
    options.information_thetas = 0;
    const EpochRecord of_loss = best(train_toy(options, c.norm, c.rows));
    EXPECT_GT(std::fabs(of_loss.i0 - truth.i0), 1e-3) << c.regime;
    EXPECT_EQ(of_loss.validation_loss, best(result).validation_loss);
  }
}

TEST_F(Information, TakesManyRowsInBlocks) {
  // Without blocks the network is h = a theta + c x + d, so that Z of a row follows from one sum over all thetas.
  constexpr std::size_t kRows = InformationSet::kMostRows + 904;
  PairNetwork network = PairNetwork::initialised(
      {.dim_theta = 1, .dim_x = 1, .hidden_features = 16, .num_blocks = 0, .norm = Norm::none}, 3);
  double a = 0.0, c = 0.0, d = network.weights()[network.out_bias()];
  for (std::size_t i = 0; i < 16; ++i) {
    const double out = network.weights()[network.out_weight() + i];
    a += out * network.weights()[network.theta_in() + i];
    c += out * network.weights()[network.x_in() + i];
    d += out * network.weights()[network.bias_in() + i];
  }
  RandomStream random(5, Stream::check);
  Matrix<float> theta(kRows, 1), x(kRows, 1);
  std::vector<float> own(kRows);
  double total = 0.0;
  for (std::size_t i = 0; i < kRows; ++i) {
    theta(i, 0) = static_cast<float>(5.0 * random.normal());
    x(i, 0) = static_cast<float>(random.normal());
    own[i] = static_cast<float>(a * theta(i, 0) + c * x(i, 0) + d);
    total += std::exp(a * theta(i, 0));
  }
  EpochRecord record;
  InformationSet(kRows, kRows - 1, 1).measure(*make_pair_step("auto", pool_), network, theta, x, own, record);
  double mean_log_z = 0.0, i0 = 0.0, i1 = 0.0;
  for (std::size_t i = 0; i < kRows; ++i) {
    const double log_z = c * x(i, 0) + d + std::log((total - std::exp(a * theta(i, 0))) / (kRows - 1.0));
    mean_log_z += log_z / kRows;
    i0 += (own[i] - log_z) / kRows;
    i1 += (own[i] - std::exp(log_z) + 1.0) / kRows;
  }
  EXPECT_NEAR(record.mean_log_z, mean_log_z, 1e-6);
  EXPECT_NEAR(record.i0, i0, 1e-6);
  EXPECT_NEAR(record.i1, i1, 1e-6);
}

TEST_F(Information, ThetasOfARowAreDistinctAndNotItsOwn) {
  // h = theta, which is 0 but for one row: its e^50 shows in log Z of exactly the rows that were given it.
  constexpr std::size_t kRows = 40;
  PairNetwork network(
      {.dim_theta = 1, .dim_x = 1, .hidden_features = 16, .num_blocks = 0, .norm = Norm::none});
  network.weights()[network.theta_in()] = 1.0f;
  network.weights()[network.out_weight()] = 1.0f;
  const auto step = make_pair_step("auto", pool_);
  for (const std::size_t m : {std::size_t{1}, std::size_t{5}, kRows - 1}) {
    for (const std::size_t hot : {std::size_t{0}, std::size_t{17}, kRows - 1}) {
      Matrix<float> theta(kRows, 1), x(kRows, 1);
      theta(hot, 0) = 50.0f;
      const double count = static_cast<double>(m);
      InformationSet set(kRows, m, 2);
      EpochRecord record;
      const std::vector<float> own(kRows, 0.0f);
      set.measure(*step, network, theta, x, own, record);
      EXPECT_NEAR(record.mean_log_z, count * (50.0 - std::log(count)) / kRows, 1e-9) << m << " " << hot;
      // With all others every row but the hot one itself has it.
      if (m == kRows - 1) {
        EXPECT_NEAR(record.sd_log_z, (50.0 - std::log(count)) * std::sqrt(1.0 / kRows), 1e-9);
      }
    }
  }
}

TEST_F(Information, SameBitsForAnyNumberOfThreads) {
  TrainingOptions options = short_training();
  options.information_thetas = 150;
  std::string first;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const TrainingResult result =
        train(toy_prior(), toy_simulations(1600, pool), small_network("batch"), options, {.pool = pool});
    const std::string now = bytes(result);
    if (first.empty()) first = now;
    EXPECT_TRUE(first == now) << threads << " threads";
  }
}

TEST_F(Information, RefusesMoreThetasThanThereAreOthers) {
  TrainingOptions options = short_training();
  options.information_thetas = 59;
  options.max_num_epochs = 1;
  EXPECT_EQ(error_of([&] { train_toy(options); }), "no error");
  options.information_thetas = 60;
  for (const char* regime : {"fixed", "prior", "joint"}) {
    options.regime = regime;
    EXPECT_EQ(error_of([&] { train_toy(options); }),
              "train: information_thetas = 60 needs at least 61 validation rows but only 60 of the 600 "
              "simulations are validation rows; lower information_thetas to at most 59, raise "
              "validation_fraction or simulate more");
    EXPECT_THROW(train_toy(options), ShapeError);
  }
}

TEST_F(Information, EpochsOnALogarithmicScale) {
  const std::vector<int> expected = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13,
                                     15, 16, 17, 19, 21, 23, 25, 27, 29, 32, 35, 38, 41,
                                     45, 49, 54, 59, 64, 70, 76, 83, 91, 99, 100};
  std::vector<int> measured;
  for (int epoch = 1; epoch <= 100; ++epoch) {
    EXPECT_TRUE(measures_information("all", epoch, 100));
    if (measures_information("log", epoch, 100)) measured.push_back(epoch);
  }
  EXPECT_EQ(measured, expected);
  int count = 0;
  for (int epoch = 513; epoch <= 1024; ++epoch) count += measures_information("log", epoch, 5000);
  EXPECT_EQ(count, 8);
}

TEST_F(Information, IsMissingBetweenTheseEpochsAndNothingElseIs) {
  TrainingOptions options = short_training();
  options.max_num_epochs = 20;
  for (const int thetas : {0, 20}) {
    options.information_thetas = thetas;
    options.information_epochs = "all";
    const TrainingResult all = train_toy(options);
    options.information_epochs = "log";
    const TrainingResult log = train_toy(options);
    ASSERT_EQ(log.estimator->history.size(), 20u);
    for (int epoch = 1; epoch <= 20; ++epoch) {
      const auto at = static_cast<std::size_t>(epoch) - 1;
      const EpochRecord &with = all.estimator->history[at], &now = log.estimator->history[at];
      for (double EpochRecord::*column : kNotOfZ) EXPECT_EQ(now.*column, with.*column) << epoch;
      for (double EpochRecord::*column : kOfZ) {
        if (epoch == 14 || epoch == 18) {
          EXPECT_TRUE(std::isnan(now.*column)) << epoch;
        } else {
          EXPECT_EQ(now.*column, with.*column) << epoch;
        }
      }
    }
    EXPECT_EQ(log.summary.best_epoch, all.summary.best_epoch);
    // nan goes to a file and comes back.
    save_estimator(*log.estimator, folder_ / "log.safetensors");
    const RatioEstimator copy = load_estimator(folder_ / "log.safetensors");
    EXPECT_TRUE(std::isnan(copy.history[13].i0));
    EXPECT_EQ(copy.history[13].kld, log.estimator->history[13].kld);
  }
}

TEST_F(Information, TimesOfStepsAndMeasuringArePartsOfTheWhole) {
  TrainingOptions options = short_training();
  options.information_thetas = 59;
  const TrainingSummary summary = train_toy(options).summary;
  EXPECT_GT(summary.step_seconds, 0.0);
  EXPECT_GT(summary.validation_seconds, 0.0);
  EXPECT_LE(summary.step_seconds + summary.validation_seconds, summary.seconds);
}

TEST_F(Information, OnlyNreCIsNormalised) {
  // With class weights that disagree with gamma/K inside the classifier, log Z of NRE-C would tend to log 9 = 2.2.
  TrainingOptions options = short_training();
  options.max_num_epochs = 40;
  options.learning_rate_schedule = "cosine";
  options.information_thetas = 399;
  const SimulationSet simulations = toy_simulations(4000, pool_);
  const auto log_z = [&](const char* loss, int num_classes) {
    options.loss = loss;
    options.num_classes = num_classes;
    const TrainingResult result = train(toy_prior(), simulations, small_network("none"), options, run_);
    return std::pair(best(result).mean_log_z, best(result).sd_log_z);
  };
  const auto [mean_c, sd_c] = log_z("nre-c", 9);
  EXPECT_NEAR(mean_c, 0.0, 0.15);
  EXPECT_LT(sd_c, 0.3);
  const auto [mean_b, sd_b] = log_z("nre-b", 10);
  EXPECT_GT(std::max(std::fabs(mean_b), sd_b), 2.0);
}

}  // namespace
}  // namespace nrec
