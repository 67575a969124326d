#include "simulation/external/scratch_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "nrec/core/error.h"

namespace nrec::simulation {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "nrec-scratch-";
constexpr int kMostAttempts = 10;

[[noreturn]] void throw_no_folder(const fs::path& path, int code) {
  const char* remedy = code == ENOSPC || code == EDQUOT ? "free some space, or choose another disk with"
                                                        : "choose a folder that can be written with";
  throw IoError(fmt::format("simulator: no folder for temporary files can be made in {}: {}; {} scratch",
                            path.string(), std::generic_category().message(code), remedy));
}

// Folders without permissions, as programs leave them, must be opened up before they can be emptied.
void open_up(const fs::path& folder) {
  std::error_code ignored;
  fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add, ignored);
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    std::error_code unreadable;
    if (fs::is_directory(entry->symlink_status(unreadable))) open_up(entry->path());
  }
}

void remove_whole(const fs::path& folder) noexcept {
  std::error_code code;
  fs::remove_all(folder, code);
  if (!code) return;
  try {
    open_up(folder);
    fs::remove_all(folder, code);
  } catch (const std::exception&) {  // out of memory: the next start tries again
  }
}

bool is_same_folder(int descriptor, const fs::path& path) {
  struct stat opened {
  }, named{};
  return fstat(descriptor, &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool is_own_folder(const fs::path& path) {
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid();
}

void remove_if_stale(const fs::path& path) {
  if (!is_own_folder(path)) return;
  const int lock = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (lock < 0) return;
  // Where folders cannot be locked (some network disks), nothing is known and nothing removed.
  if (flock(lock, LOCK_EX | LOCK_NB) == 0 && is_same_folder(lock, path)) remove_whole(path);
  close(lock);
}

}  // namespace

ScratchFolder::~ScratchFolder() {
  if (!own_.empty()) remove_whole(own_);
  if (lock_ >= 0) close(lock_);
}

const fs::path& ScratchFolder::fresh() {
  clear();
  for (int attempt = 0;; ++attempt) {
    if (own_.empty()) make_own();
    current_ = own_ / std::to_string(count_++);
    if (mkdir(current_.c_str(), 0700) == 0) return current_;
    const int code = errno;
    current_.clear();
    // A program may have removed more than its own folder, or its permissions: start afresh.
    if ((code != ENOENT && code != EACCES && code != ENOTDIR && code != EEXIST) || attempt == kMostAttempts)
      throw_no_folder(base_, code);
    if (code != EEXIST) own_.clear();
  }
}

void ScratchFolder::clear() {
  if (!current_.empty()) remove_whole(current_);
  current_.clear();
}

void ScratchFolder::make_own() {
  std::error_code code;
  fs::create_directories(base_, code);
  if (code) throw_no_folder(base_, code.value());
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    if (lock_ >= 0) close(std::exchange(lock_, -1));
    std::string pattern = (base_ / (std::string(kPrefix) + std::to_string(getpid()) + "-XXXXXX")).string();
    if (mkdtemp(pattern.data()) == nullptr) throw_no_folder(base_, errno);
    own_ = pattern;
    lock_ = open(own_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock_ >= 0) flock(lock_, LOCK_EX);
    // Another process may have taken it for stale before it was locked.
    if (lock_ < 0 || is_same_folder(lock_, own_)) return;
  }
  throw_no_folder(base_, EBUSY);
}

void remove_stale_scratch(const fs::path& base) noexcept {
  try {
    std::error_code code;
    for (fs::directory_iterator entry(base, code), end; !code && entry != end; entry.increment(code)) {
      if (entry->path().filename().string().starts_with(kPrefix)) remove_if_stale(entry->path());
    }
  } catch (const std::exception&) {  // out of memory: tidying can wait
  }
}

}  // namespace nrec::simulation
