#include "commands/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "commands/campaign_run.h"
#include "nrec/commands/infer.h"
#include "nrec/commands/simulate.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/io/file.h"
#include "nrec/io/tables.h"
#include "nrec/simulation/simulator.h"
#include "nrec/tasks/task.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

/// Two files are one pair (theta, x) when they hold one array each or one of them says theta in its name.
bool is_one_pair(const std::vector<fs::path>& paths) {
  if (paths.size() != 2) return false;
  const auto says_theta = [](const fs::path& path) {
    return path.filename().string().find("theta") != std::string::npos;
  };
  return (paths[0].extension() == ".npy" && paths[1].extension() == ".npy") ||
         says_theta(paths[0]) != says_theta(paths[1]);
}

void append(PairTable& all, PairTable&& more, const std::string& where) {
  if (all.theta.empty()) {
    all = std::move(more);
    return;
  }
  // A file without a status holds successes, as far as is known.
  if (!all.status.empty() || !more.status.empty()) {
    all.status.resize(all.theta.rows(), 0.0);
    more.status.resize(more.theta.rows(), 0.0);
    all.status.insert(all.status.end(), more.status.begin(), more.status.end());
  }
  if (more.theta.cols() != all.theta.cols() || more.x.cols() != all.x.cols()) {
    throw ShapeError(
        fmt::format("{}: theta has {} columns and x {}, but {} and {} in the files before it; all files must "
                    "have the same columns",
                    where, more.theta.cols(), more.x.cols(), all.theta.cols(), all.x.cols()));
  }
  if (more.x_names != all.x_names)
    throw ConfigError(where +
                      ": the columns of x are named or ordered differently from those of the files before "
                      "it; bring them into one order");
  const auto join = [](Matrix<double>& into, Matrix<double>& from) {
    const std::size_t rows = into.rows() + from.rows();
    const std::size_t cols = into.cols();
    std::vector<double> values = std::move(into.values());
    values.insert(values.end(), from.values().begin(), from.values().end());
    into = Matrix<double>(rows, cols, std::move(values));
  };
  join(all.theta, more.theta);
  join(all.x, more.x);
}

PairTable read_files(const Problem& problem, const Prior& prior) {
  std::vector<fs::path> paths(problem.simulations.files.begin(), problem.simulations.files.end());
  if (is_one_pair(paths)) return read_pairs(paths, prior.names());
  PairTable all;
  for (const fs::path& path : paths)
    append(all, read_pairs(std::span(&path, 1), prior.names()), path.string());
  return all;
}

/// Named columns of theta must be the parameters in their order; two .csv files are matched by position alone
/// otherwise.
void check_theta_names(const PairTable& pairs, const Prior& prior, const std::string& source) {
  const bool is_permuted = pairs.theta_names != prior.names() &&
                           std::is_permutation(pairs.theta_names.begin(), pairs.theta_names.end(),
                                               prior.names().begin(), prior.names().end());
  if (is_permuted)
    throw ConfigError(source +
                      ": the columns of theta are the parameters in another order; bring [parameters] into "
                      "the order of the file");
}

std::vector<RowStatus> row_statuses(const std::vector<double>& numbers, const std::string& source) {
  std::vector<RowStatus> list;
  for (const double number : numbers) {
    const std::optional<RowStatus> status = row_status_of(number);
    if (!status) {
      throw DomainError(
          fmt::format("{}: status[{}] = {} must be 0 (ok) or 1 to {}, which say how a simulation failed "
                      "(docs/formats/campaign.md); give the array another name if it is something else",
                      source, list.size(), number_text(number), kNumRowStatuses - 1));
    }
    list.push_back(*status);
  }
  return list;
}

LoadedSimulations from_files(const Problem& problem, const Prior& prior, LogSink& log) {
  PairTable pairs = read_files(problem, prior);
  LoadedSimulations loaded;
  // Without folders: the name goes into the estimator, which must not depend on where the files lie.
  for (const std::string& file : problem.simulations.files)
    loaded.set.source += (loaded.set.source.empty() ? "" : ", ") + fs::path(file).filename().string();
  check_theta_names(pairs, prior, loaded.set.source);
  if (std::ranges::find(pairs.x_names, "status") != pairs.x_names.end()) {
    log.warning(
        loaded.set.source +
        ": the column \"status\" is taken for a datum of x; if it says how simulations ended, leave failed "
        "rows out and the column, or write .npz with an array of that name");
  }
  const auto wanted = static_cast<std::size_t>(problem.simulations.num_simulations);
  if (problem.simulations.num_simulations_given) {
    if (wanted > pairs.theta.rows()) {
      throw ShapeError(fmt::format(
          "{}: holds {} simulations, fewer than num_simulations = {}; leave num_simulations out to use all",
          loaded.set.source, pairs.theta.rows(), wanted));
    }
    pairs.theta.resize_rows(wanted);
    pairs.x.resize_rows(wanted);
    if (!pairs.status.empty()) pairs.status.resize(wanted);
  }
  loaded.set.status = row_statuses(pairs.status, loaded.set.source);
  loaded.x_names = std::move(pairs.x_names);
  loaded.set.theta = std::move(pairs.theta);
  loaded.set.x = std::move(pairs.x);
  return loaded;
}

LoadedSimulations from_task(const Problem& problem, const RunContext& run) {
  const std::unique_ptr<Task> task = problem_task(problem, run);
  const auto count = static_cast<std::size_t>(problem.simulations.num_simulations);
  run.log.info(fmt::format("simulating {} rows of task {}", count, task->name()));
  LoadedSimulations loaded;
  loaded.set = simulate_from_prior(task->prior(), task->simulator(), count, run.seed, run.pool, run.log);
  return loaded;
}

/// Rows of a campaign, the missing ones made first where there is something to make them with.
LoadedSimulations from_campaign(const Problem& problem, const Prior& prior, const RunContext& run) {
  const fs::path folder = campaign_folder(problem);
  const SimulationOptions& options = problem.simulations;
  const bool makes_rows = !options.task.empty() || !options.command.empty() || !options.library.empty();
  LoadedSimulations loaded;
  if (makes_rows) {
    CampaignRun campaign =
        run_problem_campaign(problem, prior, {.folder = folder, .take_stored_seed = true}, run);
    loaded.campaign.merge("campaign.", campaign.record);
    run.log.info("simulations: " + campaign.report.message);
    if (campaign.report.status != CampaignStatus::complete) {
      loaded.unfinished = std::move(campaign.report);
      return loaded;
    }
  }
  const CampaignReader reader(folder);
  check_campaign_prior(reader.identity(), prior, folder);
  const bool is_limited = makes_rows || options.num_simulations_given;
  loaded.set = reader.read(is_limited ? static_cast<std::uint64_t>(options.num_simulations) : 0);
  return loaded;
}

}  // namespace

std::unique_ptr<Task> problem_task(const Problem& problem, const RunContext& run) {
  if (problem.simulations.task.empty()) return nullptr;
  return make_task(problem.simulations.task, {.component_per_call = problem.simulations.component_per_call,
                                              .component_seed = run.seed});
}

LoadedSimulations load_simulations(const Problem& problem, const Prior& prior, const RunContext& run) {
  const bool is_task = !problem.simulations.task.empty();
  const bool is_campaign = uses_campaign(problem);
  LoadedSimulations loaded = is_campaign ? from_campaign(problem, prior, run)
                             : is_task   ? from_task(problem, run)
                                         : from_files(problem, prior, run.log);
  if (loaded.unfinished) return loaded;
  if (loaded.set.parameter_names.empty() && loaded.set.dim_theta() == prior.dim())
    loaded.set.parameter_names = prior.names();
  check_simulations(loaded.set);
  try {
    loaded.set = without_failures(std::move(loaded.set), failure_rule(problem.simulations.failures));
  } catch (const DomainError& error) {
    if (is_task || is_campaign) throw SimulationFailureError(error.what());
    throw;
  }
  if (loaded.set.num_dropped > 0) {
    run.log.warning(
        failure_summary(loaded.set) +
        " and were left out: parameters that often fail look more probable than they are; --failures model "
        "corrects for it");
  }
  return loaded;
}

namespace {

/// The row that is asked for, or the only one.
Matrix<double> one_row(const ObservationOptions& options, SampleTable table) {
  if (table.one_dimensional) {
    if (options.row > 0)
      throw ShapeError(
          fmt::format("{}: row = {} is asked for, but the file holds one observation, a list of {} numbers; "
                      "leave row out",
                      options.file, options.row, table.values.rows()));
    const std::size_t count = table.values.rows();
    return {1, count, std::move(table.values.values())};
  }
  if (options.row < 0 && table.values.rows() > 1) {
    throw ShapeError(
        fmt::format("{}: holds {} rows of {} numbers, but one observation is wanted. If each row is an "
                    "observation of its own, choose one by --row (from 0), or take all of them by --rows "
                    "batch; if the rows are independent repetitions at the same parameters, take --rows iid; "
                    "if all rows together are one observation, write them as one row",
                    options.file, table.values.rows(), table.values.cols()));
  }
  const std::size_t row = options.row < 0 ? 0 : static_cast<std::size_t>(options.row);
  if (row >= table.values.rows())
    throw ShapeError(fmt::format("{}: row = {} is not there; the file has rows 0 to {}", options.file,
                                 options.row, table.values.rows() - 1));
  const auto values = std::as_const(table.values).row(row);
  return {1, values.size(), {values.begin(), values.end()}};
}

void refuse_non_finite(const Observation& observation) {
  const Matrix<double>& x = observation.x_o;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    for (std::size_t j = 0; j < x.cols(); ++j) {
      if (std::isfinite(x(i, j))) continue;
      const std::string row = x.rows() == 1 ? "" : fmt::format("{}, ", i);
      const std::string name =
          j < observation.names.size() ? " (" + observation.names[j] + ")" : std::string();
      throw DomainError(fmt::format(
          "{}: x_o[{}{}]{} = {}; every number of an observation must be finite: mend the file, or "
          "leave that column out of x and x_o",
          observation.file, row, j, name, number_text(x(i, j))));
    }
  }
}

}  // namespace

Observation read_observation(const ObservationOptions& options) {
  if (options.file.empty()) {
    throw ConfigError(
        "observation: no file is given; name the observed data under [observation] file = \"x_o.npy\" or by "
        "--observation FILE (a task brings parameters and a simulator, not the observation)");
  }
  const std::vector<std::string> wanted = {"x_o", "x"};
  SampleTable table = read_samples(options.file, wanted);
  Observation observation;
  observation.names = table.names;
  observation.is_list = table.one_dimensional;
  observation.file = options.file;
  if (options.rows == "one") {
    observation.x_o = one_row(options, std::move(table));
  } else {
    observation.rows = options.rows == "iid" ? ObservationRows::iid : ObservationRows::batch;
    if (options.row >= 0) {
      throw ConfigError(
          fmt::format("observation: row = {} chooses one row, but rows = \"{}\" takes all of them; leave one "
                      "of the two out",
                      options.row, options.rows));
    }
    observation.x_o = std::move(table.values);
  }
  refuse_non_finite(observation);
  return observation;
}

void check_observation_columns(const Observation& observation, std::size_t dim_x) {
  if (observation.x_o.cols() == dim_x) return;
  if (observation.is_list && observation.rows != ObservationRows::one) {
    throw ShapeError(fmt::format(
        "{}: holds a list of {} numbers, which rows = \"{}\" takes as {} rows of one number; the "
        "simulations have {} columns of x; write a table with one observation a row, or take rows = \"one\"",
        observation.file, observation.x_o.rows(), observation.rows == ObservationRows::iid ? "iid" : "batch",
        observation.x_o.rows(), dim_x));
  }
  throw ShapeError(
      fmt::format("observation: x_o has {} numbers{}; the simulations have {} columns of x; give {} in the "
                  "same order and units",
                  observation.x_o.cols(), observation.rows == ObservationRows::one ? "" : " a row", dim_x,
                  observation.rows == ObservationRows::one ? "one observation" : "every row"));
}

void check_observation(const Observation& observation, const LoadedSimulations& simulations) {
  check_observation_columns(observation, simulations.set.dim_x());
  const auto& names = simulations.x_names;
  if (names.size() == observation.names.size() && names != observation.names &&
      std::is_permutation(names.begin(), names.end(), observation.names.begin())) {
    throw ConfigError(fmt::format(
        "observation: its columns ({}) are those of the simulations in another order; write them as {}",
        fmt::join(observation.names, ", "), fmt::join(names, ", ")));
  }
}

std::vector<OutsideColumn> columns_outside(const SimulationSet& simulations, MatrixView<const double> x_o) {
  const auto first = simulations.x.row(0);
  std::vector<double> low(first.begin(), first.end());
  std::vector<double> high = low;
  for (std::size_t i = 1; i < simulations.num_rows(); ++i) {
    for (std::size_t j = 0; j < low.size(); ++j) {
      low[j] = std::min(low[j], simulations.x(i, j));
      high[j] = std::max(high[j], simulations.x(i, j));
    }
  }
  return columns_outside(low, high, x_o);
}

Record input_record(const Problem& problem) {
  std::vector<std::string> names = problem.simulations.files;
  if (!problem.observation.file.empty()) names.push_back(problem.observation.file);
  if (!problem.parameters.from_samples.empty()) names.push_back(problem.parameters.from_samples.string());
  std::vector<std::string> hashes;
  for (const std::string& name : names) hashes.push_back(file_hash(name));
  Record record;
  record.set("files", RecordValue(names));
  record.set("hashes", RecordValue(hashes));
  return record;
}

}  // namespace nrec
