#include "training/history_tensor.h"

#include "nrec/core/error.h"

namespace nrec {

namespace {
constexpr std::size_t kColumns = 8;
}

NamedTensor history_tensor(const std::string& name, std::span<const EpochRecord> history) {
  std::vector<double> values;
  for (const EpochRecord& e : history) {
    values.insert(values.end(), {e.training_loss, e.validation_loss, e.validation_loss_se, e.mean_ratio,
                                 e.mean_log_z, e.sd_log_z, e.i0, e.i1});
  }
  return make_tensor(name, {history.size(), kColumns}, std::span<const double>(values));
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
  if (tensor.shape.size() != 2 || tensor.shape[1] != kColumns)
    throw IoError(std::string(where) + ": the array \"" + name +
                  "\" has another shape than [epochs, 8]; the file is damaged");
  const std::vector<double> v = f64_values(tensor);
  std::vector<EpochRecord> history;
  for (std::size_t i = 0; i < v.size(); i += kColumns)
    history.push_back({v[i], v[i + 1], v[i + 2], v[i + 3], v[i + 4], v[i + 5], v[i + 6], v[i + 7]});
  return history;
}

}  // namespace nrec
