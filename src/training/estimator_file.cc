// Estimator <-> safetensors. docs/formats/estimator.md describes the layout.
#include <algorithm>
#include <cmath>

#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"
#include "nrec/io/json.h"
#include "nrec/io/safetensors.h"
#include "nrec/training/ratio_estimator.h"
#include "training/history_tensor.h"

namespace nrec {

namespace {

constexpr const char* kFormat = "nrec-estimator";
// A file without a success model is as in version 1. One with it must not be read by programs that know nothing of it:
// they would leave it out without a word.
constexpr const char* kVersion = "1";
constexpr const char* kVersionWithSuccess = "2";
constexpr const char* kSuccess = "success.";  // starts the names of its arrays and header entries

NamedTensor numbers(const char* name, const std::vector<double>& values) {
  return make_tensor(name, {values.size()}, std::span<const double>(values));
}

void add_prior(const Prior& prior, Record& header, std::vector<NamedTensor>& tensors) {
  header.set("parameter_names", prior.names());
  header.set("prior.num_terms", prior.terms().size());
  for (std::size_t i = 0; i < prior.terms().size(); ++i) {
    const PriorTerm& term = prior.terms()[i];
    const std::string start = "prior." + std::to_string(i) + ".";
    header.set(start + "names", term.names);
    header.set(start + "family", term.family);
    header.set(start + "transform", term.transform);
    std::vector<std::string> keywords;
    for (const auto& [keyword, values] : term.parameters) {
      keywords.push_back(keyword);
      header.set(start + "value." + keyword, values);
    }
    header.set(start + "keywords", keywords);
  }
  if (prior.terms().empty())
    tensors.push_back(make_tensor("prior.samples", {prior.samples().rows(), prior.samples().cols()},
                                  std::span<const double>(prior.samples().values())));
}

/// A typed look into the header that names the file when something is missing.
struct Header {
  const Record& record;
  const std::string& where;
  template <class T>
  const T& get(const std::string& name) const {
    const RecordValue* value = record.find(name);
    const T* typed = value ? std::get_if<T>(value) : nullptr;
    if (!typed)
      throw IoError(where + ": the header entry \"" + name +
                    "\" is missing or of another type; the file is damaged");
    return *typed;
  }
  std::size_t count(const std::string& name) const {
    const std::int64_t value = get<std::int64_t>(name);
    if (value < 0 || value > (std::int64_t{1} << 32))
      throw IoError(where + ": the header entry \"" + name + "\" = " + std::to_string(value) +
                    " is no count; the file is damaged");
    return static_cast<std::size_t>(value);
  }
  /// A number that was written without a point comes back as an integer.
  double real(const std::string& name) const {
    const RecordValue* value = record.find(name);
    const auto* whole = value ? std::get_if<std::int64_t>(value) : nullptr;
    return whole ? static_cast<double>(*whole) : get<double>(name);
  }
  /// Lists of numbers come back as integers when no number had a point.
  std::vector<double> reals(const std::string& name) const {
    const RecordValue* value = record.find(name);
    if (value) {
      if (const auto* whole = std::get_if<std::vector<std::int64_t>>(value))
        return {whole->begin(), whole->end()};
    }
    return get<std::vector<double>>(name);
  }
  /// A list of texts; an empty one has no type in JSON.
  std::vector<std::string> texts(const std::string& name) const {
    const RecordValue* value = record.find(name);
    if (value) {
      if (const auto* empty = std::get_if<std::vector<double>>(value); empty && empty->empty()) return {};
    }
    return get<std::vector<std::string>>(name);
  }
};

Prior read_terms_or_samples(const Header& header, const TensorFile& file) {
  const std::size_t num_terms = header.count("prior.num_terms");
  if (num_terms == 0) {
    const NamedTensor& tensor = required_tensor(file, "prior.samples", header.where);
    if (tensor.shape.size() != 2)
      throw IoError(header.where + ": the array \"prior.samples\" is not a table; the file is damaged");
    return Prior::from_samples(header.texts("parameter_names"),
                               Matrix<double>(tensor.shape[0], tensor.shape[1], f64_values(tensor)));
  }
  std::vector<PriorTerm> terms;
  for (std::size_t i = 0; i < num_terms; ++i) {
    const std::string start = "prior." + std::to_string(i) + ".";
    PriorTerm term;
    term.names = header.texts(start + "names");
    term.family = header.get<std::string>(start + "family");
    term.transform = header.get<std::string>(start + "transform");
    for (const std::string& keyword : header.texts(start + "keywords"))
      term.parameters.emplace_back(keyword, header.reals(start + "value." + keyword));
    terms.push_back(std::move(term));
  }
  return Prior::from_terms(std::move(terms));
}

/// What a prior refuses is here no mistake of the user's but of the file.
Prior read_prior(const Header& header, const TensorFile& file) {
  try {
    return read_terms_or_samples(header, file);
  } catch (const InternalError&) {
    throw;
  } catch (const IoError&) {
    throw;
  } catch (const Error& error) {
    throw IoError(header.where + ": " + error.what() + " The file is damaged: train again, or copy it again");
  }
}

std::vector<double> read_numbers(const TensorFile& file, const char* name, std::size_t size,
                                 const std::string& where) {
  std::vector<double> values = f64_values(required_tensor(file, name, where));
  if (values.size() != size)
    throw IoError(where + ": the array \"" + name + "\" has " + std::to_string(values.size()) +
                  " numbers, not " + std::to_string(size) + "; the file is damaged");
  for (const double value : values) {
    if (!std::isfinite(value))
      throw IoError(where + ": the array \"" + name +
                    "\" holds a number that is not finite; the file is damaged");
  }
  return values;
}

/// Scales divide: none may be 0 or negative.
std::vector<double> read_scales(const TensorFile& file, const char* name, std::size_t size,
                                const std::string& where) {
  std::vector<double> values = read_numbers(file, name, size, where);
  for (const double value : values) {
    if (!(value > 0))
      throw IoError(where + ": the array \"" + name +
                    "\" holds a scale that is not > 0; the file is damaged");
  }
  return values;
}

bool is_network_tensor(std::string_view name) {
  return name.starts_with("input.") || name.starts_with("blocks.") || name.starts_with("output.");
}

void add_network(const PairNetwork& network, const std::string& start, std::vector<NamedTensor>& tensors) {
  for (const NetworkTensor& tensor : network.tensors())
    tensors.push_back(make_tensor(start + tensor.name, tensor.shape, std::span<const float>(tensor.values)));
}

/// The network whose arrays' names begin with `start`.
PairNetwork read_network(const PairNetworkShape& shape, const TensorFile& file, const std::string& start,
                         const std::string& where) {
  // Sizes come from the file: compare with an array that was read before allocating a network of that size.
  const NamedTensor& input = required_tensor(file, start + "input.x.weight", where);
  const NamedTensor& input_theta = required_tensor(file, start + "input.theta.weight", where);
  if (input.shape != std::vector<std::size_t>{shape.hidden_features, shape.dim_x} ||
      input_theta.shape != std::vector<std::size_t>{shape.hidden_features, shape.dim_theta} ||
      shape.num_blocks > file.tensors.size()) {
    throw IoError(where + ": the header and the arrays name different sizes; the file is damaged");
  }
  PairNetwork network(shape);
  std::vector<NetworkTensor> tensors;
  for (const NamedTensor& tensor : file.tensors) {
    const std::string_view name = tensor.name;
    if (name.starts_with(start) && is_network_tensor(name.substr(start.size())))
      tensors.push_back({std::string(name.substr(start.size())), tensor.shape, f32_values(tensor)});
  }
  network.set_tensors(tensors);
  return network;
}

/// What a calibration is called in the header, in the order of both directions.
constexpr std::pair<const char*, double SuccessCalibration::*> kCalibration[] = {
    {"mean_predicted", &SuccessCalibration::mean_predicted},
    {"observed_rate", &SuccessCalibration::observed_rate},
    {"mean_variance", &SuccessCalibration::mean_variance},
    {"brier_score", &SuccessCalibration::brier_score},
    {"constant_brier_score", &SuccessCalibration::constant_brier_score},
    {"log_score", &SuccessCalibration::log_score},
    {"constant_log_score", &SuccessCalibration::constant_log_score},
    {"gain", &SuccessCalibration::gain},
    {"gain_se", &SuccessCalibration::gain_se}};

void add_success(const SuccessModel& model, Record& header, std::vector<NamedTensor>& tensors) {
  const std::string start = kSuccess;
  header.set(start + "kind", success_kind_name(model.kind));
  header.set(start + "num_ok", model.num_ok);
  header.set(start + "num_failed", model.num_failed);
  header.set(start + "calibration.num_rows", model.calibration.num_rows);
  for (const auto& [name, member] : kCalibration)
    header.set(start + "calibration." + name, model.calibration.*member);
  if (!model.network) return;
  header.set(start + "hidden_features", model.network->shape().hidden_features);
  header.set(start + "num_blocks", model.network->shape().num_blocks);
  header.set(start + "norm", norm_name(model.network->shape().norm));
  add_network(*model.network, start, tensors);
  tensors.push_back(numbers((start + "theta.shift").c_str(), model.theta_standardiser.shift));
  tensors.push_back(numbers((start + "theta.scale").c_str(), model.theta_standardiser.scale));
}

SuccessModel read_success(const Header& header, const TensorFile& file, std::size_t dim_theta) {
  const std::string start = kSuccess;
  SuccessModel model;
  model.kind = success_kind(header.get<std::string>(start + "kind"));
  model.num_ok = header.count(start + "num_ok");
  model.num_failed = header.count(start + "num_failed");
  if (model.num_ok == 0 || model.num_failed == 0)
    throw IoError(header.where + ": a success model of " + std::to_string(model.num_ok) + " successes and " +
                  std::to_string(model.num_failed) + " failures; the file is damaged");
  model.calibration.num_rows = header.count(start + "calibration.num_rows");
  for (const auto& [name, member] : kCalibration)
    model.calibration.*member = header.real(start + "calibration." + name);
  if (model.kind != SuccessKind::network) return model;
  const PairNetworkShape shape = {.dim_theta = dim_theta,
                                  .dim_x = 1,
                                  .hidden_features = header.count(start + "hidden_features"),
                                  .num_blocks = header.count(start + "num_blocks"),
                                  .norm = norm_kind(header.get<std::string>(start + "norm"))};
  model.network = read_network(shape, file, start, header.where);
  model.theta_standardiser = {read_numbers(file, (start + "theta.shift").c_str(), dim_theta, header.where),
                              read_scales(file, (start + "theta.scale").c_str(), dim_theta, header.where)};
  return model;
}

}  // namespace

void save_estimator(const RatioEstimator& estimator, const std::filesystem::path& path) {
  std::vector<NamedTensor> tensors;
  add_network(estimator.network, "", tensors);
  tensors.push_back(numbers("theta.shift", estimator.theta_standardiser.shift));
  tensors.push_back(numbers("theta.scale", estimator.theta_standardiser.scale));
  tensors.push_back(numbers("x.shift", estimator.x_standardiser.shift));
  tensors.push_back(numbers("x.scale", estimator.x_standardiser.scale));
  tensors.push_back(numbers("x.low", estimator.x_low));
  tensors.push_back(numbers("x.high", estimator.x_high));
  tensors.push_back(history_tensor("history", estimator.history));
  const PairNetworkShape& shape = estimator.network.shape();
  Record header;
  header.set("dim_theta", shape.dim_theta);
  header.set("dim_x", shape.dim_x);
  header.set("hidden_features", shape.hidden_features);
  header.set("num_blocks", shape.num_blocks);
  header.set("norm", norm_name(shape.norm));
  header.set("best_epoch", estimator.best_epoch);
  add_prior(estimator.prior, header, tensors);
  if (estimator.success) add_success(*estimator.success, header, tensors);
  header.merge("settings.", estimator.settings);
  write_safetensors(path, tensors,
                    {{"format", kFormat},
                     {"format_version", estimator.success ? kVersionWithSuccess : kVersion},
                     {"header", record_to_json(header, -1)}});
}

RatioEstimator load_estimator(const std::filesystem::path& path) {
  const TensorFile file = read_safetensors(path);
  const std::string where = path.string();
  const auto format = file.metadata.find("format");
  const auto version = file.metadata.find("format_version");
  const auto text = file.metadata.find("header");
  if (format == file.metadata.end() || format->second != kFormat || version == file.metadata.end() ||
      text == file.metadata.end()) {
    throw IoError(
        where +
        ": this safetensors file is not an nrec estimator; nrec train writes one as estimator.safetensors");
  }
  const bool has_success = version->second == kVersionWithSuccess;
  if (version->second != kVersion && !has_success) {
    throw IoError(where + ": estimator format version " + one_line_text(version->second) +
                  ", but this program reads versions " + kVersion + " and " + kVersionWithSuccess +
                  "; use the version of nrec that wrote it");
  }
  const Record record = record_from_json(text->second, where + ": header");
  const Header header{record, where};
  const PairNetworkShape shape = {.dim_theta = header.count("dim_theta"),
                                  .dim_x = header.count("dim_x"),
                                  .hidden_features = header.count("hidden_features"),
                                  .num_blocks = header.count("num_blocks"),
                                  .norm = norm_kind(header.get<std::string>("norm"))};
  RatioEstimator estimator{.network = read_network(shape, file, "", where),
                           .prior = read_prior(header, file),
                           .theta_standardiser = {read_numbers(file, "theta.shift", shape.dim_theta, where),
                                                  read_scales(file, "theta.scale", shape.dim_theta, where)},
                           .x_standardiser = {read_numbers(file, "x.shift", shape.dim_x, where),
                                              read_scales(file, "x.scale", shape.dim_x, where)},
                           .x_low = read_numbers(file, "x.low", shape.dim_x, where),
                           .x_high = read_numbers(file, "x.high", shape.dim_x, where),
                           .settings = {},
                           .history = history_from(file, "history", where),
                           .best_epoch = static_cast<int>(header.count("best_epoch"))};
  if (estimator.prior.dim() != shape.dim_theta)
    throw IoError(where + ": the prior has " + std::to_string(estimator.prior.dim()) +
                  " parameters, the network " + std::to_string(shape.dim_theta) + "; the file is damaged");
  if (has_success) estimator.success = read_success(header, file, shape.dim_theta);
  constexpr std::string_view kSettings = "settings.";
  for (const auto& [name, value] : record.entries()) {
    if (name.starts_with(kSettings)) estimator.settings.set(name.substr(kSettings.size()), value);
  }
  return estimator;
}

}  // namespace nrec
