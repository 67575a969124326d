#pragma once

#include <string>
#include <vector>

#include "commands/benchmark_plan.h"
#include "nrec/experiments/experiment.h"

namespace nrec {

/// One network of an experiment.
struct ExperimentCell {
  BenchmarkCell cell;
  BenchmarkOptions options;  // its network, training and sampling
  std::string regime, architecture;
  double gamma = 1.0;        // infinite for NRE-B
  int count = 2;             // contrastive parameters: K + 1, or the atoms of NRE-B
  bool is_measured = false;  // whether draws are made and compared with reference posteriors

  bool is_nre_b() const { return cell.algorithm == "nre-b"; }
  /// "slcp fixed large nre-c gamma 0.1 count 100 seed 1", for messages.
  std::string text() const;
  /// "gamma 0.1" or "NRE-B", for the key of a figure.
  std::string family() const;
};

/// What an experiment is about before anything has run.
struct ExperimentPlan {
  std::string name;
  bool is_quick = false;
  std::vector<ExperimentCell> cells;
  std::vector<int> observations;
};

/// The seeds of an experiment, 1 where none is given. Errors   UsageError
std::vector<std::int64_t> experiment_seeds(const ExperimentOptions& options);

/// The networks of an experiment; fig3 has none, its networks are of another kind.
///
/// Errors   UsageError: unknown experiment (with the nearest known one), lists, settings that the experiment decides, flags without effect on it
ExperimentPlan experiment_plan(const ExperimentOptions& options);

}  // namespace nrec
