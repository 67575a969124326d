#include "nrec/commands/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

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
        fmt::format("{}: holds {} of an earlier run; {}replace it by --overwrite, or choose another --out",
                    shown, name, options.can_resume ? "go on with it by --resume, " : ""));
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
  // A lock on the folder itself leaves no file behind and ends with the process. File systems without locks go without.
  lock_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0 && flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(lock_);
    throw ConfigError(shown + ": another nrec is writing there; wait for it or choose another --out");
  }
}

OutputFolder::~OutputFolder() {
  if (lock_ >= 0) close(lock_);
  if (first_made_.empty()) return;
  std::error_code code;
  fs::path folder = fs::absolute(folder_, code).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  // remove() leaves folders that are not empty alone.
  while (fs::is_empty(folder, code) && !code && fs::remove(folder, code) && folder != first_made_)
    folder = folder.parent_path();
}

void OutputFolder::refuse_inputs(std::span<const std::string> inputs) const {
  for (const std::string& input : inputs) {
    for (const std::string& name : owned_) {
      std::error_code code;
      if (!fs::equivalent(input, folder_ / name, code) || code) continue;
      throw ConfigError(
          fmt::format("{}: is an input, and the results would replace it; choose another --out", input));
    }
  }
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
