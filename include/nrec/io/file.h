#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace nrec {

/// Whole content of a regular file.
///
/// Errors   IoError: missing (names the nearest file of that folder), a folder, not a regular file, no
/// permission,
///          larger than max_bytes
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes = std::uint64_t{4} << 30);

/// Writes a file so that readers see the old or the new content, never a part of it: a temporary file in the
/// same folder is written, synced to disk and renamed over `path`. A symbolic link stays and its target is
/// replaced.
///
/// Errors   IoError: missing folder, a folder, not a regular file, no permission, disk full; `path` is then
/// unchanged
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// The same for writers that want a file name: `write` fills the temporary file it is given (it exists,
/// empty). When `write` throws, the temporary file is removed and `path` is unchanged.
void replace_file(const std::filesystem::path& path,
                  const std::function<void(const std::filesystem::path&)>& write);

/// Fingerprint of bytes for provenance, "fnv1a64:" and 16 hexadecimal digits. It tells accidental changes,
/// not forgeries.
///
///   h = 0xcbf29ce484222325;  for each byte b:  h = (h xor b) * 0x100000001b3  mod 2^64
///
/// Source   [FowlerNollVo, FNV-1a, 64 bits]
std::string content_hash(std::string_view bytes);
/// content_hash of a file's content, in constant memory.
/// Errors   IoError as read_file
std::string file_hash(const std::filesystem::path& path);

}  // namespace nrec
