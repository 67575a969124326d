#include "training/checkpoint.h"

#include <algorithm>

#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"
#include "nrec/io/safetensors.h"
#include "training/history_tensor.h"

namespace nrec {

namespace {

constexpr const char* kFormat = "nrec-checkpoint";
constexpr const char* kVersion = "1";
constexpr const char* kSuccess = "success.";  // starts the names of the arrays of that network

void add_trainer(const TrainerState& state, const std::string& start, std::vector<NamedTensor>& tensors) {
  const auto add = [&](const char* name, std::span<const float> values) {
    tensors.push_back(make_tensor(start + name, {values.size()}, values));
  };
  add("weights", state.network.weights());
  add("statistics", state.network.statistics());
  add("best.weights", state.best.weights());
  add("best.statistics", state.best.statistics());
  add("adam.m", state.adam_m);
  add("adam.v", state.adam_v);
  if (!state.gradient_sum.empty()) add("gradient_sum", state.gradient_sum);
  if (state.average) {
    add("average.weights", std::as_const(*state.average).weights());
    add("average.statistics", std::as_const(*state.average).statistics());
  }
  const std::vector<std::int64_t> counters = {state.step, state.step_in_epoch, state.best_epoch,
                                              state.num_reductions, state.last_reduction};
  tensors.push_back(
      make_tensor(start + "counters", {counters.size()}, std::span<const std::int64_t>(counters)));
  const std::vector<double> sums = {state.epoch_loss_sum};
  tensors.push_back(make_tensor(start + "sums", {sums.size()}, std::span<const double>(sums)));
  tensors.push_back(history_tensor(start + "history", state.history));
}

/// `shape_of` has networks of the wanted shape, and a gradient_sum and an average where they are wanted.
TrainerState read_trainer(const TrainerState& shape_of, const std::string& start, const TensorFile& file,
                          const std::string& where) {
  TrainerState state = shape_of;
  state.history = history_from(file, start + "history", where);
  const auto load = [&](const char* name, std::span<float> into) {
    const std::vector<float> values = f32_values(required_tensor(file, start + name, where));
    if (values.size() != into.size())
      throw IoError(where + ": the array \"" + start + name + "\" has " + std::to_string(values.size()) +
                    " numbers, not " + std::to_string(into.size()) + "; the file is damaged");
    std::copy(values.begin(), values.end(), into.begin());
  };
  load("weights", state.network.weights());
  load("statistics", state.network.statistics());
  load("best.weights", state.best.weights());
  load("best.statistics", state.best.statistics());
  load("adam.m", state.adam_m);
  load("adam.v", state.adam_v);
  if (!state.gradient_sum.empty()) load("gradient_sum", state.gradient_sum);
  if (state.average) {
    load("average.weights", state.average->weights());
    load("average.statistics", state.average->statistics());
  }
  const std::vector<std::int64_t> counters = i64_values(required_tensor(file, start + "counters", where));
  const std::vector<double> sums = f64_values(required_tensor(file, start + "sums", where));
  const auto epochs = static_cast<std::int64_t>(state.history.size());
  if (counters.size() != 5 || sums.size() != 1 || *std::min_element(counters.begin(), counters.end()) < 0 ||
      counters[2] > epochs || counters[3] > epochs || counters[4] > epochs) {
    throw IoError(where + ": the counters contradict each other; the file is damaged");
  }
  state.step = counters[0];
  state.step_in_epoch = counters[1];
  state.best_epoch = static_cast<int>(counters[2]);
  state.num_reductions = static_cast<int>(counters[3]);
  state.last_reduction = static_cast<int>(counters[4]);
  state.epoch_loss_sum = sums[0];
  return state;
}

}  // namespace

void save_checkpoint(const TrainingState& state, const std::string& fingerprint,
                     const std::filesystem::path& path) {
  std::vector<NamedTensor> tensors;
  add_trainer(state.ratio, "", tensors);
  if (state.success) add_trainer(*state.success, kSuccess, tensors);
  write_safetensors(path, tensors,
                    {{"format", kFormat}, {"format_version", kVersion}, {"fingerprint", fingerprint}});
}

namespace {

std::string metadata_of(const TensorFile& file, const char* name) {
  const auto found = file.metadata.find(name);
  return found == file.metadata.end() ? std::string() : found->second;
}

}  // namespace

void check_checkpoint_format(const TensorFile& file, const std::string& where) {
  if (metadata_of(file, "format") != kFormat)
    throw IoError(where + ": this is no checkpoint of nrec; start anew with --overwrite");
  const std::string version = metadata_of(file, "format_version");
  if (version != kVersion) {
    throw UnsupportedError(where + ": checkpoint format version " + one_line_text(version) +
                           ", but this program reads version " + kVersion +
                           "; resume with the nrec that wrote it, or start anew with --overwrite");
  }
}

void load_checkpoint(const std::string& fingerprint, const std::filesystem::path& path,
                     TrainingState& state) {
  const TensorFile file = read_safetensors(path);
  const std::string where = path.string();
  check_checkpoint_format(file, where);
  if (metadata_of(file, "fingerprint") != fingerprint) {
    throw IoError(where +
                  ": this checkpoint belongs to other simulations, settings, seed or instruction set; resume "
                  "with the same ones, or start anew with --overwrite (with learning_rate_schedule = "
                  "\"cosine\" max_num_epochs is one of the settings)");
  }
  TrainerState ratio = read_trainer(state.ratio, "", file, where);
  if (state.success) state.success = read_trainer(*state.success, kSuccess, file, where);
  state.ratio = std::move(ratio);
}

}  // namespace nrec
