#pragma once

#include <filesystem>
#include <optional>

#include "commands/benchmark_plan.h"
#include "commands/benchmark_references.h"
#include "nrec/training/ratio_estimator.h"

namespace nrec {

/// What two runs of one cell must have in common for one of them to stand for the other.
Record cell_identity(const BenchmarkOptions& options, const BenchmarkCell& cell, const BenchmarkTask& task,
                     const RunContext& run);

/// The stored record of a cell, or nothing when there is none that can be read.
/// Errors   ConfigError: it was made with other settings (the first that differs is named)
std::optional<Record> stored_cell(const std::filesystem::path& path, const Record& identity);

/// Files of a cell besides its record.
struct CellFiles {
  std::filesystem::path checkpoint;  // of its training, until it is done
  std::filesystem::path estimator;   // its network, for check and sample
};

/// Simulates and trains a cell's network, writes it to files.estimator, and adds the facts of training to `record`. Nothing
/// when training gave no usable network, or a stop was requested; the checkpoint then goes on with it.
///
/// Errors   those of training; IoError: the estimator cannot be written
std::optional<RatioEstimator> train_cell(const BenchmarkOptions& options, const BenchmarkCell& cell,
                                         const CellFiles& files, const RunContext& run, Record& record);

/// Draws for every observation of the task, measures the draws, and adds both to `record`. False when a stop was requested
/// before the end.
///
/// Errors   those of sampling
bool measure_cell(const RatioEstimator& estimator, const SamplingOptions& sampling, const BenchmarkTask& task,
                  const RunContext& run, Record& record);

/// Trains and measures one cell. Nothing when a stop was requested before its end. A network that did not become usable is a
/// record with the status "failed".
///
/// Errors   those of training and sampling; IoError: the estimator cannot be written
std::optional<Record> run_cell(const BenchmarkOptions& options, const BenchmarkCell& cell,
                               const BenchmarkTask& task, const CellFiles& files, const RunContext& run);

}  // namespace nrec
