#include "experiments/benchmark_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "nrec/core/error.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

template <class T>
T value_of(const Record& record, const char* name, const fs::path& path) {
  const RecordValue* value = record.find(name);
  const T* found = value ? std::get_if<T>(value) : nullptr;
  if (!found)
    throw IoError(
        fmt::format("{}: is no record of a cell of a benchmark, because {} is missing", path.string(), name));
  return *found;
}

fs::path record_path(const std::string& folder, const BenchmarkCell& cell) {
  return fs::path(folder) / "cells" / (cell.name() + ".json");
}

}  // namespace

std::vector<ExperimentCell> benchmark_plan_cells(const std::string& folder) {
  std::error_code code;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(folder) / "cells", code)) {
    if (entry.path().extension() == ".json" && !entry.path().filename().string().starts_with("."))
      paths.push_back(entry.path());
  }
  if (paths.empty())
    throw IoError(
        fmt::format("{}: holds no finished cells of a benchmark; --benchmark names the folder that "
                    "nrec benchmark --out made",
                    folder));
  std::sort(paths.begin(), paths.end());
  std::vector<ExperimentCell> cells;
  for (const fs::path& path : paths) {
    const Record record = record_from_json(read_file(path), path.string());
    ExperimentCell cell;
    cell.cell = {value_of<std::string>(record, "task", path),
                 value_of<std::string>(record, "algorithm", path),
                 value_of<std::int64_t>(record, "budget", path),
                 static_cast<std::uint64_t>(value_of<std::int64_t>(record, "seed", path))};
    cell.is_measured = true;
    cells.push_back(std::move(cell));
  }
  return cells;
}

CellResults benchmark_cells(const std::string& folder, const std::vector<ExperimentCell>& cells) {
  CellResults results;
  for (const ExperimentCell& cell : cells) {
    const fs::path path = record_path(folder, cell.cell);
    CellResult result;
    result.cell = &cell;
    result.measured = record_from_json(read_file(path), path.string());
    fs::path network = path;
    network.replace_extension(".safetensors");
    std::error_code code;
    if (fs::exists(network, code)) result.estimator = network;
    results.cells.push_back(std::move(result));
  }
  return results;
}

}  // namespace nrec
