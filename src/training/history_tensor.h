#pragma once

#include <span>
#include <string>
#include <vector>

#include "nrec/io/safetensors.h"
#include "nrec/training/ratio_estimator.h"

namespace nrec {

/// Per-epoch records as a tensor [epochs, 11] (columns in the order of EpochRecord), and back. Of older files, which have the
/// first 8 columns, the others are nan.
NamedTensor history_tensor(const std::string& name, std::span<const EpochRecord> history);
/// Errors   IoError: missing or misshapen; `where` starts the message
std::vector<EpochRecord> history_from(const TensorFile& file, const std::string& name,
                                      std::string_view where);

/// The tensor `name` of the file. Errors: IoError: missing, with the file's name.
const NamedTensor& required_tensor(const TensorFile& file, std::string_view name, std::string_view where);

}  // namespace nrec
