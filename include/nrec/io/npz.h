#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "nrec/io/numeric_array.h"

namespace nrec {

/// What an archive may hold before it is refused.
struct NpzLimits {
  std::uint64_t max_bytes = std::uint64_t{16} << 30;  // of all arrays that are read together, inflated
};

/// Names of the arrays of a .npz file (without ".npy"), in the order of the archive.
std::vector<std::string> npz_names(const std::filesystem::path& path);

/// All arrays of a .npz file, in the order of the archive.
///
/// Errors   IoError: no archive, truncated, damaged (check sums are verified), more than 1,000 entries, an
///          entry with an absolute name or "..", more inflated bytes than allowed, a name twice or with a control
///          character; and those of read_npy for each array
/// Cost     8 bytes of memory per element; an entry's declared size is believed only as far as its stored
///          bytes can inflate to it
NamedArrays read_npz(const std::filesystem::path& path, const NpzLimits& limits = {});

/// Only the arrays called `names`, in that order.
/// Errors   also IoError: a name is not there (says which names are)
NamedArrays read_npz(const std::filesystem::path& path, std::span<const std::string> names,
                     const NpzLimits& limits = {});

/// Writes arrays to a .npz file, deflated or stored, with the care of write_file. Equal input gives equal
/// bytes (the time stamps in the archive are fixed). Errors   ConfigError: no arrays, an empty name, a name
/// twice or one with "/", "\", ".." or a control character; and those of npy_bytes and write_file
void write_npz(const std::filesystem::path& path, const NamedArrays& arrays, bool compressed = true);

}  // namespace nrec
