#include "commands/unfinished_files.h"

#include <string>
#include <vector>

namespace nrec {

namespace fs = std::filesystem;

void remove_unfinished_files(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    // The name of write_file(), to which other libraries add an ending of their own.
    if (name.starts_with(".nrec-") && name.find(".tmp") != std::string::npos) found.push_back(entry.path());
  }
  for (const fs::path& path : found) fs::remove(path, ignored);
}

}  // namespace nrec
