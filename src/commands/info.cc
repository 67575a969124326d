#include "nrec/commands/info.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "commands/campaign_info.h"
#include "commands/listing.h"
#include "commands/results.h"
#include "commands/run_info.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/core/printable_text.h"
#include "nrec/io/file.h"
#include "nrec/io/hdf5.h"
#include "nrec/io/json.h"
#include "nrec/io/npy.h"
#include "nrec/io/npz.h"
#include "nrec/io/safetensors.h"
#include "nrec/io/tables.h"
#include "nrec/io/toml.h"
#include "nrec/kernels/dispatch.h"
#include "nrec/simulation/campaign_store.h"
#include "nrec/training/ratio_estimator.h"
#include "training/checkpoint.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> one_line_texts(std::span<const std::string> texts) {
  std::vector<std::string> lines;
  for (const std::string& text : texts) lines.push_back(one_line_text(text));
  return lines;
}

std::string value_text(const RecordValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const double* real = std::get_if<double>(&value)) return fmt::format("{:.6g}", *real);
  if (const auto* text = std::get_if<std::string>(&value)) return one_line_text(*text);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    constexpr std::size_t kMost = 40;
    const bool is_short = texts->size() <= kMost;
    const std::string shown = fmt::format(
        "{}", fmt::join(one_line_texts(std::span(*texts).first(is_short ? texts->size() : kMost)), ", "));
    return is_short ? shown : fmt::format("{}, ... ({} texts)", shown, texts->size());
  }
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
    return reals->size() > 8 ? fmt::format("({} numbers)", reals->size())
                             : fmt::format("{:.6g}", fmt::join(*reals, ", "));
  }
  const auto& wholes = std::get<std::vector<std::int64_t>>(value);
  return wholes.size() > 8 ? fmt::format("({} numbers)", wholes.size())
                           : fmt::format("{}", fmt::join(wholes, ", "));
}

}  // namespace

std::string info_line(const std::string& name, const RecordValue& value) {
  return fmt::format("{:<26} {}", name, value_text(value));
}

void Listing::add(const std::string& name, RecordValue value) {
  result.lines.push_back(info_line(name, value));
  result.record.set(name, std::move(value));
}

namespace {

void list_estimator(const fs::path& path, Listing& list) {
  const RatioEstimator estimator = load_estimator(path);
  list.add("kind", std::string("estimator"));
  list.add("parameters", estimator.prior.names());
  list.add("prior", estimator.prior.description());
  list.add("dim_x", static_cast<std::int64_t>(estimator.x_standardiser.dim()));
  list.add("weights", static_cast<std::int64_t>(estimator.network.weights().size()));
  for (const auto& [name, value] : estimator.settings.entries()) list.add(name, value);
  if (estimator.success) list.add("success_model", estimator.success->sentence());
  list.add("num_epochs", static_cast<std::int64_t>(estimator.history.size()));
  list.add("best_epoch", static_cast<std::int64_t>(estimator.best_epoch));
  if (estimator.best_epoch < 1 || static_cast<std::size_t>(estimator.best_epoch) > estimator.history.size())
    return;
  const EpochRecord& best = estimator.history[static_cast<std::size_t>(estimator.best_epoch) - 1];
  list.add("best_training_loss", best.training_loss);
  list.add("best_validation_loss", best.validation_loss);
  list.add("best_validation_loss_se", best.validation_loss_se);
  list.add("mean_ratio", best.mean_ratio);
}

void list_safetensors(const fs::path& path, Listing& list) {
  const TensorFile file = read_safetensors(path);
  const auto format = file.metadata.find("format");
  if (format != file.metadata.end() && format->second == "nrec-estimator") return list_estimator(path, list);
  const bool is_checkpoint = format != file.metadata.end() && format->second == "nrec-checkpoint";
  list.add("kind", std::string(is_checkpoint ? "checkpoint of a training run" : "safetensors"));
  if (is_checkpoint) {
    check_checkpoint_format(file, path.string());
    if (const NamedTensor* history = file.find("history"); history && !history->shape.empty())
      list.add("num_epochs", static_cast<std::int64_t>(history->shape[0]));
    return;
  }
  for (const NamedTensor& tensor : file.tensors) list.add(tensor.name, shape_text(tensor.shape));
}

void list_arrays(const NamedArrays& arrays, const char* kind, Listing& list) {
  list.add("kind", std::string(kind));
  for (const auto& [name, array] : arrays) {
    const auto finite = std::count_if(array.values.begin(), array.values.end(),
                                      [](double value) { return std::isfinite(value); });
    const auto bad = static_cast<std::int64_t>(array.values.size()) - finite;
    list.add(name.empty() ? "array" : name, fmt::format("{} of {}{}", shape_text(array.shape), array.dtype,
                                                        bad ? fmt::format(", {} not finite", bad) : ""));
  }
}

void list_table(const fs::path& path, Listing& list) {
  const SampleTable table = read_samples(path);
  list.add("kind", std::string("table"));
  list.add("rows", static_cast<std::int64_t>(table.values.rows()));
  list.add("columns", static_cast<std::int64_t>(table.values.cols()));
  if (!table.names.empty()) list.add("names", table.names);
}

void list_record(const fs::path& path, bool whole, Listing& list) {
  const Record record = record_from_json(read_file(path), path.string());
  list.add("kind", std::string("record"));
  for (const auto& [name, value] : record.entries()) list.add(name == "kind" ? "record.kind" : name, value);
  if (!whole && is_run(record)) list.result.lines = run_lines(path, record);
}

/// A problem file, or the config.toml of a run.
void list_settings(const fs::path& path, Listing& list) {
  const TomlValue root = read_toml(path);
  list.add("kind", std::string("settings (TOML)"));
  std::vector<std::string> sections;
  for (const auto& [name, value] : std::get<TomlTable>(root.value)) sections.push_back(name);
  const bool is_problem = std::ranges::any_of(
      sections, [](const std::string& name) { return name == "parameters" || name == "simulations"; });
  list.add("sections", std::move(sections));
  list.add("taken_by",
           std::string(is_problem ? "nrec infer, nrec simulate, nrec train, nrec check --problem"
                                  : "no command: a problem file has [parameters] or [simulations]"));
}

/// The record, or the checkpoint of a run that was cut off before it had one.
fs::path file_of_run(const fs::path& folder) {
  std::error_code code;
  const fs::path record = folder / files::kRecord, checkpoint = folder / files::kCheckpoint;
  return !fs::exists(record, code) && fs::exists(checkpoint, code) ? checkpoint : record;
}

/// A folder without a run in it, but with a database: its reader says what is wrong with that.
bool is_damaged_campaign(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code) || fs::exists(file_of_run(folder), code)) return false;
  fs::directory_iterator entries(folder, code);
  return !code && std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    return entry.path().extension() == ".sqlite";
  });
}

/// First bytes of a file. A file that cannot be read is left to the reader's own message.
std::string first_bytes(const fs::path& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return {};
  std::string bytes(256, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  return bytes;
}

/// Whether a file is JSON, whole or damaged: it starts as an object, or is called so.
bool looks_like_json(const std::string& start, const fs::path& file) {
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  return file.extension() == ".json" || (first != std::string::npos && start[first] == '{');
}

void list_file(const fs::path& file, bool whole, Listing& list) {
  const std::string start = first_bytes(file);
  const fs::path ending = file.extension();
  if (start.starts_with("PK")) return list_arrays(read_npz(file), "archive of arrays (.npz)", list);
  if (start.starts_with("\x93NUMPY")) return list_arrays({{"", read_npy(file)}}, "array (.npy)", list);
  if (start.starts_with("\x89HDF")) return list_arrays(read_hdf5(file, hdf5_names(file)), "HDF5", list);
  if (start.starts_with("SQLite format 3")) {
    throw IoError(file.string() +
                  ": is a database; if it is one of a campaign's, give nrec info the folder that it is in");
  }
  if (ending == ".safetensors" || (start.size() > 9 && start[8] == '{' && start[7] == '\0'))
    return list_safetensors(file, list);
  if (ending == ".toml") return list_settings(file, list);
  if (looks_like_json(start, file)) return list_record(file, whole, list);
  list_table(file, list);
}

}  // namespace

InfoResult info(const fs::path& path, bool whole) {
  std::error_code code;
  if (is_campaign(path) || is_damaged_campaign(path)) {
    Listing list;
    list.add("folder", path.string());
    list_campaign(path, list);
    return std::move(list.result);
  }
  const fs::path file = fs::is_directory(path, code) ? file_of_run(path) : path;
  Listing list;
  list.add("file", file.string());
  if (!fs::is_regular_file(file, code)) {
    list_table(file, list);  // says why it cannot be read
  } else {
    list_file(file, whole, list);
  }
  return std::move(list.result);
}

InfoResult cpu_info() {
  Listing list;
  list.add("chosen", resolve_isa("auto"));
  for (const IsaStatus& isa : isa_list())
    list.add(isa.name, std::string(isa.available ? "available" : "not available: " + isa.reason));
  return std::move(list.result);
}

}  // namespace nrec
