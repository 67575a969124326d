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
};

/// Flags --metric, --z-score, --max-rows.
void describe(OptionTable& table, CompareOptions& options);

/// The metrics with everything they depend on, names as in docs/formats/record.md.
struct CompareResult {
  Record record;  // c2st, c2st_folds, epochs, mmd2, bandwidth, seconds, ...
};

/// Distance between two files of samples: classifier two-sample test and maximum mean discrepancy.
///
/// The seed of the run is the classifier's. Columns are matched by position; named columns in another order
/// are refused. Errors   IoError: a file; ShapeError: different numbers of columns; ConfigError: unknown
/// metric, columns named differently
CompareResult compare(const CompareOptions& options, const RunContext& run);

}  // namespace nrec
