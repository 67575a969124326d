#include "experiments/diagnostic_network.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>

#include "experiments/toy_problem.h"
#include "nrec/core/error.h"
#include "nrec/inference/posterior.h"

namespace nrec {
namespace {

namespace fs = std::filesystem;

/// Counts what training says and asks for a stop after some of it.
class TrainingListener final : public LogSink {
 public:
  StopRequest stop;
  int updates = 0, stop_after = -1;
  std::vector<std::string> infos;

  void info(std::string_view text) override { infos.emplace_back(text); }
  void progress(const ProgressUpdate& update) override {
    if (update.stage != "training") return;
    if (++updates == stop_after) stop.request(15);
  }
};

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// A network that learns in a few seconds, and little to look at.
ImportanceDiagnosticOptions small_options() {
  ImportanceDiagnosticOptions options;
  options.network.hidden_features = 64;
  options.training.training_batch_size = 128;
  options.training.learning_rate = 1e-3;
  options.training.max_num_epochs = 15;
  options.num_simulations = 8000;
  options.num_posterior_draws = 5000;
  options.num_c2st_draws = 1000;
  options.num_bias_draws = 500;
  options.num_histogram_rows = 20000;
  options.likelihood_bins = 100;
  options.num_roc_rows = 20000;
  options.classifier_epochs = 60;
  options.num_information_rows = 500;
  return options;
}

ImportanceDiagnosticOptions tiny_options() {
  ImportanceDiagnosticOptions options = small_options();
  options.network = {.hidden_features = 16, .num_blocks = 1, .norm = "none"};
  options.training.max_num_epochs = 4;
  options.num_simulations = 2000;
  options.num_posterior_draws = 200;
  options.num_c2st_draws = 100;
  options.num_bias_draws = 0;
  options.num_histogram_rows = 2000;
  options.num_classifier_rows = 500;
  options.num_roc_rows = 2000;
  options.classifier_epochs = 2;
  options.num_information_rows = 50;
  return options;
}

class DiagnosticNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() /
        ("nrec_diagnostic_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) +
         std::to_string(::getpid()));
  }
  void TearDown() override { fs::remove_all(folder_); }

  RunContext listened(TrainingListener& listener) {
    return {.pool = pool_, .seed = 3, .log = listener, .stop = &listener.stop};
  }

  fs::path folder_;
  ThreadPool pool_{2};
  RunContext run_{.pool = pool_, .seed = 3};
};

TEST_F(DiagnosticNetworkTest, ATrainedRatioPassesThroughTheWhole) {
  const ImportanceDiagnosticResult result = run_importance_diagnostic(small_options(), run_);
  EXPECT_EQ(result.status, ExperimentStatus::done) << result.message;
  EXPECT_EQ(result.ratio, "nre-c");
  EXPECT_EQ(result.num_classes, 9);
  ASSERT_TRUE(result.training);
  EXPECT_EQ(result.training->num_epochs, 15);
  EXPECT_FALSE(result.training->was_reused);
  EXPECT_GT(result.training->seconds, 0.0);
  // What a network of this size reaches is far from what an untrained one shows.
  EXPECT_NEAR(result.posterior.mean, result.posterior.exact_mean, 0.05);
  EXPECT_NEAR(result.posterior.sd, 0.1, 0.05);
  EXPECT_LT(result.posterior.c2st, 0.65);
  EXPECT_EQ(result.posterior.num_bias_draws, 500u);
  EXPECT_EQ(result.posterior.num_bias_draws_changed, 0u);
  EXPECT_NEAR(result.information.i0, result.exact_information, 0.25);
  EXPECT_NEAR(result.information.mean_ratio, 1.0, 0.15);
  for (const LikelihoodComparison& likelihood : result.likelihoods)
    EXPECT_LT(likelihood.largest_cdf_difference, 0.2) << likelihood.theta;
  ASSERT_EQ(result.rocs.size(), 4u);
  EXPECT_EQ(result.rocs[0].weights, "weighted");
  EXPECT_NEAR(result.rocs[0].roc.auc, 0.5, 0.15);
  EXPECT_EQ(result.rocs[1].weights, "unweighted");
  EXPECT_GT(result.rocs[1].roc.auc, 0.9);
}

TEST_F(DiagnosticNetworkTest, AFinishedNetworkIsNotTrainedAgain) {
  TrainingListener first, second;
  const ImportanceDiagnosticResult trained =
      run_importance_diagnostic(tiny_options(), listened(first), folder_);
  const fs::path estimator = folder_ / "nre-c_seed3.safetensors";
  const std::string before = bytes_of(estimator);
  EXPECT_GT(first.updates, 0);
  EXPECT_FALSE(before.empty());
  EXPECT_FALSE(fs::exists(folder_ / "nre-c_seed3.checkpoint.safetensors"));
  const ImportanceDiagnosticResult reused =
      run_importance_diagnostic(tiny_options(), listened(second), folder_);
  EXPECT_EQ(second.updates, 0);
  EXPECT_EQ(bytes_of(estimator), before);
  EXPECT_TRUE(reused.training->was_reused);
  EXPECT_EQ(reused.training->seconds, trained.training->seconds);
  EXPECT_EQ(reused.training->message, trained.training->message);
  EXPECT_EQ(reused.training->best_epoch, trained.training->best_epoch);
  EXPECT_EQ(reused.training->best_validation_loss, trained.training->best_validation_loss);
  EXPECT_EQ(reused.posterior.draws.density, trained.posterior.draws.density);
  EXPECT_EQ(reused.rocs[0].roc.true_positive, trained.rocs[0].roc.true_positive);
  EXPECT_EQ(reused.information.i1, trained.information.i1);
}

TEST_F(DiagnosticNetworkTest, ACutTrainingGoesOnToTheSameBits) {
  const SimulationSet simulations = toy::simulations(2000, 3, pool_);
  const fs::path whole = folder_ / "whole", cut = folder_ / "cut";
  TrainingListener listener;
  listener.stop_after = 1;
  // Long enough for an update in the middle: they come at most a few times a second.
  ImportanceDiagnosticOptions options = tiny_options();
  options.training.max_num_epochs = 60;
  const ImportanceDiagnosticResult stopped = run_importance_diagnostic(options, listened(listener), cut);
  EXPECT_EQ(stopped.status, ExperimentStatus::stopped);
  EXPECT_EQ(stopped.message, "stopped on request while training; the same call goes on");
  EXPECT_LT(stopped.training->num_epochs, 60);
  EXPECT_TRUE(fs::exists(cut / "nre-c_seed3.checkpoint.safetensors"));
  EXPECT_FALSE(fs::exists(cut / "nre-c_seed3.safetensors"));
  ImportanceDiagnosticOptions other = options;
  other.training.learning_rate = 2e-3;
  EXPECT_NE(error_of([&] { run_importance_diagnostic(other, run_, cut); }).find("checkpoint"),
            std::string::npos);
  const DiagnosticNetwork resumed = diagnostic_network(options, simulations, run_, cut);
  EXPECT_TRUE(resumed.training.was_resumed);
  EXPECT_EQ(resumed.training.num_epochs, 60);
  const DiagnosticNetwork uncut = diagnostic_network(options, simulations, run_, whole);
  EXPECT_FALSE(uncut.training.was_resumed);
  EXPECT_EQ(bytes_of(cut / "nre-c_seed3.safetensors"), bytes_of(whole / "nre-c_seed3.safetensors"));
}

TEST_F(DiagnosticNetworkTest, NetworksOfOtherSettingsAreRefused) {
  run_importance_diagnostic(tiny_options(), run_, folder_);
  ImportanceDiagnosticOptions other = tiny_options();
  other.training.gamma = 2.0;
  EXPECT_EQ(error_of([&] { run_importance_diagnostic(other, run_, folder_); }),
            "importance_diagnostic: " + (folder_ / "nre-c_seed3.safetensors").string() +
                ": this network was trained with gamma = 1 but now it is 2; choose another folder, or remove "
                "the file");
  other = tiny_options();
  other.num_simulations = 1999;
  EXPECT_NE(error_of([&] {
              run_importance_diagnostic(other, run_, folder_);
            }).find("was trained with num_simulations = 2000 but now it is 1999"),
            std::string::npos);
  // What is looked at afterwards is no part of the network.
  other = tiny_options();
  other.num_roc_rows = 300;
  EXPECT_EQ(error_of([&] { run_importance_diagnostic(other, run_, folder_); }), "no error");
  // Another loss or seed is another network in the same folder.
  ImportanceDiagnosticOptions nre_b = tiny_options();
  nre_b.training.loss = "nre-b";
  nre_b.training.num_classes = 10;
  RunContext seed4 = run_;
  seed4.seed = 4;
  EXPECT_EQ(run_importance_diagnostic(nre_b, seed4, folder_).status, ExperimentStatus::done);
  EXPECT_TRUE(fs::exists(folder_ / "nre-b_seed4.safetensors"));
}

TEST_F(DiagnosticNetworkTest, AFolderThatCannotBeMadeIsRefused) {
  std::ofstream(folder_) << "a file";
  EXPECT_NE(error_of([&] {
              run_importance_diagnostic(tiny_options(), run_, folder_ / "inside");
            }).find("this folder cannot be made: "),
            std::string::npos);
}

TEST_F(DiagnosticNetworkTest, ADamagedNetworkIsRefusedAndLostFactsAreNot) {
  run_importance_diagnostic(tiny_options(), run_, folder_);
  fs::remove(folder_ / "nre-c_seed3.json");
  const ImportanceDiagnosticResult without = run_importance_diagnostic(tiny_options(), run_, folder_);
  EXPECT_TRUE(without.training->was_reused);
  EXPECT_TRUE(std::isnan(without.training->seconds));
  std::ofstream(folder_ / "nre-c_seed3.safetensors") << "no network";
  const std::string text = error_of([&] { run_importance_diagnostic(tiny_options(), run_, folder_); });
  EXPECT_NE(text.find("nre-c_seed3.safetensors"), std::string::npos) << text;
}

TEST_F(DiagnosticNetworkTest, PublishedSettingsAreThoseOfEveryLoss) {
  EXPECT_EQ(published_importance_diagnostic("nre-c").training.num_classes, 9);
  EXPECT_EQ(published_importance_diagnostic("nre-b").training.num_classes, 10);
  EXPECT_EQ(published_importance_diagnostic("nre-a").training.num_classes, 1);
  EXPECT_EQ(published_importance_diagnostic("nre-b").training.loss, "nre-b");
  EXPECT_THROW(published_importance_diagnostic("nre"), ConfigError);
}

TEST_F(DiagnosticNetworkTest, TheRatioOfAnEstimatorIsThatOfItsPosterior) {
  const SimulationSet simulations = toy::simulations(2000, 3, pool_);
  ImportanceDiagnosticOptions options = tiny_options();
  options.training.max_num_epochs = 20;
  const DiagnosticNetwork network = diagnostic_network(options, simulations, run_, {});
  const PairLogRatio log_ratio = pair_log_ratio(*network.estimator, run_);
  // More than a chunk, and not a whole number of them.
  constexpr std::size_t kPairs = 5000;
  std::vector<double> theta(kPairs), x(kPairs, 0.3), values(kPairs), expected(kPairs);
  for (std::size_t i = 0; i < kPairs; ++i) theta[i] = -1.7 + 3.4 * static_cast<double>(i) / kPairs;
  log_ratio(theta, x, values);
  Posterior::from_estimator(*network.estimator, {x.data(), 1}, run_)
      .log_ratio({theta.data(), kPairs, 1}, expected);
  for (std::size_t i = 0; i < kPairs; ++i)
    EXPECT_NEAR(values[i], expected[i], 1e-4 + 1e-5 * std::fabs(expected[i]));
  EXPECT_GT(std::fabs(values.front() - values[kPairs / 2]), 0.1);
}

TEST_F(DiagnosticNetworkTest, EstimatorsOfOtherProblemsAreRefused) {
  const Prior prior = Prior::from_terms({{{"a"}, "normal", {{"mean", {0.0}}, {"sd", {1.0}}}, "auto"},
                                         {{"b"}, "normal", {{"mean", {0.0}}, {"sd", {1.0}}}, "auto"}});
  const RatioEstimator two{
      .network = PairNetwork({.dim_theta = 2, .dim_x = 1, .hidden_features = 8, .num_blocks = 1}),
      .prior = prior,
      .theta_standardiser = {{0.0, 0.0}, {1.0, 1.0}},
      .x_standardiser = {{0.0}, {1.0}},
      .x_low = {0.0},
      .x_high = {1.0},
      .settings = {},
      .history = {}};
  EXPECT_EQ(error_of([&] { pair_log_ratio(two, run_); }),
            "importance_diagnostic: the estimator has 2 parameters and 1 columns of x; the problem has one "
            "of each");
  RatioEstimator failing = two;
  failing.prior = toy::prior();
  failing.success.emplace();
  EXPECT_THROW(pair_log_ratio(failing, run_), UnsupportedError);
}

}  // namespace
}  // namespace nrec
