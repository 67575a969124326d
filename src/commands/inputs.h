#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nrec/commands/problem.h"
#include "nrec/core/record.h"
#include "nrec/inference/posterior.h"
#include "nrec/simulation/campaign.h"
#include "nrec/simulation/simulation_set.h"
#include "nrec/tasks/task.h"

namespace nrec {

/// Simulations ready for training, with the names of x's columns where the files have them.
struct LoadedSimulations {
  SimulationSet set;
  std::vector<std::string> x_names;
  std::optional<CampaignReport>
      unfinished;   // of a campaign that ended before its last row; the set is empty then
  Record campaign;  // "campaign.*"; empty where there is none
};

/// The built-in task of a problem, or null.
std::unique_ptr<Task> problem_task(const Problem& problem, const RunContext& run);

/// Reads or makes the simulations of a problem and applies its rule for failed rows.
/// Errors   as the parts; SimulationFailureError
LoadedSimulations load_simulations(const Problem& problem, const Prior& prior, const RunContext& run);

/// What the rows of an observation are.
enum class ObservationRows {
  one,    // there is one row
  iid,    // one data set of independent rows
  batch,  // observations of their own
};

struct Observation {
  Matrix<double> x_o;              // [R, M]
  std::vector<std::string> names;  // of the columns; empty when the file has none
  ObservationRows rows = ObservationRows::one;
  bool is_list = false;  // the file held a list of numbers, not a table
  std::string file;

  /// Sets of draws that it leads to.
  std::size_t num_posteriors() const { return rows == ObservationRows::batch ? x_o.rows() : 1; }
};

/// Reads an observation. A list of numbers is one row for rows = "one", else a column: one number a row.
/// Errors   ConfigError: no file given, `row` with several rows wanted; ShapeError: several rows and no row asked for, no such
/// row; DomainError: not finite
Observation read_observation(const ObservationOptions& options);

/// Checks the number of columns against that of the simulations' x. Errors   ShapeError
void check_observation_columns(const Observation& observation, std::size_t dim_x);

/// Checks an observation against simulations before they are used.
/// Errors   ShapeError: another number of columns; ConfigError: the same column names in another order
void check_observation(const Observation& observation, const LoadedSimulations& simulations);

/// Numbers of x_o outside the range of the simulations, before there is an estimator to ask.
std::vector<OutsideColumn> columns_outside(const SimulationSet& simulations, MatrixView<const double> x_o);

/// Names and content hashes of the problem's input files.
Record input_record(const Problem& problem);

}  // namespace nrec
