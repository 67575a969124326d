#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "nrec/simulation/campaign_store.h"
#include "nrec/simulation/row_runner.h"

namespace nrec {

/// Numbers of the rows that a shard still lacks, handed out in ascending order. Thread-safe.
class MissingRows {
 public:
  /// `stored` ascending; numbers of other shards in it are ignored.
  MissingRows(std::uint64_t num_simulations, Shard shard, std::vector<std::uint64_t> stored);

  std::uint64_t num_wanted() const { return num_wanted_; }
  std::uint64_t num_left() const;
  /// At most `count` rows; fewer near the end, so that all of `num_takers` have something to do. Empty when all are
  /// taken.
  std::vector<std::uint64_t> take(std::size_t count, std::size_t num_takers);

 private:
  const std::uint64_t num_simulations_;
  const Shard shard_;
  const std::vector<std::uint64_t> stored_;
  std::uint64_t num_wanted_;
  mutable std::mutex mutex_;
  std::uint64_t num_left_;
  std::uint64_t next_;
  std::size_t next_stored_ = 0;  // first of stored_ that is not below next_
};

/// A row on its way from a worker to the store.
struct SimulatedRow {
  std::vector<double> theta;  // [D]
  RowResult result;
};

/// Results between the workers and the one who stores them. A full queue makes workers wait: memory stays flat when the
/// disk is slower than the simulator.
class ResultQueue {
 public:
  explicit ResultQueue(int num_workers) : num_running_(num_workers) {}

  /// Waits while the queue is full, unless it was closed.
  void push(SimulatedRow&& row);
  /// Everything that is there; empty when nothing is.
  std::deque<SimulatedRow> take_all();
  /// Waits until there is something to take, the last worker has ended, or the time is over. False when nothing more will
  /// come: all workers have ended.
  bool wait(double seconds);
  void worker_ended();
  /// Nobody waits any more.
  void close();
  std::uint64_t num_running() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable filled_, emptied_;
  std::deque<SimulatedRow> rows_;
  std::size_t bytes_ = 0;
  int num_running_;
  bool closed_ = false;
};

}  // namespace nrec
