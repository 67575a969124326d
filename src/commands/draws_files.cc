#include "commands/draws_files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "commands/record_columns.h"
#include "commands/results.h"
#include "nrec/core/error.h"
#include "nrec/inference/summarise.h"
#include "nrec/io/csv.h"
#include "nrec/io/npz.h"

namespace nrec {

namespace {

constexpr std::string_view kSampling = "sampling.";
constexpr std::string_view kObservations = "observations.";
constexpr std::string_view kMap = "map.";
/// Entries of a record about one observation that have a value for each parameter.
constexpr std::array<std::string_view, 6> kLists = {"r_hat",     "ess_bulk", "ess_tail",
                                                    "mcse_mean", "mcse_sd",  "map.theta"};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::size_t most_draws(const std::vector<PosteriorDraws>& all) {
  std::size_t most = 0;
  for (const PosteriorDraws& draws : all) most = std::max(most, draws.size());
  return most;
}

NamedArrays arrays_of(const PosteriorDraws& draws) {
  NamedArrays arrays;
  arrays.emplace_back("theta", to_array(draws.theta));
  arrays.emplace_back("log_ratio", NumericArray{.shape = {draws.size()}, .values = draws.log_ratio});
  if (!draws.log_density.empty())
    arrays.emplace_back("log_density", NumericArray{.shape = {draws.size()}, .values = draws.log_density});
  for (const auto& [name, values] : draws.per_draw)
    arrays.emplace_back(name, NumericArray{.shape = {values.size()}, .values = values});
  return arrays;
}

/// [S, O] of one value per draw; nan where there is none.
NumericArray draw_by_observation(const std::vector<PosteriorDraws>& all,
                                 std::vector<double> PosteriorDraws::*member) {
  const std::size_t most = most_draws(all);
  NumericArray array{.shape = {most, all.size()}, .values = {}};
  array.values.assign(most * all.size(), kNan);
  for (std::size_t o = 0; o < all.size(); ++o) {
    const std::vector<double>& values = all[o].*member;
    for (std::size_t s = 0; s < values.size(); ++s) array.values[s * all.size() + o] = values[s];
  }
  return array;
}

NamedArrays arrays_of(const std::vector<PosteriorDraws>& all) {
  const std::size_t dim = all[0].theta.cols();
  NumericArray theta{.shape = {most_draws(all), all.size(), dim}, .values = {}};
  theta.values.assign(theta.shape[0] * all.size() * dim, kNan);
  NumericArray num_draws{.shape = {all.size()}, .values = {}, .dtype = "<i8"};
  for (std::size_t o = 0; o < all.size(); ++o) {
    num_draws.values.push_back(static_cast<double>(all[o].size()));
    for (std::size_t s = 0; s < all[o].size(); ++s) {
      const auto first = theta.values.begin() + static_cast<std::ptrdiff_t>((s * all.size() + o) * dim);
      std::ranges::copy(all[o].theta.row(s), first);
    }
  }
  NamedArrays arrays;
  arrays.emplace_back("theta", std::move(theta));
  arrays.emplace_back("log_ratio", draw_by_observation(all, &PosteriorDraws::log_ratio));
  if (std::ranges::any_of(all, [](const PosteriorDraws& draws) { return !draws.log_density.empty(); }))
    arrays.emplace_back("log_density", draw_by_observation(all, &PosteriorDraws::log_density));
  arrays.emplace_back("num_draws", std::move(num_draws));
  return arrays;
}

/// Draw after draw of observation after observation, whose number comes first.
void write_long_csv(const std::vector<PosteriorDraws>& all, const std::filesystem::path& path) {
  std::vector<std::string> columns = {"observation"};
  while (std::ranges::find(all[0].names, columns[0]) != all[0].names.end()) columns[0] += "_";
  columns.insert(columns.end(), all[0].names.begin(), all[0].names.end());
  std::size_t rows = 0;
  for (const PosteriorDraws& draws : all) rows += draws.size();
  Matrix<double> table(rows, columns.size());
  std::size_t row = 0;
  for (std::size_t o = 0; o < all.size(); ++o) {
    for (std::size_t s = 0; s < all[o].size(); ++s, ++row) {
      table(row, 0) = static_cast<double>(o);
      std::ranges::copy(all[o].theta.row(s), table.row(row).begin() + 1);
    }
  }
  write_csv(path, columns, table);
}

/// What a record says about one observation of a batch.
Record observation_record(const PosteriorDraws& draws, const Record& map) {
  Record record;
  record.set("status", sampling_status_name(draws.status));
  record.set("message", draws.message);
  record.set("method", draws.method);
  record.set("num_draws", draws.size());
  record.set("num_chains", draws.num_chains);
  record.merge("", draws.statistics);
  record.merge("", map);
  return record;
}

/// The parts of a posterior's record, out of what add_sampling() or observation_record() wrote.
struct Restored {
  PosteriorDraws draws;
  Record map;

  Restored(const Record& record, const std::vector<std::string>& names) {
    draws.names = names;
    for (const auto& [name, value] : record.entries()) {
      const auto* text = std::get_if<std::string>(&value);
      const auto* count = std::get_if<std::int64_t>(&value);
      if (name == "status" && text) {
        draws.status = sampling_status(*text).value_or(SamplingStatus::stopped);
      } else if (name == "message" && text) {
        draws.message = *text;
      } else if (name == "method" && text) {
        draws.method = *text;
      } else if (name == "num_chains" && count && *count > 0) {
        draws.num_chains = static_cast<std::size_t>(*count);
      } else if (name.starts_with(kMap)) {
        map.set(name, value);
      } else if (name != "num_draws" && name != "key") {
        draws.statistics.set(name, value);
      }
    }
  }
};

/// Entries of `record` that start with `prefix`, without it.
Record below(const Record& record, std::string_view prefix) {
  Record part;
  for (const auto& [name, value] : record.entries()) {
    if (name.starts_with(prefix)) part.set(name.substr(prefix.size()), value);
  }
  return part;
}

std::optional<NamedArrays> stored_arrays(const OutputFolder& folder) {
  std::error_code code;
  for (const auto file : {files::kDrawsNpz, files::kDrawsCsv, files::kDrawsNetcdf}) {
    if (!std::filesystem::exists(folder.file(file), code)) return std::nullopt;
  }
  try {
    return read_npz(folder.file(files::kDrawsNpz));
  } catch (const IoError&) {
    return std::nullopt;  // damaged: drawn again
  }
}

/// Draws of observation o out of arrays [S, O, ...]; false when they do not fit.
bool fill(const NamedArrays& arrays, std::size_t o, std::size_t count, PosteriorDraws& draws) {
  const NumericArray* theta = find_array(arrays, "theta");
  const NumericArray* log_ratio = find_array(arrays, "log_ratio");
  const NumericArray* num_draws = find_array(arrays, "num_draws");
  const NumericArray* density = find_array(arrays, "log_density");
  const std::size_t dim = draws.names.size();
  if (!theta || !log_ratio || !num_draws || num_draws->values.size() != count || theta->shape.size() != 3 ||
      theta->shape[1] != count || theta->shape[2] != dim ||
      log_ratio->values.size() != theta->shape[0] * count ||
      (density && density->values.size() != log_ratio->values.size()))
    return false;
  const auto size = static_cast<std::size_t>(num_draws->values[o]);
  if (size > theta->shape[0]) return false;
  draws.theta = Matrix<double>(size, dim);
  for (std::size_t s = 0; s < size; ++s) {
    const std::size_t at = s * count + o;
    std::copy_n(theta->values.begin() + static_cast<std::ptrdiff_t>(at * dim), dim,
                draws.theta.row(s).begin());
    draws.log_ratio.push_back(log_ratio->values[at]);
    if (density && !std::isnan(density->values[at])) draws.log_density.push_back(density->values[at]);
  }
  return draws.log_density.empty() || draws.log_density.size() == size;
}

/// Draws of a single posterior.
bool fill(const NamedArrays& arrays, PosteriorDraws& draws) {
  const NumericArray* theta = find_array(arrays, "theta");
  const NumericArray* log_ratio = find_array(arrays, "log_ratio");
  if (!theta || !log_ratio || theta->shape.size() != 2 || theta->shape[1] != draws.names.size() ||
      log_ratio->values.size() != theta->shape[0])
    return false;
  draws.theta = to_matrix(*theta, "theta");
  for (const auto& [name, array] : arrays) {
    if (name == "theta") continue;
    if (array.values.size() != draws.size()) return false;
    if (name == "log_ratio") {
      draws.log_ratio = array.values;
    } else if (name == "log_density") {
      draws.log_density = array.values;
    } else {
      draws.per_draw.emplace_back(name, array.values);
    }
  }
  return true;
}

}  // namespace

void write_draws(const std::vector<PosteriorDraws>& all, bool is_batch, const OutputFolder& folder) {
  if (most_draws(all) == 0) {  // whatever lies there belongs to something else
    std::error_code ignored;
    for (const auto file : {files::kDrawsNpz, files::kDrawsCsv, files::kDrawsNetcdf})
      std::filesystem::remove(folder.file(file), ignored);
    return;
  }
  write_npz(folder.file(files::kDrawsNpz), is_batch ? arrays_of(all) : arrays_of(all[0]));
  if (is_batch) {
    write_long_csv(all, folder.file(files::kDrawsCsv));
  } else {
    write_csv(folder.file(files::kDrawsCsv), all[0].names, all[0].theta);
  }
}

void add_sampling(Record& record, const PosteriorDraws& draws) {
  record.merge(kSampling, observation_record(draws, {}));
}

void add_observations(Record& record, const std::vector<PosteriorDraws>& all,
                      const std::vector<Record>& maps) {
  std::vector<Record> rows, summaries;
  for (std::size_t o = 0; o < all.size(); ++o) {
    rows.push_back(observation_record(all[o], maps[o]));
    summaries.push_back(marginals_record(summarise(all[o])));
  }
  record.set("observations.count", all.size());
  record.merge(kObservations, record_columns(rows));
  record.merge(kObservations, record_columns(summaries));
}

std::optional<EarlierDraws> earlier_draws(const OutputFolder& folder, const std::string& key,
                                          const std::vector<std::string>& names, std::size_t count,
                                          bool is_batch) {
  const std::optional<Record> record = earlier_record(folder);
  if (!record) return std::nullopt;
  const RecordValue* stored = record->find("sampling.key");
  const auto* stored_key = stored ? std::get_if<std::string>(stored) : nullptr;
  if (!stored_key || *stored_key != key) return std::nullopt;
  const std::optional<NamedArrays> arrays = stored_arrays(folder);
  if (!arrays) return std::nullopt;
  EarlierDraws earlier;
  if (!is_batch) {
    Restored one(below(*record, kSampling), names);
    if (one.draws.status != SamplingStatus::complete || !fill(*arrays, one.draws)) return std::nullopt;
    earlier.draws.push_back(std::move(one.draws));
    Record map;
    map.merge(kMap, below(*record, kMap));
    earlier.maps.push_back(std::move(map));
    return earlier;
  }
  const Record columns = below(*record, kObservations);
  for (std::size_t o = 0; o < count; ++o) {
    Restored one(record_row(columns, o, count, kLists), names);
    if (!fill(*arrays, o, count, one.draws)) return std::nullopt;
    const bool is_kept = !one.draws.method.empty() && is_final(one.draws.status);
    earlier.draws.push_back(is_kept ? std::move(one.draws) : PosteriorDraws{});
    earlier.maps.push_back(is_kept ? std::move(one.map) : Record{});
  }
  return earlier;
}

}  // namespace nrec
