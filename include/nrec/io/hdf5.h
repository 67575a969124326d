#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "nrec/io/numeric_array.h"

namespace nrec {

/// What datasets may hold before they are refused.
struct Hdf5Limits {
  std::uint64_t max_bytes = std::uint64_t{16} << 30;  // of all datasets that are read together, as float64
};

/// Paths of the datasets of an HDF5 file ("theta", "group/x"), sorted.
/// Errors   IoError: missing, no HDF5 file, truncated; more than 10,000 objects, a name with a control character
std::vector<std::string> hdf5_names(const std::filesystem::path& path);

/// Whether a file has something of that name at its root, a group or a link that leads nowhere as well. Errors   as above
bool hdf5_has(const std::filesystem::path& path, const std::string& name);

/// The datasets called `names` (paths from the root group), in that order. NetCDF-4 files are HDF5 files,
/// too.
///
/// Errors   IoError: missing, no HDF5 file, truncated; no such dataset (says which there are); a dataset in
/// another file
///          (external or virtual), never written, larger than allowed or than its stored bytes can inflate
///          to; UnsupportedError: text, compound, reference, variable-length, opaque and enumerated types
///          (but h5py's bool), long double; DomainError: a whole number beyond 2^53
/// Numerics as read_npy
/// Cost     8 bytes of memory per element (16 for 64-bit integers while reading). One thread at a time: the
/// HDF5 library is not
///          thread-safe in most builds, so calls wait for each other; callers who use HDF5 themselves must
///          not do so meanwhile
NamedArrays read_hdf5(const std::filesystem::path& path, std::span<const std::string> names,
                      const Hdf5Limits& limits = {});

}  // namespace nrec
