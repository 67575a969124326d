#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nrec/core/record.h"

namespace nrec {

/// What was found, for programs and for people.
struct InfoResult {
  Record record;
  std::vector<std::string> lines;  // the same for people; of a run's record what they look for first
};

/// What is in a file: an estimator, a checkpoint, a record, settings (TOML), or a table or archive of numbers. A folder means
/// its record.json, or its checkpoint where that is all there is. whole: lines for every entry of a record, too.
///
/// Errors   those of the reader of that kind of file; IoError: a database of a campaign
InfoResult info(const std::filesystem::path& path, bool whole = false);

/// Which kernels this machine runs, and why others are not chosen.
InfoResult cpu_info();

}  // namespace nrec
