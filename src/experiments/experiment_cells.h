#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "commands/benchmark_schedule.h"
#include "experiments/experiment_plan.h"
#include "nrec/core/record.h"
#include "nrec/training/ratio_estimator.h"

namespace nrec {

/// What is known of a network of an experiment.
struct CellResult {
  const ExperimentCell* cell = nullptr;
  Record training;                   // facts of its training
  Record measured;                   // its draws against the reference posteriors; empty where not asked for
  std::filesystem::path estimator;   // file of the network; empty: training gave none
  std::vector<EpochRecord> history;  // empty: training gave no network
  int best_epoch = 0;

  /// A number of either record, nan where there is none.
  double number(std::string_view name) const;
  /// A list of the measurements, empty where there is none.
  std::vector<double> list(std::string_view name) const;
};

/// The cells that were done, in the order of the plan, and how the work ended.
struct CellResults {
  ScheduleStatus status = ScheduleStatus::done;
  std::vector<CellResult> cells;
};

/// Trains and measures what the folder does not hold yet, and reads the rest. Files:
///
///   networks/<cell>-<hash>.safetensors, .json   the network and the facts of its training; the hash is that of all settings
///   measured/<cell>-<hash>.json                 draws against reference posteriors
///   references/, running/                       as in the folder of a benchmark
///
/// So experiments share networks, and a network that is trained already is only measured. The results point into `plan`.
///
/// Errors   those of benchmark_tasks(), train(), sample_many()
CellResults run_experiment_cells(const ExperimentPlan& plan, const ExperimentOptions& options,
                                 const std::filesystem::path& folder, const RunContext& run);

}  // namespace nrec
