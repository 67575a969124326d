#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "simulation/row_queue.h"

namespace nrec {

/// Writes the parameters of a row into theta [D]. Thread-safe.
using ThetaOfRow = std::function<void(std::uint64_t row, std::span<double> theta)>;

/// The threads that run rows. They take numbers from `rows` and leave results in `results`.
class RowWorkers {
 public:
  struct Options {
    std::uint64_t seed = 1;  // of the rows' noise
    std::size_t dim_theta = 0;
    int count = 1;
    std::size_t rows_per_call = 1;  // fewest rows that a worker takes at once, where so many are left
  };
  /// What is referred to must outlive it.
  RowWorkers(const Options& options, const ThetaOfRow& theta_of,
             const std::function<std::unique_ptr<RowRunner>()>& make_runner, MissingRows& rows,
             ResultQueue& results);
  ~RowWorkers() { end(); }
  RowWorkers(const RowWorkers&) = delete;
  RowWorkers& operator=(const RowWorkers&) = delete;

  /// Ends what is running and waits for the threads.
  void end();
  /// The first error of a worker, after end().
  void rethrow_error() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void work(const std::function<std::unique_ptr<RowRunner>()>& make_runner);
  void run_rows(RowRunner& runner, const std::vector<std::uint64_t>& rows);

  const Options options_;
  const ThetaOfRow& theta_of_;
  MissingRows& rows_;
  ResultQueue& results_;
  StopRequest stop_;
  std::mutex mutex_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace nrec
