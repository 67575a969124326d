#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nrec/core/record.h"

namespace nrec {

/// Whether a record is one of a run: of infer, train, sample or check.
bool is_run(const Record& record);

/// What people look for first in the record of a run at `path`: what was asked, what came out, the verdict.
std::vector<std::string> run_lines(const std::filesystem::path& path, const Record& record);

}  // namespace nrec
