#include "experiments/findings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <filesystem>
#include <limits>

#include "nrec/core/error.h"
#include "nrec/io/file.h"

namespace nrec {
namespace {

namespace fs = std::filesystem;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Networks that were never trained: what an analysis makes of given records.
class FindingsTest : public testing::Test {
 protected:
  /// A network of slcp with this C2ST at all observations and -I0 falling to `lowest` at epoch `at`, then rising to `last`.
  void add(double gamma, int count, double c2st, double lowest = -4.0, int at = 50, double last = -3.0,
           double log_z = 0.1, const char* gradients = "reset") {
    ExperimentCell& cell = cells_.emplace_back();
    const bool is_b = std::isinf(gamma);
    cell.cell = {"slcp", is_b ? "nre-b" : "nre-c", 22528, 1};
    cell.regime = "fixed";
    cell.architecture = "large";
    cell.gamma = gamma;
    cell.count = count;
    cell.is_measured = true;
    cell.options.training.gradients = gradients;
    CellResult& result = results_.cells.emplace_back();
    result.measured.set("c2st", RecordValue(std::vector<double>{c2st - 0.01, c2st + 0.01}));
    for (int epoch = 1; epoch <= 100; ++epoch) {
      EpochRecord record;
      const double down = std::min(1.0, static_cast<double>(epoch) / at);
      const double up = std::max(0.0, static_cast<double>(epoch - at) / (100.0 - at));
      const double negative = lowest * down + up * (last - lowest);
      record.i0 = -negative;
      record.i1 = is_b ? -1e4 : 3.0;
      record.mean_log_z = log_z;
      record.validation_loss = negative + 6.0;
      record.nre_a_loss = 0.5;
      result.history.push_back(record);
    }
  }
  CellResults& results() {
    for (std::size_t i = 0; i < cells_.size(); ++i) results_.cells[i].cell = &cells_[i];
    return results_;
  }
  static ClaimState state(const Findings& findings, const std::string& part) {
    for (const Claim& one : findings.claims) {
      if (one.text.find(part) != std::string::npos) return one.state;
    }
    ADD_FAILURE() << "no claim about " << part;
    return ClaimState::not_tested;
  }

  std::deque<ExperimentCell> cells_;
  CellResults results_;
  ExperimentPlan plan_{.name = "fig5"};
};

TEST_F(FindingsTest, CorrelationsOfKnownValues) {
  EXPECT_NEAR(pearson({1, 2, 3, 4}, {2, 4, 6, 9}), 0.9943767126843689, 1e-12);
  EXPECT_NEAR(spearman({1, 2, 3, 4}, {1, 10, 100, 1000}), 1.0, 1e-12);
  EXPECT_NEAR(spearman({1, 2, 2, 3}, {4, 3, 3, 1}), -1.0, 1e-12) << "ties share their rank";
  EXPECT_TRUE(std::isnan(pearson({1, 2}, {1, 2})));
  EXPECT_TRUE(std::isnan(pearson({1, 1, 1}, {1, 2, 3})));
}

TEST_F(FindingsTest, BootstrapIntervalIsThatOfTheMean) {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(i % 10);
  const auto [low, high] = bootstrap_interval(values);
  const double se = sd_of(values) / 10.0;
  EXPECT_NEAR(low, 4.5 - 1.96 * se, 0.1);
  EXPECT_NEAR(high, 4.5 + 1.96 * se, 0.1);
  EXPECT_EQ(bootstrap_interval(values), bootstrap_interval(values));
}

TEST_F(FindingsTest, AnchorsAreFoundByNumbersAndOnlyWhenThereIsOne) {
  const fs::path folder = fs::path(testing::TempDir()) / "nrec_anchor_test";
  fs::create_directories(folder);
  write_file(folder / "a.csv", "task,gamma,c2st\nslcp,1.0,0.8\nslcp,inf,0.9\ntwo,1.0,0.5\ntwo,1.0,0.6\n");
  const AnchorRows rows(folder.string(), "a.csv");
  EXPECT_EQ(rows.number({{"task", "slcp"}, {"gamma", "1"}}, "c2st"), 0.8);
  EXPECT_EQ(rows.number({{"task", "slcp"}, {"gamma", "inf"}}, "c2st"), 0.9);
  EXPECT_TRUE(std::isnan(rows.number({{"task", "two"}}, "c2st"))) << "two rows fit";
  EXPECT_TRUE(std::isnan(rows.number({{"task", "slcp"}, {"gamma", "1"}}, "mmd")));
  EXPECT_TRUE(AnchorRows("", "a.csv").empty());
  write_file(folder / "b.csv", "task,gamma\nslcp\n");
  EXPECT_THROW(AnchorRows(folder.string(), "b.csv"), IoError);
  fs::remove_all(folder);
}

TEST_F(FindingsTest, TablesQuoteWhatNeedsItAndRefuseRowsOfAnotherLength) {
  TidyTable table("", {"a", "b"});
  table.add({"1,5", "say \"x\""});
  EXPECT_EQ(table.csv(), "a,b\n\"1,5\",\"say \"\"x\"\"\"\n");
  EXPECT_THROW(table.add({"1"}), ShapeError);
}

TEST_F(FindingsTest, CurvesAsPublishedReproduceTheClaimsAboutInformation) {
  add(1e-3, 25, 0.8, -5.3, 90, -5.2);
  add(1.0, 25, 0.85, -4.8, 40, -3.5);
  add(100.0, 25, 0.88, -4.4, 20, -3.0);
  add(kInfinity, 25, 0.91, -3.3, 10, -1.0);
  const Findings findings = information_curves(results());
  EXPECT_EQ(state(findings, "ends lowest"), ClaimState::reproduced);
  EXPECT_EQ(state(findings, "descends slowest"), ClaimState::reproduced);
  EXPECT_EQ(state(findings, "NRE-B drops fastest"), ClaimState::reproduced);
  EXPECT_EQ(state(findings, "-I1 is tame"), ClaimState::reproduced);
  EXPECT_EQ(findings.figure.panels.size(), 8u);
}

TEST_F(FindingsTest, OtherCurvesDoNot) {
  add(1e-3, 25, 0.8, -3.0, 10, -1.0);
  add(1.0, 25, 0.85, -4.8, 40, -3.5);
  add(100.0, 25, 0.88, -5.4, 60, -5.0);
  add(kInfinity, 25, 0.91, -5.0, 90, -5.0);
  const Findings findings = information_curves(results());
  EXPECT_EQ(state(findings, "ends lowest"), ClaimState::not_reproduced);
  EXPECT_EQ(state(findings, "descends slowest"), ClaimState::not_reproduced);
  EXPECT_EQ(state(findings, "NRE-B drops fastest"), ClaimState::not_reproduced);
}

TEST_F(FindingsTest, ClaimsAreNotTestedWithoutTheNetworksOrOnAFirstLook) {
  add(1.0, 25, 0.85);
  EXPECT_EQ(state(information_curves(results()), "ends lowest"), ClaimState::not_tested);
  add(1e-3, 25, 0.8, -5.0), add(100.0, 25, 0.8);
  Findings findings = information_curves(results());
  EXPECT_EQ(state(findings, "ends lowest"), ClaimState::reproduced);
  leave_untested(findings);
  EXPECT_EQ(state(findings, "ends lowest"), ClaimState::not_tested);
}

TEST_F(FindingsTest, TheMapComparesRegionsOfTheGrid) {
  add(0.1, 2, 0.85), add(0.1, 25, 0.81);
  add(1.0, 2, 0.90), add(1.0, 25, 0.85);
  add(kInfinity, 25, 0.91);
  const Findings good = c2st_map(results(), "");
  EXPECT_EQ(state(good, "K = 1 is the worst"), ClaimState::reproduced);
  EXPECT_EQ(state(good, "low gamma"), ClaimState::reproduced);
  EXPECT_EQ(state(good, "NRE-B is worse"), ClaimState::reproduced);
  EXPECT_EQ(state(good, "at most three seed sds"), ClaimState::not_tested) << "no published numbers";
  add(0.1, 10, 0.99);
  EXPECT_EQ(state(c2st_map(results(), ""), "low gamma"), ClaimState::not_reproduced);
}

TEST_F(FindingsTest, PublishedNumbersDecideCellByCell) {
  const fs::path folder = fs::path(testing::TempDir()) / "nrec_anchor_test_2";
  fs::create_directories(folder);
  write_file(folder / "grid_c2st_bench.csv",
             "task,algorithm,gamma,num_contrastive,arch,c2st_mean\nslcp,NRE-C,1.0,25,large,0.85\n");
  add(1.0, 25, 0.85 + 0.037);
  EXPECT_EQ(state(c2st_map(results(), folder.string()), "at most three seed sds"), ClaimState::reproduced);
  cells_.clear(), results_.cells.clear();
  add(1.0, 25, 0.85 + 0.039);
  EXPECT_EQ(state(c2st_map(results(), folder.string()), "at most three seed sds"),
            ClaimState::not_reproduced);
  fs::remove_all(folder);
}

TEST_F(FindingsTest, InformationAndC2stCorrelateOrDoNot) {
  for (int i = 0; i < 6; ++i) add(1.0, 2 + i, 0.80 + 0.02 * i, -5.0 + 0.2 * i);
  EXPECT_EQ(state(information_against_c2st(results(), ""), "lower -I0"), ClaimState::reproduced);
  cells_.clear(), results_.cells.clear();
  for (int i = 0; i < 6; ++i) add(1.0, 2 + i, 0.80 + 0.02 * i, -5.0 + 0.2 * (i % 2));
  EXPECT_EQ(state(information_against_c2st(results(), ""), "lower -I0"), ClaimState::not_reproduced);
}

TEST_F(FindingsTest, LogZHasABand) {
  add(1.0, 25, 0.85, -4, 50, -3, 2.0), add(kInfinity, 25, 0.9, -4, 50, -3, -30.0);
  Findings findings = partition_curves(results());
  EXPECT_EQ(state(findings, "NRE-C keeps"), ClaimState::reproduced);
  EXPECT_EQ(state(findings, "NRE-B leaves"), ClaimState::reproduced);
  add(1.0, 10, 0.85, -4, 50, -3, 3.0), add(kInfinity, 10, 0.9, -4, 50, -3, 1.0);
  findings = partition_curves(results());
  EXPECT_EQ(state(findings, "NRE-C keeps"), ClaimState::not_reproduced);
  EXPECT_EQ(state(findings, "NRE-B leaves"), ClaimState::not_reproduced);
}

TEST_F(FindingsTest, ConvergenceIsReadNearEpochTwenty) {
  add(1.0, 25, 0.85, -4.0, 40), add(1.0, 25, 0.85, -4.0, 80, -3, 0.1, "accumulate");
  add(kInfinity, 25, 0.85, -3.0, 20);
  Findings findings = convergence_curves(results());
  EXPECT_EQ(state(findings, "that are reset"), ClaimState::reproduced);
  EXPECT_EQ(state(findings, "NRE-B converges faster"), ClaimState::reproduced);
  EXPECT_NE(findings.tables[0].csv.find("nre-c,reset,25,1,2,"), std::string::npos) << findings.tables[0].csv;
}

TEST_F(FindingsTest, OverfittingIsARiseThatIsMoreThanNoise) {
  plan_.name = "fig9";
  add(1.0, 25, 0.85, -4.0, 50, -4.0), add(1.0, 10, 0.85, -4.0, 50, -3.0);
  EXPECT_EQ(state(loss_curves(plan_, results()), "overfitting"), ClaimState::reproduced);
  plan_.name = "fig7";
  EXPECT_EQ(state(loss_curves(plan_, results()), "no overfitting"), ClaimState::not_reproduced);
}

}  // namespace
}  // namespace nrec
