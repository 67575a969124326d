#include "simulation/row_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace nrec {

namespace {

constexpr std::size_t kMostQueuedBytes = 4u << 20;

std::size_t bytes_of(const SimulatedRow& row) {
  return sizeof row + 8 * (row.theta.size() + row.result.x.size()) + row.result.reason.size() +
         row.result.messages.size();
}

std::uint64_t rows_of(std::uint64_t num_simulations, Shard shard) {
  return num_simulations > shard.index ? (num_simulations - shard.index - 1) / shard.count + 1 : 0;
}

}  // namespace

MissingRows::MissingRows(std::uint64_t num_simulations, Shard shard, std::vector<std::uint64_t> stored)
    : num_simulations_(num_simulations),
      shard_(shard),
      stored_(std::move(stored)),
      num_wanted_(rows_of(num_simulations, shard)),
      num_left_(num_wanted_),
      next_(shard.index) {
  for (const std::uint64_t row : stored_) {
    if (row < num_simulations && row % shard.count == shard.index) --num_left_;
  }
}

std::uint64_t MissingRows::num_left() const {
  const std::lock_guard lock(mutex_);
  return num_left_;
}

std::vector<std::uint64_t> MissingRows::take(std::size_t count, std::size_t num_takers) {
  const std::lock_guard lock(mutex_);
  count =
      std::min<std::uint64_t>({count, num_left_, std::max<std::uint64_t>(1, num_left_ / (2 * num_takers))});
  std::vector<std::uint64_t> rows;
  for (; rows.size() < count; next_ += shard_.count) {
    while (next_stored_ < stored_.size() && stored_[next_stored_] < next_) ++next_stored_;
    if (next_stored_ < stored_.size() && stored_[next_stored_] == next_) continue;
    rows.push_back(next_);
  }
  num_left_ -= rows.size();
  return rows;
}

void ResultQueue::push(SimulatedRow&& row) {
  std::unique_lock lock(mutex_);
  emptied_.wait(lock, [&] { return bytes_ < kMostQueuedBytes || closed_; });
  bytes_ += bytes_of(row);
  rows_.push_back(std::move(row));
  filled_.notify_one();
}

std::deque<SimulatedRow> ResultQueue::take_all() {
  const std::lock_guard lock(mutex_);
  bytes_ = 0;
  emptied_.notify_all();
  return std::exchange(rows_, {});
}

bool ResultQueue::wait(double seconds) {
  std::unique_lock lock(mutex_);
  filled_.wait_for(lock, std::chrono::duration<double>(seconds),
                   [&] { return !rows_.empty() || num_running_ == 0; });
  return !rows_.empty() || num_running_ > 0;
}

void ResultQueue::worker_ended() {
  const std::lock_guard lock(mutex_);
  --num_running_;
  filled_.notify_one();
}

void ResultQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  emptied_.notify_all();
}

std::uint64_t ResultQueue::num_running() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint64_t>(num_running_);
}

}  // namespace nrec
