#include "io/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "nrec/core/error.h"
#include "nrec/core/suggest.h"

namespace nrec::io {

namespace {

std::string reason_of(int code) { return std::generic_category().message(code); }

// "; did you mean \"sims.npz\"?" or what is known about the folder of a missing file.
std::string missing_file_hint(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path().empty() ? "." : path.parent_path();
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    return fmt::format("; there is no folder {}", folder.string());
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(
      folder, std::filesystem::directory_options::skip_permission_denied, ignored);
  constexpr std::size_t kMostNames = 10000;  // a look at a folder must not take long
  for (; !ignored && entry != std::filesystem::directory_iterator() && names.size() < kMostNames;
       entry.increment(ignored)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  const std::string nearest = nearest_word(path.filename().string(), names);
  return nearest.empty() ? "; check the name and the folder" : fmt::format("; did you mean \"{}\"?", nearest);
}

[[noreturn]] void throw_open_error(const std::filesystem::path& path, int code) {
  std::error_code ignored;
  if (path.empty()) throw IoError("the name of a file is empty; name the file");
  if (code == ENOENT && std::filesystem::is_symlink(path, ignored)) {
    throw IoError(fmt::format("{}: is a link to {}, which is not there", path.string(),
                              std::filesystem::read_symlink(path, ignored).string()));
  }
  if (code == ENOENT || code == ENOTDIR) {
    throw IoError(fmt::format("{}: no such file{}", path.string(), missing_file_hint(path)));
  }
  const char* remedy = code == EACCES || code == EPERM ? "; allow reading it (chmod u+r) or copy it" : "";
  throw IoError(fmt::format("{}: cannot be read: {}{}", path.string(), reason_of(code), remedy));
}

}  // namespace

std::size_t MemorySource::read(std::span<char> out) {
  const std::size_t count = std::min(out.size(), bytes_.size());
  if (count > 0) std::memcpy(out.data(), bytes_.data(), count);
  bytes_.remove_prefix(count);
  return count;
}

FileSource::FileSource(const std::filesystem::path& path) : path_(path) {
  // Non-blocking, so that a pipe without a writer is refused below instead of waited for.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw_open_error(path, errno);
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (known && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  ::close(descriptor_);
  if (known && S_ISDIR(status.st_mode))
    throw IoError(fmt::format("{}: is a folder; give a file in it", path.string()));
  throw IoError(fmt::format("{}: is not a regular file; write the data to a file first", path.string()));
}

FileSource::~FileSource() { ::close(descriptor_); }

std::size_t FileSource::read(std::span<char> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ::ssize_t count = ::read(descriptor_, out.data() + done, out.size() - done);
    if (count == 0) break;
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      throw IoError(fmt::format("{}: reading failed: {}; check the disk or the network folder",
                                path_.string(), reason_of(errno)));
    }
  }
  return done;
}

std::uint64_t checked_file_size(const std::filesystem::path& path) { return FileSource(path).size(); }

}  // namespace nrec::io
