#include "nrec/simulation/campaign.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <thread>

#include "nrec/core/error.h"
#include "nrec/simulation/simulator.h"

namespace nrec {
namespace {

namespace fs = std::filesystem;

Prior unit_prior() { return Prior::from_terms({{{"a"}, "uniform", {{"low", {0}}, {"high", {1}}}}}); }

/// x = theta + noise, fails above `limit`.
FunctionSimulator toy(double limit = 2.0) {
  return FunctionSimulator("toy", 1, 2,
                           [limit](std::span<const double> theta, RandomStream& random, std::span<double> x) {
                             if (theta[0] > limit) throw std::runtime_error("theta is too large");
                             x[0] = theta[0];
                             x[1] = theta[0] + random.normal();
                           });
}

class Campaign : public ::testing::Test {
 protected:
  void SetUp() override {
    const ::testing::TestInfo* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("nrec_campaign_" + std::string(info->name()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  CampaignIdentity identity() const {
    return {.seed = 7,
            .parameter_names = {"a"},
            .prior = unit_prior().description(),
            .simulator = "toy",
            .simulator_hash = "1",
            .x_shape = {2}};
  }

  CampaignReport run(const CampaignOptions& options, const Simulator& simulator,
                     const StopRequest* stop = nullptr,
                     double time_limit = std::numeric_limits<double>::infinity(),
                     const std::function<void(const CampaignProgress&)>& on_commit = {}) {
    CampaignWriter writer(folder_, identity(), options.shard, ChangedCampaign::refuse);
    const RunContext context = {.pool = pool_, .seed = 7, .stop = stop, .time_limit = time_limit};
    return run_campaign(
        unit_prior(), [&] { return make_row_runner(simulator, 7); }, writer, identity(), options, context,
        on_commit);
  }

  fs::path folder_;
  ThreadPool pool_{1};
};

TEST_F(Campaign, HoldsTheRowsOfSimulateFromPrior) {
  const FunctionSimulator simulator = toy();
  const CampaignReport report = run({.num_simulations = 500, .workers = 3}, simulator);
  EXPECT_EQ(report.status, CampaignStatus::complete);
  EXPECT_EQ(report.progress.num_stored, 500u);
  EXPECT_EQ(report.message, "500 of 500 simulations are stored");
  const SimulationSet expected = simulate_from_prior(unit_prior(), simulator, 500, 7, pool_);
  const SimulationSet stored = CampaignReader(folder_).read();
  EXPECT_EQ(stored.theta.values(), expected.theta.values());
  EXPECT_EQ(stored.x.values(), expected.x.values());
  EXPECT_EQ(stored.status, expected.status);
}

TEST_F(Campaign, IsTheSameForAnyNumberOfWorkersAndShards) {
  const FunctionSimulator simulator = toy();
  run({.num_simulations = 301, .workers = 7}, simulator);
  const SimulationSet whole = CampaignReader(folder_).read();
  fs::remove_all(folder_);
  for (std::uint64_t index : {3u, 0u, 2u, 1u})
    run({.num_simulations = 301, .shard = {index, 4}, .workers = 2}, simulator);
  const SimulationSet parts = CampaignReader(folder_).read(301);
  EXPECT_EQ(parts.theta.values(), whole.theta.values());
  EXPECT_EQ(parts.x.values(), whole.x.values());
}

TEST_F(Campaign, TopsUpAndSaysWhenNothingIsToDo) {
  const FunctionSimulator simulator = toy();
  run({.num_simulations = 100}, simulator);
  EXPECT_EQ(run({.num_simulations = 250}, simulator).progress.num_new, 150u);
  const CampaignReport again = run({.num_simulations = 250}, simulator);
  EXPECT_EQ(again.progress.num_new, 0u);
  EXPECT_EQ(again.message, "nothing to do, the campaign is complete: 250 of 250 simulations are stored");
}

TEST_F(Campaign, FailuresAreStoredCountedAndShown) {
  const CampaignReport report = run({.num_simulations = 400, .workers = 2}, toy(0.7));
  EXPECT_EQ(report.status, CampaignStatus::complete);
  const std::uint64_t failed = report.progress.new_by_status[static_cast<std::size_t>(RowStatus::failed)];
  EXPECT_GT(failed, 60u);  // 0.3 of 400 is 120
  ASSERT_EQ(report.progress.reasons.size(), 1u);
  EXPECT_EQ(report.progress.reasons[0].first, "failed: theta is too large");
  EXPECT_EQ(report.progress.reasons[0].second, failed);
  const CampaignSummary summary = CampaignReader(folder_).summary();
  EXPECT_EQ(summary.num_ok, 400 - failed);
  ASSERT_EQ(summary.reasons.size(), 1u);
  EXPECT_EQ(summary.reasons[0].reason, "theta is too large");
  EXPECT_GT(summary.reasons[0].example_theta[0], 0.7);
}

TEST_F(Campaign, ABrokenSimulatorEndsItEarlyAndLosesNothing) {
  const CampaignReport report = run({.num_simulations = 10000000, .workers = 2}, toy(-1.0));
  EXPECT_EQ(report.status, CampaignStatus::too_many_failures);
  EXPECT_NE(report.message.find("more than max_failure_fraction = 0.9: mend the simulator"),
            std::string::npos)
      << report.message;
  EXPECT_GE(report.progress.num_stored, CampaignOptions::kFewestJudged);
  EXPECT_EQ(CampaignReader(folder_).summary().num_rows, report.progress.num_stored);
}

TEST_F(Campaign, StopsOnRequestAndGoesOn) {
  StopRequest stop;
  std::atomic<int> calls = 0;
  const FunctionSimulator slow("slow", 1, 1,
                               [&](std::span<const double> theta, RandomStream&, std::span<double> x) {
                                 x[0] = theta[0];
                                 if (++calls == 20) stop.request(15);
                                 std::this_thread::sleep_for(std::chrono::milliseconds(1));
                               });
  CampaignIdentity narrow = identity();
  narrow.x_shape = {1};
  const auto run_once = [&](const StopRequest* wanted) {
    CampaignWriter writer(folder_, narrow, {}, ChangedCampaign::refuse);
    const RunContext context = {.pool = pool_, .seed = 7, .stop = wanted};
    return run_campaign(
        unit_prior(), [&] { return make_row_runner(slow, 7); }, writer, narrow,
        {.num_simulations = 1000, .workers = 2}, context);
  };
  const CampaignReport report = run_once(&stop);
  EXPECT_EQ(report.status, CampaignStatus::stopped);
  EXPECT_GE(report.progress.num_stored, 18u);
  EXPECT_LT(report.progress.num_stored, 1000u);
  const CampaignReport rest = run_once(nullptr);
  EXPECT_EQ(rest.status, CampaignStatus::complete);
  EXPECT_EQ(rest.progress.num_new, 1000 - report.progress.num_stored);
}

TEST_F(Campaign, StopsOnItsTimeLimit) {
  const FunctionSimulator slow("slow", 1, 2, [](std::span<const double>, RandomStream&, std::span<double> x) {
    x[0] = x[1] = 0.0;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  const CampaignReport report = run({.num_simulations = 1000000}, slow, nullptr, 0.3);
  EXPECT_EQ(report.status, CampaignStatus::budget_spent);
  EXPECT_GT(report.progress.num_stored, 0u);
  EXPECT_EQ(CampaignReader(folder_).summary().num_rows, report.progress.num_stored);
}

TEST_F(Campaign, CountsOnlyWhatIsDurable) {
  std::uint64_t last = 0;
  run({.num_simulations = 2000, .workers = 2}, toy(), nullptr, std::numeric_limits<double>::infinity(),
      [&](const CampaignProgress& progress) {
        EXPECT_GE(progress.num_stored, last);
        last = progress.num_stored;
      });
  EXPECT_EQ(last, 2000u);
}

TEST_F(Campaign, ARunnerThatCannotBeMadeEndsItWithItsError) {
  CampaignWriter writer(folder_, identity(), {}, ChangedCampaign::refuse);
  const RunContext context = {.pool = pool_};
  EXPECT_THROW(run_campaign(
                   unit_prior(), []() -> std::unique_ptr<RowRunner> { throw IoError("no processes left"); },
                   writer, identity(), {.num_simulations = 10, .workers = 2}, context),
               IoError);
}

TEST_F(Campaign, APriorOfAnotherSizeIsRefused) {
  CampaignIdentity wide = identity();
  wide.parameter_names = {"a", "b"};
  CampaignWriter writer(folder_, wide, {}, ChangedCampaign::refuse);
  const FunctionSimulator simulator = toy();
  const RunContext context = {.pool = pool_};
  EXPECT_THROW(run_campaign(
                   unit_prior(), [&] { return make_row_runner(simulator, 7); }, writer, wide,
                   {.num_simulations = 10}, context),
               ShapeError);
}

TEST(RowSeed, IsAPureFunctionThatFitsThirtyOneBits) {
  EXPECT_EQ(row_seed(1, 5), row_seed(1, 5));
  EXPECT_NE(row_seed(1, 5), row_seed(1, 6));
  EXPECT_NE(row_seed(1, 5), row_seed(2, 5));
  for (std::uint64_t row = 0; row < 1000; ++row) EXPECT_LT(row_seed(3, row), 1u << 31);
}

}  // namespace
}  // namespace nrec
