#include <gtest/gtest.h>

#include <limits>

#include "nrec/training/train.h"

namespace nrec {
namespace {

TEST(SettledOptions, MiniBatchesGrowWithTheSimulationsAndTheRateWithThem) {
  // Ten per cent are held out; an epoch has 16 steps, then batches stop growing.
  EXPECT_EQ(settled_options({}, 100).training_batch_size, 16);
  EXPECT_EQ(settled_options({}, 1000).training_batch_size, 56);
  EXPECT_EQ(settled_options({}, 1000000).training_batch_size, 256);
  EXPECT_DOUBLE_EQ(settled_options({}, 100).learning_rate, 0.0025);
  EXPECT_DOUBLE_EQ(settled_options({}, 1000000).learning_rate, 0.01);
}

TEST(SettledOptions, EpochsAreFewerWhereTheyAreLong) {
  EXPECT_EQ(settled_options({}, 10000).max_num_epochs, 120);
  EXPECT_EQ(settled_options({}, 100000).max_num_epochs, 67);
  EXPECT_EQ(settled_options({}, 1000000).max_num_epochs, 38);
  EXPECT_EQ(settled_options({}, 1000000000).max_num_epochs, 10);
  EXPECT_EQ(settled_options({.regime = "joint"}, 10000000).max_num_epochs, 120) << "those of other rows";
  EXPECT_EQ(settled_options({.max_num_epochs = 7}, 100).max_num_epochs, 7);
}

TEST(SettledOptions, FewSimulationsHaveAsManyStepsAsMore) {
  EXPECT_EQ(settled_options({}, 1000).max_num_epochs, 120);  // 16 steps each
  EXPECT_EQ(settled_options({}, 100).max_num_epochs, 384);   // 90 rows, 5 steps
  EXPECT_EQ(settled_options({}, 12).max_num_epochs, 1920);   // fewer rows than a batch
  EXPECT_EQ(settled_options({.training_batch_size = 1024}, 10000).max_num_epochs, 240);  // 8 steps
}

TEST(SettledOptions, WhatIsGivenStays) {
  const TrainingOptions given = settled_options({.training_batch_size = 1024, .learning_rate = 3e-4}, 10000);
  EXPECT_EQ(given.training_batch_size, 1024);
  EXPECT_EQ(given.learning_rate, 3e-4);
  EXPECT_EQ(settled_options({.training_batch_size = 1024}, 10000).learning_rate, 0.01);
  // As if it were lowered to the rows already.
  EXPECT_DOUBLE_EQ(
      settled_options({.training_batch_size = 1024, .validation_fraction = 0.5}, 128).learning_rate, 0.005);
}

TEST(SettledOptions, ContrastiveSetsFitIntoABatch) {
  EXPECT_EQ(settled_options({.num_classes = 99}, 1000).training_batch_size, 100);
  EXPECT_EQ(settled_options({.loss = "nre-b", .num_classes = 100}, 1000).training_batch_size, 100);
  EXPECT_EQ(settled_options({.num_classes = 100, .gamma = std::numeric_limits<double>::infinity()}, 1000)
                .training_batch_size,
            100);
  EXPECT_EQ(settled_options({.loss = "nre-a", .num_classes = 500}, 1000).training_batch_size, 56);
  const TrainingOptions huge = settled_options({.num_classes = std::numeric_limits<int>::max()}, 1000);
  EXPECT_EQ(huge.training_batch_size, std::numeric_limits<int>::max());
  EXPECT_GT(huge.learning_rate, 0.0);
  // From the prior they ask nothing of it; and joint batches are not those of the simulations.
  EXPECT_EQ(settled_options({.num_classes = 99, .regime = "prior"}, 1000).training_batch_size, 56);
  EXPECT_EQ(settled_options({.regime = "joint"}, 100).training_batch_size, 256);
}

TEST(SettledOptions, SettlingTwiceChangesNothing) {
  for (const std::size_t rows : {0u, 12u, 100u, 1000u, 100000u}) {
    const TrainingOptions once = settled_options({}, rows), twice = settled_options(once, rows);
    EXPECT_GT(once.max_num_epochs, 0);
    EXPECT_EQ(once.training_batch_size, twice.training_batch_size);
    EXPECT_EQ(once.learning_rate, twice.learning_rate);
    EXPECT_EQ(once.max_num_epochs, twice.max_num_epochs);
  }
}

}  // namespace
}  // namespace nrec
