#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nrec/commands/problem.h"
#include "nrec/core/record.h"
#include "nrec/inference/posterior.h"
#include "nrec/simulation/campaign.h"
#include "nrec/simulation/simulation_set.h"

namespace nrec {

/// Simulations ready for training, with the names of x's columns where the files have them.
struct LoadedSimulations {
  SimulationSet set;
  std::vector<std::string> x_names;
  std::optional<CampaignReport>
      unfinished;   // of a campaign that ended before its last row; the set is empty then
  Record campaign;  // "campaign.*"; empty where there is none
};

/// Reads or makes the simulations of a problem and applies its rule for failed rows.
/// Errors   as the parts; SimulationFailureError
LoadedSimulations load_simulations(const Problem& problem, const Prior& prior, const RunContext& run);

struct Observation {
  std::vector<double> x_o;
  std::vector<std::string> names;  // of the columns; empty when the file has none
};

/// Reads one observation.
/// Errors   ConfigError: no file given; ShapeError: several rows and no row asked for, no such row;
/// DomainError: not finite
Observation read_observation(const ObservationOptions& options);

/// Checks an observation against simulations before they are used.
/// Errors   ShapeError: another length; ConfigError: the same column names in another order
void check_observation(const Observation& observation, const LoadedSimulations& simulations);

/// Columns of x_o outside the range of the simulations, before there is an estimator to ask.
std::vector<OutsideColumn> columns_outside(const SimulationSet& simulations, const std::vector<double>& x_o);

/// Names and content hashes of the problem's input files.
Record input_record(const Problem& problem);

}  // namespace nrec
