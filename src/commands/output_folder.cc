#include "nrec/commands/output_folder.h"

#include <fmt/format.h>

#include "nrec/core/error.h"
#include "nrec/io/file.h"

namespace nrec {

namespace fs = std::filesystem;

OutputFolder::OutputFolder(const fs::path& folder, std::span<const std::string_view> owned,
                           const OutputOptions& options)
    : folder_(folder), owned_(owned.begin(), owned.end()), overwrite_(options.overwrite) {
  if (options.overwrite && options.resume)
    throw UsageError(
        "--overwrite and --resume contradict each other: one starts anew, the other goes on; give one");
  std::error_code code;
  const std::string shown = folder.string();
  if (fs::exists(folder, code) && !fs::is_directory(folder, code))
    throw IoError(shown + ": is a file, so no results can be put into it; choose another --out");
  for (const std::string& name : owned_) {
    if (overwrite_ || options.resume || !fs::exists(folder / name, code)) continue;
    throw ConfigError(
        fmt::format("{}: holds {} of an earlier run; go on with it by --resume, replace it by --overwrite, "
                    "or choose another --out",
                    shown, name));
  }
  for (fs::path above = fs::absolute(folder).lexically_normal();
       !fs::exists(above, code) && above != above.parent_path(); above = above.parent_path()) {
    if (above.has_filename()) first_made_ = above;
  }
  fs::create_directories(folder, code);
  if (code)
    throw IoError(fmt::format("{}: the folder for the results cannot be made: {}; choose another --out",
                              shown, code.message()));
  const fs::path probe = folder / ".nrec_can_write";
  try {
    write_file(probe, "");
  } catch (const IoError& error) {
    throw IoError(
        fmt::format("{}: no file can be written there ({}); choose another --out", shown, error.what()));
  }
  fs::remove(probe, code);
}

OutputFolder::~OutputFolder() {
  if (first_made_.empty()) return;
  std::error_code code;
  fs::path folder = fs::absolute(folder_, code).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  // remove() leaves folders that are not empty alone.
  while (fs::is_empty(folder, code) && !code && fs::remove(folder, code) && folder != first_made_)
    folder = folder.parent_path();
}

void OutputFolder::clear() const {
  if (!overwrite_) return;
  for (const std::string& name : owned_) {
    std::error_code code;
    fs::remove(folder_ / name, code);
    if (code)
      throw IoError(fmt::format("{}: cannot be replaced: {}; choose another --out", (folder_ / name).string(),
                                code.message()));
  }
}

}  // namespace nrec
