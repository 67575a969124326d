#pragma once

// Reader of the benchmark's shipped numbers for tests: they lie beside the checkout, or where NREC_SHARED
// says.

#include <bzlib.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "nrec/core/array.h"

namespace nrec::test {

inline std::string shared_path(const std::string& name) {
  const char* override_path = std::getenv("NREC_SHARED");
  return (override_path != nullptr ? std::string(override_path)
                                   : std::string(NREC_SOURCE_DIR) + "/../shared") +
         "/" + name;
}

inline bool exists(const std::string& path) { return std::ifstream(path).good(); }

inline std::string reference_path(const std::string& task, int observation) {
  return shared_path("sbibm/tasks/" + task + "/files/num_observation_" + std::to_string(observation) +
                     "/reference_posterior_samples.csv.bz2");
}

inline std::string read_bz2(const std::string& path) {
  BZFILE* file = BZ2_bzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path);
  std::string text;
  std::vector<char> chunk(1 << 16);
  for (int got = 1; got > 0;) {
    got = BZ2_bzread(file, chunk.data(), static_cast<int>(chunk.size()));
    if (got > 0) text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  BZ2_bzclose(file);
  return text;
}

inline std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> cells;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, separator);) cells.push_back(cell);
  return cells;
}

inline Matrix<double> read_reference(const std::string& task, int observation) {
  std::stringstream text(read_bz2(reference_path(task, observation)));
  std::string line;
  std::getline(text, line);
  const std::size_t cols = split(line, ',').size();
  std::vector<double> values;
  while (std::getline(text, line)) {
    for (const std::string& cell : split(line, ','))
      values.push_back(static_cast<double>(std::stof(cell)));  // the files hold float32 numbers
  }
  const std::size_t rows = values.size() / cols;
  return {rows, cols, std::move(values)};
}

/// Rows of a truth table as lists of cells, the header first. No quoted commas.
inline std::vector<std::vector<std::string>> read_truth(const std::string& name) {
  std::ifstream file(shared_path("truth/" + name));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(split(line, ','));
  return rows;
}

}  // namespace nrec::test
