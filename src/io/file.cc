#include "nrec/io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

#include "io/byte_source.h"
#include "nrec/core/error.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_write_error(const fs::path& path, int code) {
  const char* remedy = "";
  if (code == ENOENT || code == ENOTDIR) remedy = "; create its folder first";
  if (code == EACCES || code == EPERM || code == EROFS)
    remedy = "; choose another folder or allow writing (chmod u+w)";
  if (code == ENOSPC || code == EDQUOT) remedy = "; free some space or choose another disk";
  throw IoError(fmt::format("{}: cannot be written: {}{}", path.string(),
                            std::generic_category().message(code), remedy));
}

// The file that is to be replaced: links followed, everything but regular files refused.
fs::path write_target(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status))
    throw IoError(fmt::format("{}: is a folder; give the name of a file", path.string()));
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw IoError(fmt::format("{}: is not a regular file and cannot be replaced; give the name of a file",
                              path.string()));
  }
  if (path.filename().empty()) throw IoError(fmt::format("\"{}\": is not the name of a file", path.string()));
  if (fs::is_symlink(fs::symlink_status(path, ignored))) return fs::weakly_canonical(path);
  return path;
}

// Makes an empty file beside `target`; its name starts with a dot, so that patterns like *.npz do not meet
// it.
fs::path make_temporary(const fs::path& target, const fs::path& asked) {
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    // Few letters of the target's name: the longest legal name must still fit with the additions.
    const fs::path name = fmt::format(".nrec-{}-{}.tmp", ::getpid(), counter.fetch_add(1));
    const fs::path temporary = target.parent_path() / name;
    const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      struct stat old {};
      // A file that is replaced keeps its permissions where the system lets us; content matters more.
      if (::stat(target.c_str(), &old) == 0) ::fchmod(descriptor, old.st_mode & 0777);
      ::close(descriptor);
      return temporary;
    }
    if (errno != EEXIST) throw_write_error(asked, errno);
  }
  throw IoError(
      fmt::format("{}: cannot make a temporary file beside it; remove the files .nrec-*.tmp of that folder",
                  asked.string()));
}

void sync_to_disk(const fs::path& written, const fs::path& asked, int flags) {
  const int descriptor = ::open(written.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) throw_write_error(asked, errno);
  // Some network file systems cannot sync (EINVAL); the rename is still atomic there.
  const int code = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (code != 0 && code != EINVAL && code != EROFS) throw_write_error(asked, code);
}

void write_bytes(const fs::path& temporary, std::string_view bytes, const fs::path& asked) {
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (descriptor < 0) throw_write_error(asked, errno);
  int code = 0;
  while (!bytes.empty() && code == 0) {
    const ::ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) code = errno;
    if (count == 0) code = ENOSPC;
  }
  if (::close(descriptor) != 0 && code == 0) code = errno;
  if (code != 0) throw_write_error(asked, code);
}

// FNV-1a with 64 bits: published constants.
constexpr std::uint64_t kFnvOffset = 0xcbf29ce484222325ULL;
constexpr std::uint64_t kFnvPrime = 0x100000001b3ULL;

std::uint64_t fnv1a(std::uint64_t hash, std::string_view bytes) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * kFnvPrime;
  return hash;
}

std::string hash_text(std::uint64_t hash) { return fmt::format("fnv1a64:{:016x}", hash); }

}  // namespace

std::string read_file(const fs::path& path, std::uint64_t max_bytes) {
  io::FileSource source(path);
  if (source.size() > max_bytes) {
    throw IoError(fmt::format("{}: has {} bytes, more than the {} allowed here; is it the right file?",
                              path.string(), source.size(), max_bytes));
  }
  std::string bytes(static_cast<std::size_t>(source.size()), '\0');
  bytes.resize(source.read(bytes));  // shorter when someone truncated the file meanwhile
  return bytes;
}

void replace_file(const fs::path& path, const std::function<void(const fs::path&)>& write) {
  const fs::path target = write_target(path);
  const fs::path temporary = make_temporary(target, path);
  try {
    write(temporary);
    sync_to_disk(temporary, path, O_WRONLY);
    if (::rename(temporary.c_str(), target.c_str()) != 0) throw_write_error(path, errno);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
  sync_to_disk(target.parent_path().empty() ? fs::path(".") : target.parent_path(), path,
               O_RDONLY | O_DIRECTORY);
}

void write_file(const fs::path& path, std::string_view bytes) {
  replace_file(path, [&](const fs::path& temporary) { write_bytes(temporary, bytes, path); });
}

std::string content_hash(std::string_view bytes) { return hash_text(fnv1a(kFnvOffset, bytes)); }

std::string file_hash(const fs::path& path) {
  io::FileSource source(path);
  std::uint64_t hash = kFnvOffset;
  std::string buffer(std::size_t{1} << 20, '\0');
  for (std::size_t count = buffer.size(); count == buffer.size();) {
    count = source.read(buffer);
    hash = fnv1a(hash, std::string_view(buffer).substr(0, count));
  }
  return hash_text(hash);
}

}  // namespace nrec
