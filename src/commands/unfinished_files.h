#pragma once

#include <filesystem>

namespace nrec {

/// Removes what a sudden end in the middle of a write left in a folder and those below it. To be called by the process that has locked
/// the folder: nobody else is writing there then.
void remove_unfinished_files(const std::filesystem::path& folder);

}  // namespace nrec
