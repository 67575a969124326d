#include "simulation/row_queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace nrec {
namespace {

std::vector<std::uint64_t> take_all(MissingRows& rows, std::size_t count, std::size_t num_takers = 1) {
  std::vector<std::uint64_t> all;
  for (;;) {
    const std::vector<std::uint64_t> some = rows.take(count, num_takers);
    if (some.empty()) return all;
    all.insert(all.end(), some.begin(), some.end());
  }
}

TEST(MissingRows, HandsOutEveryRowThatIsNotStoredOnce) {
  MissingRows rows(10, {}, {0, 3, 4, 9});
  EXPECT_EQ(rows.num_wanted(), 10u);
  EXPECT_EQ(rows.num_left(), 6u);
  EXPECT_EQ(take_all(rows, 4), (std::vector<std::uint64_t>{1, 2, 5, 6, 7, 8}));
  EXPECT_EQ(rows.num_left(), 0u);
}

TEST(MissingRows, KnowsOnlyTheRowsOfItsShardAndBelowTheNumberWanted) {
  MissingRows rows(11, {1, 3}, {0, 1, 2, 7, 10, 13, 40});
  EXPECT_EQ(rows.num_wanted(), 4u);  // 1, 4, 7, 10
  EXPECT_EQ(rows.num_left(), 1u);
  EXPECT_EQ(take_all(rows, 100), (std::vector<std::uint64_t>{4}));
}

TEST(MissingRows, ShardsTogetherAreTheWholeAndNeverOverlap) {
  std::vector<int> seen(1000);
  for (std::uint64_t index = 0; index < 7; ++index) {
    MissingRows rows(1000, {index, 7}, {});
    std::vector<std::uint64_t> taken = take_all(rows, 13, 3);
    EXPECT_EQ(taken.size(), rows.num_wanted());
    for (const std::uint64_t row : taken) ++seen[row];
  }
  EXPECT_EQ(seen, std::vector<int>(1000, 1));
}

TEST(MissingRows, AShardBeyondTheLastRowHasNothingToDo) {
  MissingRows rows(3, {5, 16}, {});
  EXPECT_EQ(rows.num_wanted(), 0u);
  EXPECT_TRUE(rows.take(1, 1).empty());
}

TEST(MissingRows, NearTheEndEveryTakerGetsSomething) {
  MissingRows rows(16, {}, {});
  EXPECT_EQ(rows.take(100, 4).size(), 2u);
}

TEST(ResultQueue, MakesAWorkerWaitWhenTheStoreIsSlow) {
  ResultQueue queue(1);
  std::thread worker([&] {
    for (int i = 0; i < 100; ++i) {
      queue.push(
          {{}, {.row = static_cast<std::uint64_t>(i), .x = std::vector<double>(1 << 17)}});  // 1 MB each
    }
    queue.worker_ended();
  });
  std::uint64_t next = 0;
  while (queue.wait(10.0)) {
    const auto rows = queue.take_all();
    EXPECT_LE(rows.size(), 5u);  // 4 MB are full
    for (const SimulatedRow& row : rows) EXPECT_EQ(row.result.row, next++);
  }
  worker.join();
  EXPECT_EQ(next, 100u);
}

TEST(ResultQueue, ClosingFreesWaitingWorkers) {
  ResultQueue queue(1);
  std::thread worker([&] {
    for (int i = 0; i < 40; ++i) queue.push({{}, {.x = std::vector<double>(1 << 17)}});
    queue.worker_ended();
  });
  queue.close();
  worker.join();
  EXPECT_EQ(queue.num_running(), 0u);
  EXPECT_EQ(queue.take_all().size(), 40u);
  EXPECT_TRUE(queue.take_all().empty());
}

}  // namespace
}  // namespace nrec
