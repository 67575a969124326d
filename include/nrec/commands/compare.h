#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nrec/core/options.h"
#include "nrec/core/record.h"
#include "nrec/core/run_context.h"

namespace nrec {

/// What to compare, and by which metrics.
struct CompareOptions {
  std::string reference;  // file of the set that scales and defines the bandwidth
  std::string samples;    // file of the set that is judged
  std::vector<std::string> metric = {"c2st", "mmd"};
  std::string z_score = "auto";
  std::int64_t max_rows = 0;
  std::int64_t row = -1;  // observation of arrays [draws, observations, parameters]
};

/// Flags --metric, --z-score, --max-rows, --row.
void describe(OptionTable& table, CompareOptions& options);

/// The metrics with everything they depend on, names as in docs/formats/record.md.
struct CompareResult {
  Record record;  // c2st, c2st_folds, epochs, mmd2, bandwidth, seconds, ...
};

/// Distance between two files of samples: classifier two-sample test and maximum mean discrepancy.
///
/// The seed of the run is the classifier's. Columns are matched by position; named columns in another order
/// are refused. Of an array [S, O, D], the draws of O observations, --row chooses one.
/// Errors   IoError: a file; ShapeError: different numbers of columns, draws of several observations and none chosen, or none to
/// choose from; ConfigError: unknown metric, columns named differently
CompareResult compare(const CompareOptions& options, const RunContext& run);

}  // namespace nrec
