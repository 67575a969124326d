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
            "simulations (sims.npz): theta row 2, column 2 (gamma) = nan; parameters must be finite numbers: "
            "correct or remove "
            "this row");
  set.parameter_names.clear();
  set.theta(1, 1) = -kInfinity;
  EXPECT_EQ(text_of<DomainError>([&] { check_simulations(set); }),
            "simulations (sims.npz): theta row 2, column 2 = -inf; parameters must be finite numbers: "
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

TEST(WithoutFailures, PassesCompleteSetsThrough) {
  const SimulationSet set = without_failures(three_rows(), false);
  EXPECT_EQ(set.num_rows(), 3u);
  EXPECT_EQ(set.num_dropped, 0u);
  EXPECT_EQ(without_failures(three_rows(), true).num_rows(), 3u);
}

TEST(WithoutFailures, RefusesFailedRowsAndExplainsTheBias) {
  SimulationSet set = three_rows();
  set.x(1, 0) = kNan;
  set.status = {RowStatus::ok, RowStatus::non_finite, RowStatus::failed};
  EXPECT_EQ(text_of<DomainError>([&] { without_failures(set, false); }),
            "simulations: 2 of 3 simulations failed (1 ended with an error, 1 gave nan or infinity); the "
            "first is row 2, x column 1 = "
            "nan. Dropping failed rows biases the posterior: what is learnt is then conditioned on the "
            "simulator not failing, and "
            "parameters that often fail look less probable than they are. Mend the simulator or let it write "
            "a finite value that "
            "stands for failure; if the failures do not depend on theta or the bias is acceptable, drop them "
            "with --drop-failed");
}

TEST(WithoutFailures, DropsFailedRowsOnTheUsersWord) {
  SimulationSet set = three_rows();
  set.status = {RowStatus::failed, RowStatus::ok, RowStatus::ok};
  set.num_dropped = 4;
  set = without_failures(set, true);
  EXPECT_EQ(set.theta, Matrix<double>(2, 2, {3, 4, 5, 6}));
  EXPECT_EQ(set.x, Matrix<double>(2, 1, {20, 30}));
  EXPECT_TRUE(set.status.empty());
  EXPECT_EQ(set.num_dropped, 5u);
}

TEST(WithoutFailures, RefusesWhenNothingIsLeft) {
  SimulationSet set = three_rows();
  set.source = "sims.csv";
  set.status.assign(3, RowStatus::failed);
  EXPECT_EQ(text_of<DomainError>([&] { without_failures(set, true); }),
            "simulations (sims.csv): 3 of 3 simulations failed (3 ended with an error, 0 gave nan or "
            "infinity); the first is row 1; "
            "after dropping them no row is left. Mend the simulator");
}

}  // namespace
}  // namespace nrec
