// Which epoch is kept, and what else follows the value that chooses it.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "nrec/core/error.h"
#include "training/tests/naive_information.h"
#include "training/tests/train_fixture.h"

namespace nrec {
namespace {

using testing::error_of;
using testing::short_training;
using testing::toy_simulations;

using SelectEpoch = testing::TrainTest;

TEST_F(SelectEpoch, ChoosesTheEpochThatIsKept) {
  TrainingOptions options = short_training();
  options.learning_rate = 0.02;
  options.max_num_epochs = 60;
  options.information_thetas = 59;
  std::vector<int> chosen;
  for (const auto& [select, column, sign] :
       {std::tuple{"loss", &EpochRecord::validation_loss, 1.0},
        std::tuple{"nre-a", &EpochRecord::nre_a_loss, 1.0}, std::tuple{"i0", &EpochRecord::i0, -1.0}}) {
    options.select_epoch = select;
    options.stop_after_epochs = 0;
    const TrainingResult result = train_toy(options, "none");
    const std::vector<EpochRecord>& history = result.estimator->history;
    ASSERT_EQ(history.size(), 60u);
    std::size_t smallest = 0;
    for (std::size_t i = 1; i < history.size(); ++i) {
      if (sign * history[i].*column < sign * history[smallest].*column) smallest = i;
    }
    EXPECT_EQ(result.summary.best_epoch, static_cast<int>(smallest) + 1) << select;
    EXPECT_EQ(result.estimator->best_epoch, result.summary.best_epoch);
    EXPECT_EQ(result.summary.best_validation_loss, history[smallest].validation_loss);
    // The network is that of this epoch.
    const EpochRecord truth = testing::naive_information(*result.estimator, toy_simulations(600, pool_),
                                                         validation_rows(600, 0.1, run_.seed), pool_);
    EXPECT_NEAR(truth.mean_log_ratio, history[smallest].mean_log_ratio, 1e-4) << select;
    chosen.push_back(result.summary.best_epoch);
    // Patience follows the same value.
    options.stop_after_epochs = 4;
    const TrainingResult early = train_toy(options, "none");
    EXPECT_EQ(early.summary.status, TrainingStatus::converged) << select;
    EXPECT_EQ(early.summary.num_epochs, early.summary.best_epoch + 4) << select;
  }
  EXPECT_NE(chosen[0], chosen[1]);  // else the test could not tell
  EXPECT_NE(chosen[0], chosen[2]);
  EXPECT_NE(chosen[1], chosen[2]);
}

TEST_F(SelectEpoch, TheMessageNamesTheValueThatChose) {
  TrainingOptions options = short_training();
  options.select_epoch = "i0";
  options.learning_rate = 0.05;
  options.max_num_epochs = 500;
  options.stop_after_epochs = 2;
  EXPECT_TRUE(train_toy(options).summary.message.starts_with("no better I0 for 2 epochs; best I0 "));
  options.select_epoch = "nre-a";
  options.learning_rate_schedule = "plateau";
  options.stop_after_epochs = 0;
  const TrainingResult result = train_toy(options);
  EXPECT_TRUE(result.summary.message.starts_with(
      "no better NRE-A validation loss after 6 halvings of the learning rate; best NRE-A validation loss "))
      << result.summary.message;
}

TEST_F(SelectEpoch, RefusesOptionsThatContradictEachOther) {
  TrainingOptions options = short_training();
  EXPECT_TRUE(broken_rules(options).empty());
  options.select_epoch = "i0";
  options.information_epochs = "log";
  EXPECT_EQ(
      error_of([&] { train_toy(options); }),
      "train: select_epoch = \"i0\" compares I0 of all epochs, but information_epochs = \"log\" measures "
      "it in a few; take information_epochs = \"all\", or another select_epoch");
  EXPECT_THROW(train_toy(options), ConfigError);
  options.information_epochs = "some";
  options.information_thetas = -1;
  options.gradients = "sum";
  EXPECT_EQ(error_of([&] { train_toy(options); }),
            "train: information_epochs = \"some\" is unknown; it must be one of all | log\n"
            "train: gradients = \"sum\" is unknown; it must be one of reset | accumulate\n"
            "train: information_thetas = -1 must be at least 0");
}

}  // namespace
}  // namespace nrec
