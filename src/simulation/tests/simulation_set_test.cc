#include "nrec/simulation/simulation_set.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nrec/core/error.h"

namespace nrec {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

SimulationSet three_rows() {
  SimulationSet set;
  set.theta = Matrix<double>(3, 2, {1, 2, 3, 4, 5, 6});
  set.x = Matrix<double>(3, 1, {10, 20, 30});
  set.parameter_names = {"beta", "gamma"};
  return set;
}

template <class E, class F>
std::string text_of(F&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "no exception of the wanted type";
  return "";
}

TEST(CheckSimulations, AcceptsFiniteRowsAndLeavesStatusEmpty) {
  SimulationSet set = three_rows();
  check_simulations(set);
  EXPECT_TRUE(set.status.empty());
}

TEST(CheckSimulations, RefusesUnequalRowCounts) {
  SimulationSet set = three_rows();
  set.x.resize_rows(2);
  EXPECT_EQ(text_of<ShapeError>([&] { check_simulations(set); }),
            "simulations: theta has 3 rows but x has 2; row i of x must be the simulation of row i of theta");
}

TEST(CheckSimulations, RefusesEmptySets) {
  SimulationSet set;
  EXPECT_EQ(text_of<ShapeError>([&] { check_simulations(set); }),
            "simulations: theta and x have no rows; at least one simulation is needed");
  set.theta = Matrix<double>(2, 0);
  set.x = Matrix<double>(2, 1);
  EXPECT_EQ(text_of<ShapeError>([&] { check_simulations(set); }),
            "simulations: theta has no columns; give one column per parameter");
  set.theta = Matrix<double>(2, 1);
  set.x = Matrix<double>(2, 0);
  EXPECT_EQ(text_of<ShapeError>([&] { check_simulations(set); }),
            "simulations: x has no columns; give one column per datum");
}

TEST(CheckSimulations, RefusesWrongCountsOfNamesAndStatuses) {
  SimulationSet set = three_rows();
  set.parameter_names = {"beta"};
  EXPECT_EQ(text_of<ShapeError>([&] { check_simulations(set); }),
            "simulations: there are 1 parameter names but theta has 2 columns; give one name per column");
  set = three_rows();
  set.status.assign(2, RowStatus::ok);
  EXPECT_EQ(text_of<ShapeError>([&] { check_simulations(set); }),
            "simulations: status has 2 entries but there are 3 rows; give one status per row, or none");
}

TEST(CheckSimulations, NamesRowAndColumnOfANonFiniteTheta) {
  SimulationSet set = three_rows();
  set.source = "sims.npz";
  set.theta(1, 1) = kNan;
  EXPECT_EQ(text_of<DomainError>([&] { check_simulations(set); }),
            "simulations (sims.npz): theta[1, 1] (gamma) = nan; parameters must be finite numbers: "
            "correct or remove "
            "this row");
  set.parameter_names.clear();
  set.theta(1, 1) = -kInfinity;
  EXPECT_EQ(text_of<DomainError>([&] { check_simulations(set); }),
            "simulations (sims.npz): theta[1, 1] = -inf; parameters must be finite numbers: "
            "correct or remove this row");
}

TEST(CheckSimulations, MarksNonFiniteXAndKeepsKnownFailures) {
  SimulationSet set = three_rows();
  set.x(2, 0) = kInfinity;
  check_simulations(set);
  EXPECT_EQ(set.status, (std::vector<RowStatus>{RowStatus::ok, RowStatus::ok, RowStatus::non_finite}));
  set.x(0, 0) = kNan;
  set.status = {RowStatus::failed, RowStatus::ok, RowStatus::ok};
  check_simulations(set);
  EXPECT_EQ(set.status, (std::vector<RowStatus>{RowStatus::failed, RowStatus::ok, RowStatus::non_finite}));
}

SimulationSet two_failures() {
  SimulationSet set = three_rows();
  set.source = "sims.npz";
  set.x(1, 0) = kNan;
  set.status = {RowStatus::ok, RowStatus::non_finite, RowStatus::failed};
  return set;
}

TEST(FailureRules, HaveNamesAndRefuseOthers) {
  for (const FailureRule rule : {FailureRule::stop, FailureRule::model, FailureRule::drop})
    EXPECT_EQ(failure_rule(failure_rule_name(rule)), rule);
  EXPECT_EQ(text_of<ConfigError>([] { failure_rule("ignore"); }),
            "failures = \"ignore\" is unknown; it must be one of stop | model | drop");
}

TEST(WithoutFailures, PassesCompleteSetsThroughWhateverTheRule) {
  for (const FailureRule rule : {FailureRule::stop, FailureRule::model, FailureRule::drop}) {
    const SimulationSet set = without_failures(three_rows(), rule);
    EXPECT_EQ(set.theta, three_rows().theta);
    EXPECT_EQ(set.x, three_rows().x);
    EXPECT_EQ(set.num_failed(), 0u);
    EXPECT_TRUE(set.failed_theta.empty());
    EXPECT_TRUE(set.status_counts.empty());
    EXPECT_EQ(failure_summary(set), "");
  }
}

TEST(WithoutFailures, StopCountsByStatusExplainsTheBiasAndNamesTheChoices) {
  EXPECT_EQ(
      text_of<DomainError>([] { without_failures(two_failures(), FailureRule::stop); }),
      "simulations (sims.npz): 2 of 3 simulations failed (1 with nan or infinity in x, 1 ended with an "
      "error); the first is row 1 (from 0), x[1, 0] = nan. Leaving failed rows out biases the posterior: the "
      "ratio then compares successes only, and parameters that often fail look more probable than they are. "
      "Choose what to do: --failures model learns the chance of success at every theta from the same "
      "simulations and multiplies it in; --failures drop leaves the rows out, right only where failures do "
      "not "
      "depend on theta or are accidents that say nothing about x; or mend the simulator and simulate again "
      "(docs/methods/failures.md)");
}

TEST(WithoutFailures, StopShowsNoDataOfARowThatHasNone) {
  SimulationSet set = two_failures();
  set.status[1] = RowStatus::timed_out;
  const std::string text = text_of<DomainError>([&] { without_failures(set, FailureRule::stop); });
  EXPECT_NE(text.find("(1 ended with an error, 1 timed out); the first is row 1 (from 0). Leaving"),
            std::string::npos)
      << text;
}

TEST(WithoutFailures, CountsEveryStatus) {
  SimulationSet set;
  set.theta = Matrix<double>(7, 1, {1, 2, 3, 4, 5, 6, 7});
  set.x = Matrix<double>(7, 1, {1, kNan, kNan, kNan, kNan, kNan, kNan});
  set.status = {RowStatus::ok,          RowStatus::non_finite, RowStatus::failed,   RowStatus::timed_out,
                RowStatus::wrong_shape, RowStatus::refused,    RowStatus::timed_out};
  set = without_failures(set, FailureRule::model);
  EXPECT_EQ(set.status_counts, (std::vector<std::size_t>{1, 1, 1, 2, 1, 1}));
  EXPECT_EQ(
      failure_summary(set),
      "6 of 7 simulations failed (1 with nan or infinity in x, 1 ended with an error, 2 timed out, 1 gave "
      "something else than the wanted numbers, 1 refused theta)");
}

TEST(WithoutFailures, ModelSetsTheParametersOfFailedRowsApart) {
  const SimulationSet set = without_failures(two_failures(), FailureRule::model);
  EXPECT_EQ(set.theta, Matrix<double>(1, 2, {1, 2}));
  EXPECT_EQ(set.x, Matrix<double>(1, 1, {10}));
  EXPECT_EQ(set.failed_theta, Matrix<double>(2, 2, {3, 4, 5, 6}));
  EXPECT_TRUE(set.status.empty());
  EXPECT_EQ(set.num_dropped, 0u);
  EXPECT_EQ(set.num_failed(), 2u);
}

TEST(WithoutFailures, DropLeavesFailedRowsOutAndCountsThem) {
  SimulationSet set = three_rows();
  set.status = {RowStatus::failed, RowStatus::ok, RowStatus::ok};
  set = without_failures(set, FailureRule::drop);
  EXPECT_EQ(set.theta, Matrix<double>(2, 2, {3, 4, 5, 6}));
  EXPECT_TRUE(set.status.empty());
  EXPECT_TRUE(set.failed_theta.empty());
  EXPECT_EQ(set.num_dropped, 1u);
  EXPECT_EQ(set.num_failed(), 1u);
}

TEST(WithoutFailures, RefusesWhenNothingIsLeftAndWhenAppliedTwice) {
  SimulationSet set = three_rows();
  set.source = "sims.csv";
  set.status.assign(3, RowStatus::failed);
  for (const FailureRule rule : {FailureRule::stop, FailureRule::model, FailureRule::drop}) {
    EXPECT_EQ(text_of<DomainError>([&] { without_failures(set, rule); }),
              "simulations (sims.csv): 3 of 3 simulations failed (3 ended with an error); the first is row 0 "
              "(from 0). No "
              "row is left: mend the simulator");
  }
  set = without_failures(two_failures(), FailureRule::model);
  set.status = {RowStatus::failed};
  EXPECT_EQ(text_of<ConfigError>([&] { without_failures(set, FailureRule::model); }),
            "simulations (sims.npz): a rule for failed rows has been applied to this set before");
}

TEST(RowStatus, StandsForItsNumberInFiles) {
  for (std::size_t i = 0; i < kNumRowStatuses; ++i)
    EXPECT_EQ(row_status_of(static_cast<double>(i)), static_cast<RowStatus>(i));
  for (const double number : {-1.0, 0.5, 6.0, 256.0, std::nan(""), HUGE_VAL})
    EXPECT_EQ(row_status_of(number), std::nullopt) << number;
}

}  // namespace
}  // namespace nrec
