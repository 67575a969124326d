#pragma once

#include <cstdint>

#include "commands/problem_simulator.h"
#include "nrec/commands/output_folder.h"
#include "nrec/diagnostics/full_check.h"

namespace nrec {

/// Whether a problem has a program or a library of its user's that can make data.
bool has_own_simulator(const Problem& problem);

/// Data that the simulator of a problem makes at posterior draws, for the predictive check. They are kept: rows may be dear.
class PredictiveRows {
 public:
  /// Tries the simulator, unless its campaign knows it. The problem must outlive this.
  /// Errors   as those of ProblemSimulator; ShapeError: it makes other than dim_x numbers
  /// `num_rows`: how many will be asked for, for the forecast.
  PredictiveRows(const Problem& problem, const Prior& prior, std::size_t dim_x, std::size_t num_rows,
                 const RunContext& run);
  PredictiveRows(const PredictiveRows&) = delete;
  PredictiveRows& operator=(const PredictiveRows&) = delete;

  /// For CheckData::simulate; it refers to this. Rows that were asked for are the next ones in the file.
  DataMaker maker();
  /// Rows for each observation: what the user asks for, or few enough for a slow program.
  static std::size_t count(std::int64_t num_predicted) {
    constexpr std::size_t kDefault = 200;
    return num_predicted > 0 ? static_cast<std::size_t>(num_predicted) : kDefault;
  }
  /// predictive.npz: theta [n, D], x [n, M], status [n] and observation [n]; nothing where no row was run.
  void write(const OutputFolder& folder) const;
  /// predictive.simulator, predictive.simulator_hash, predictive.simulated and predictive.failed.
  Record record() const;

 private:
  Matrix<double> simulate(MatrixView<const double> theta, std::uint64_t first_row, const RunContext& run);

  const Problem& problem_;
  ProblemSimulator simulator_;
  std::vector<double> theta_, x_, status_, observation_;
  std::size_t dim_theta_, num_failed_ = 0;
  double num_observations_ = 0.0;
};

/// Tells a full check what it simulates with (null: nothing but a task's simulator) and how often.
void predict_with(PredictiveRows* rows, std::int64_t num_predicted, CheckData& data,
                  FullCheckOptions& options);

}  // namespace nrec
