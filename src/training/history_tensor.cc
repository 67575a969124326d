#include "training/history_tensor.h"

#include <limits>

#include "nrec/core/error.h"

namespace nrec {

namespace {

/// The columns, in the order of both directions; new ones are added at the end.
constexpr double EpochRecord::*kColumns[] = {&EpochRecord::training_loss,
                                             &EpochRecord::validation_loss,
                                             &EpochRecord::validation_loss_se,
                                             &EpochRecord::mean_ratio,
                                             &EpochRecord::mean_log_z,
                                             &EpochRecord::sd_log_z,
                                             &EpochRecord::i0,
                                             &EpochRecord::i1,
                                             &EpochRecord::mean_log_ratio,
                                             &EpochRecord::nre_a_loss,
                                             &EpochRecord::kld};
constexpr std::size_t kNumColumns = std::size(kColumns);
constexpr std::size_t kNumFirstColumns = 8;  // of files that were written before the others were measured

}  // namespace

NamedTensor history_tensor(const std::string& name, std::span<const EpochRecord> history) {
  std::vector<double> values;
  values.reserve(history.size() * kNumColumns);
  for (const EpochRecord& epoch : history) {
    for (double EpochRecord::*column : kColumns) values.push_back(epoch.*column);
  }
  return make_tensor(name, {history.size(), kNumColumns}, std::span<const double>(values));
}

const NamedTensor& required_tensor(const TensorFile& file, std::string_view name, std::string_view where) {
  const NamedTensor* tensor = file.find(name);
  if (!tensor)
    throw IoError(std::string(where) + ": the array \"" + std::string(name) +
                  "\" is missing; the file is damaged or of another kind");
  return *tensor;
}

std::vector<EpochRecord> history_from(const TensorFile& file, const std::string& name,
                                      std::string_view where) {
  const NamedTensor& tensor = required_tensor(file, name, where);
  if (tensor.shape.size() != 2 || (tensor.shape[1] != kNumColumns && tensor.shape[1] != kNumFirstColumns))
    throw IoError(std::string(where) + ": the array \"" + name + "\" has another shape than [epochs, " +
                  std::to_string(kNumColumns) + "] (or [epochs, " + std::to_string(kNumFirstColumns) +
                  "], as older files); the file is damaged");
  const std::size_t stored = tensor.shape[1];
  const std::vector<double> values = f64_values(tensor);
  std::vector<EpochRecord> history(tensor.shape[0]);
  for (std::size_t i = 0; i < history.size(); ++i) {
    for (std::size_t j = 0; j < kNumColumns; ++j)
      history[i].*kColumns[j] =
          j < stored ? values[i * stored + j] : std::numeric_limits<double>::quiet_NaN();
  }
  return history;
}

}  // namespace nrec
