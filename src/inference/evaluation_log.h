#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/log_sink.h"
#include "nrec/inference/posterior.h"

namespace nrec {

/// What a posterior was asked and what it answered, in a file, so that sampling that was cut off goes on where it was.
///
/// Samplers are pure functions of their seed and of the log ratios they are given: one that starts anew and gets its first
/// answers from the log comes to the state in which the earlier run ended, in a small part of the time, whatever the sampler
/// keeps in memory. Every answer is stored with a hash of its question: when the sampler asks for something else (another batch
/// size because of another budget, say) the rest of the log is dropped and the network asked from there on, so that a log can
/// save time but never change a result.
///
///   file = "nrecevl1", u64 hash of the key, blocks;   all words little-endian
///   block = u32 rows, u32 kind (1: float32 values, 2: gradients follow), u64 hash of the thetas, values, gradients, u64 hash of
///           the block
///
/// A block that is cut off or damaged ends the log. When the file cannot be written any more, recording ends with a warning.
/// Cost     4 or 8 bytes an evaluation, on disk; not to be used from two threads at once
class EvaluationLog {
 public:
  /// Opens the log at `path`, or makes it. What it holds of another `key`, or without `resume`, is dropped.
  EvaluationLog(std::filesystem::path path, std::string_view key, bool resume, LogSink& log);
  ~EvaluationLog();
  EvaluationLog(const EvaluationLog&) = delete;
  EvaluationLog& operator=(const EvaluationLog&) = delete;

  /// Fills `values` [n] and `gradients` [n, D] (none where the view is empty) if the log holds them as its next block.
  bool replay(MatrixView<const double> theta, std::span<double> values, MatrixView<double> gradients);
  void append(MatrixView<const double> theta, std::span<const double> values,
              MatrixView<const double> gradients);

  /// Evaluations that replay() has answered.
  std::uint64_t num_replayed() const { return num_replayed_; }
  /// Writes what is buffered.
  void flush();
  /// Ends recording and removes the file.
  void remove();

 private:
  bool read_header(std::uint64_t key_hash);
  bool read_block(std::size_t rows, std::size_t cols, std::uint64_t question, bool has_gradients);
  /// From here on answers are appended; what follows in the file is dropped.
  void begin_recording();
  void give_up(const char* what);

  std::filesystem::path path_;
  LogSink& log_;
  std::FILE* file_ = nullptr;  // null: no recording
  bool is_replaying_ = false;
  long good_ = 0;  // bytes of the file that have been understood
  std::uint64_t num_replayed_ = 0;
  std::vector<char> block_;
};

/// The same posterior, asked through the log.
Posterior recorded(const Posterior& posterior, std::shared_ptr<EvaluationLog> log);

}  // namespace nrec
