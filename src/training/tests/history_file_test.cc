// Histories in files of before the last columns were measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "nrec/io/safetensors.h"
#include "training/tests/train_fixture.h"

namespace nrec {
namespace {

using testing::error_of;
using testing::short_training;
using testing::small_network;
using testing::toy_prior;
using testing::toy_simulations;

using HistoryFile = testing::TrainTest;

/// The columns that all files have.
constexpr double EpochRecord::*kFirstColumns[] = {&EpochRecord::training_loss,
                                                  &EpochRecord::validation_loss,
                                                  &EpochRecord::validation_loss_se,
                                                  &EpochRecord::mean_ratio,
                                                  &EpochRecord::mean_log_z,
                                                  &EpochRecord::sd_log_z,
                                                  &EpochRecord::i0,
                                                  &EpochRecord::i1};

/// Rewrites a file with the first `columns` columns of its history.
void cut_history(const std::filesystem::path& path, std::size_t columns) {
  TensorFile file = read_safetensors(path);
  for (NamedTensor& tensor : file.tensors) {
    if (tensor.name != "history") continue;
    const std::vector<double> values = f64_values(tensor);
    std::vector<double> kept;
    for (std::size_t i = 0; i < tensor.shape[0]; ++i) {
      for (std::size_t j = 0; j < columns; ++j) kept.push_back(values[i * tensor.shape[1] + j]);
    }
    tensor = make_tensor("history", {tensor.shape[0], columns}, std::span<const double>(kept));
  }
  write_safetensors(path, file.tensors, file.metadata);
}

TEST_F(HistoryFile, OlderFilesLoadWithoutWhatTheyDidNotMeasure) {
  const TrainingResult result = train_toy(short_training());
  const auto path = folder_ / "old.safetensors";
  save_estimator(*result.estimator, path);
  cut_history(path, 8);
  const RatioEstimator old = load_estimator(path);
  ASSERT_EQ(old.history.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    for (double EpochRecord::*column : kFirstColumns)
      EXPECT_EQ(old.history[i].*column, result.estimator->history[i].*column);
    EXPECT_TRUE(std::isnan(old.history[i].mean_log_ratio));
    EXPECT_TRUE(std::isnan(old.history[i].nre_a_loss));
    EXPECT_TRUE(std::isnan(old.history[i].kld));
  }
  cut_history(path, 7);
  EXPECT_NE(
      error_of([&] { load_estimator(path); })
          .find("the array \"history\" has another shape than [epochs, 11] (or [epochs, 8], as older files); "
                "the file is damaged"),
      std::string::npos);
}

TEST_F(HistoryFile, OlderCheckpointsGoOn) {
  const CheckpointOptions checkpoint{folder_ / "checkpoint.safetensors", true};
  const SimulationSet simulations = toy_simulations(600, pool_);
  TrainingOptions options = short_training();
  const TrainingResult unbroken = train(toy_prior(), simulations, small_network(), options, run_);
  options.max_num_epochs = 2;
  train(toy_prior(), simulations, small_network(), options, run_, checkpoint);
  cut_history(checkpoint.path, 8);
  options.max_num_epochs = 5;
  const TrainingResult resumed = train(toy_prior(), simulations, small_network(), options, run_, checkpoint);
  ASSERT_EQ(resumed.summary.num_epochs, 5);
  EXPECT_TRUE(std::ranges::equal(std::as_const(resumed.estimator->network).weights(),
                                 std::as_const(unbroken.estimator->network).weights()));
  EXPECT_TRUE(std::isnan(resumed.estimator->history[1].kld));
  EXPECT_EQ(resumed.estimator->history[2].kld, unbroken.estimator->history[2].kld);
}

}  // namespace
}  // namespace nrec
