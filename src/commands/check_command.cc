#include "nrec/commands/check_command.h"

#include <fmt/format.h>

#include <array>

#include "commands/inputs.h"
#include "commands/predictive_rows.h"
#include "commands/results.h"
#include "commands/training_rows.h"
#include "diagnostics/failure_check.h"
#include "nrec/core/random.h"
#include "nrec/diagnostics/full_check.h"
#include "nrec/io/file.h"
#include "nrec/tasks/task.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

constexpr std::array kCheckFiles = {files::kRecord, files::kPredictive};

fs::path model_file(const std::string& model) {
  if (model.empty())
    throw ConfigError("check: no model is given; name an estimator by --model estimator.safetensors");
  std::error_code code;
  return fs::is_directory(model, code) ? fs::path(model) / files::kEstimator : fs::path(model);
}

fs::path default_folder(const std::string& model) {
  const fs::path path = fs::path(model).lexically_normal();
  fs::path name = path.filename() == files::kEstimator ? path.parent_path().filename() : path.stem();
  if (name.empty() || name == ".") name = "nrec";
  return name.string() + "_check";
}

std::unique_ptr<Task> task_of(const CheckCommandOptions& options, const RatioEstimator& estimator) {
  if (options.task.empty()) return nullptr;
  std::unique_ptr<Task> task = make_task(options.task);
  if (task->prior().terms() == estimator.prior.terms()) return task;
  throw ConfigError(
      fmt::format("check: the prior of task {} ({}) is not the one of the estimator ({}); name the task that "
                  "it was trained on, or "
                  "give held-out simulations by --simulations",
                  options.task, fmt::join(task->prior().description(), "; "),
                  fmt::join(estimator.prior.description(), "; ")));
}

bool is_same(const Prior& a, const Prior& b) {
  return a.names() == b.names() && a.terms() == b.terms() && a.samples().values() == b.samples().values();
}

/// The problem whose simulator is to make data at posterior draws; it must be the one that the estimator is of.
std::optional<Problem> simulating_problem(const CheckCommandOptions& options,
                                          const RatioEstimator& estimator) {
  if (options.problem.empty()) return std::nullopt;
  if (!options.task.empty())
    throw ConfigError(
        "check: --task and --problem both name a simulator; give the one that made the training rows");
  if (options.observation.file.empty())
    throw ConfigError(
        "check: --problem is for data at the posterior of an observation; name one by --observation, or "
        "leave "
        "--problem out");
  Problem problem = read_problem(options.problem);
  if (!has_own_simulator(problem))
    throw ConfigError(
        options.problem +
        ": [simulations] has no command and no library, so there is nothing to simulate with; name "
        "one there, a built-in task by --task, or leave --problem out");
  const Prior prior = problem_prior(problem);
  if (is_same(prior, estimator.prior)) return problem;
  throw ConfigError(fmt::format(
      "{}: its prior ({}) is not the one of the estimator ({}); name the problem that it "
      "was trained on",
      options.problem, fmt::join(prior.description(), "; "), fmt::join(estimator.prior.description(), "; ")));
}

bool is_of_campaign(const CheckCommandOptions& options) {
  return options.simulations.size() == 1 && is_campaign(options.simulations[0]);
}

/// Held-out rows by the way that all simulations come in.
SimulationSet held_out_rows(const CheckCommandOptions& options, const RatioEstimator& estimator,
                            const RunContext& run) {
  Problem problem;
  if (is_of_campaign(options)) {
    problem.simulations.campaign = options.simulations[0];
  } else {
    problem.simulations.files = options.simulations;
  }
  if (options.simulations.empty()) problem.simulations.task = options.task;
  problem.simulations.num_simulations = options.num_simulations;
  problem.simulations.failures = "drop";  // held-out rows are successes as the training rows were
  // A seed of its own: with that of the training the rows would be those of the training.
  const RunContext context = {.pool = run.pool,
                              .seed = RandomStream(run.seed, Stream::check).bits64(),
                              .isa = run.isa,
                              .stop = run.stop};
  SimulationSet rows = load_simulations(problem, estimator.prior, context).set;
  const bool knows_failures = estimator.success || num_dropped(estimator) > 0;
  if (rows.num_dropped > 0 && !knows_failures) {
    throw DomainError(
        fmt::format("{}: {}, but the estimator was trained on simulations none of which failed; train it on "
                    "such simulations (nrec train with --failures model or drop), or leave these rows out",
                    rows.source, failure_summary(rows)));
  }
  return rows;
}

void check_fit(const SimulationSet& simulations, const RatioEstimator& estimator) {
  const std::size_t dim = estimator.prior.dim(), dim_x = estimator.x_low.size();
  if (simulations.dim_theta() != dim || simulations.dim_x() != dim_x)
    throw ShapeError(
        fmt::format("{}: theta has {} columns and x {}, but the estimator was trained on {} parameters and "
                    "{} data; give simulations of the same problem",
                    simulations.source, simulations.dim_theta(), simulations.dim_x(), dim, dim_x));
  for (std::size_t i = 0; i < simulations.num_rows(); ++i) {
    const std::string outside = estimator.prior.outside_text(simulations.theta.row(i), i);
    if (!outside.empty())
      throw DomainError(
          fmt::format("{}: theta{}; held-out simulations must come from the prior of the estimator, their "
                      "columns in its order",
                      simulations.source, outside));
  }
}

/// One run of the command, its inputs being read and checked.
struct CheckRun {
  const CheckCommandOptions& options;
  const RunContext& context;
  RatioEstimator estimator;
  std::unique_ptr<Task> task;  // null: none
  std::optional<Observation> observation;
  SimulationSet held_out;
  std::unique_ptr<PredictiveRows> predictive;  // null: none

  CheckReport report() const {
    CheckData data{.theta = held_out.theta, .x = held_out.x};
    if (observation) {
      data.x_o = observation->x_o;
      data.has_iid_rows = observation->rows == ObservationRows::iid;
    }
    if (task) data.simulator = &task->simulator();
    const std::string seen = training_rows_sentence(estimator, held_out);
    data.record.set("held_out.is_training", !seen.empty());
    if (!seen.empty()) {
      context.log.warning(seen);
      data.items.push_back({"held-out rows", Verdict::cannot_tell, seen});
    }
    FullCheckOptions settings;
    settings.held_out.max_rows = static_cast<std::size_t>(options.max_rows);
    settings.held_out.num_prior_draws = static_cast<std::size_t>(options.num_prior_draws);
    predict_with(predictive.get(), options.num_predicted, data, settings);
    return full_check(estimator, data, settings, context);
  }
};

std::vector<std::string> input_files(const CheckCommandOptions& options, const fs::path& model) {
  std::vector<std::string> inputs = {model.string()};
  if (!is_of_campaign(options))
    inputs.insert(inputs.end(), options.simulations.begin(), options.simulations.end());
  if (!options.observation.file.empty()) inputs.push_back(options.observation.file);
  if (!options.problem.empty()) inputs.push_back(options.problem);
  return inputs;
}

void record_inputs(const CheckCommandOptions& options, const std::vector<std::string>& inputs,
                   const CheckRun& run, Record& record) {
  CheckCommandOptions shown = options;
  OptionTable table;
  describe(table, shown);
  describe(table, shown.observation);
  add_options(record, table);
  std::vector<std::string> hashes;
  for (const std::string& input : inputs) hashes.push_back(file_hash(input));
  record.set("parameters", RecordValue(run.estimator.prior.names()));
  record.set("inputs.files", RecordValue(inputs));
  record.set("inputs.hashes", RecordValue(hashes));
  record.set("estimator_hash", hashes[0]);
  record.set("simulations.source", run.held_out.source);
  record.set("simulations.num_rows", run.held_out.num_rows());
  record.set("simulations.num_dropped", run.held_out.num_dropped);
}

/// Half a check after a signal is none; after the time limit it is a partial result.
void describe_end(CheckReport&& report, const RunContext& context, CommandResult& result) {
  const bool is_complete = std::get<bool>(*report.record.find("complete"));
  if (!is_complete) {
    result.status = context.stop_requested() ? CommandStatus::stopped : CommandStatus::budget_spent;
    result.message = context.stop_requested()
                         ? "stopped on request while checking"
                         : fmt::format("the time limit was over while checking; {} held-out rows were done",
                                       std::get<std::int64_t>(*report.record.find("held_out.rows")));
  }
  if (result.status == CommandStatus::stopped) return;
  add_check(result.record, report);
  result.check = std::move(report);
}

}  // namespace

void describe(OptionTable& table, CheckCommandOptions& options) {
  table.add("", "model", &options.model, {}, "the estimator, or the folder of the run that made it");
  table.add(
      "", "simulations", &options.simulations,
      "files of held-out simulations, theta and x, or the folder of a campaign, that the estimator was not "
      "trained on");
  table.add("", "task", &options.task, {},
            "the built-in task that the estimator was trained on: makes held-out simulations where no files "
            "are given, and "
            "data at posterior draws");
  table.add(
      "", "problem", &options.problem, {},
      "the problem file that the estimator was trained on: its program or library makes data at posterior "
      "draws of the observation");
  describe_num_predicted(table, "", options.num_predicted);
  table
      .add("", "num_simulations", &options.num_simulations, {.low = 1, .high = 1e9},
           "held-out simulations that the task makes")
      .aliases = {"n"};
  table.add("", "max_rows", &options.max_rows, {.low = 0, .high = 1e9},
            "held-out rows that are used, the first so many; 0: all");
  table.add("", "num_prior_draws", &options.num_prior_draws, {.low = 2, .high = 1e5},
            "prior draws that stand for the posterior of each row; narrow posteriors get ten times as many");
}

CommandResult check_command(const CheckCommandOptions& options, const OutputOptions& output,
                            const RunContext& context) {
  const Stopwatch watch;
  const fs::path model = model_file(options.model);
  if (options.simulations.empty() && options.task.empty())
    throw ConfigError(
        "check: neither held-out simulations nor a task is given; name files that the estimator was not "
        "trained on by "
        "--simulations, or its task by --task");
  if (const std::string broken = broken_num_predicted(options.num_predicted); !broken.empty())
    throw ConfigError("check: " + broken);
  RatioEstimator estimator = load_estimator(model);
  std::unique_ptr<Task> task = task_of(options, estimator);
  const std::optional<Problem> problem = simulating_problem(options, estimator);
  std::optional<Observation> observation;
  if (!options.observation.file.empty()) {
    observation = read_observation(options.observation);
    check_observation_columns(*observation, estimator.x_low.size());
  }
  SimulationSet held_out = held_out_rows(options, estimator, context);
  check_fit(held_out, estimator);
  const OutputFolder folder(output.out.empty() ? default_folder(options.model) : fs::path(output.out),
                            kCheckFiles, output);
  std::unique_ptr<PredictiveRows> predictive;
  if (problem)
    predictive = std::make_unique<PredictiveRows>(
        *problem, estimator.prior, estimator.x_low.size(),
        PredictiveRows::count(options.num_predicted) * observation->num_posteriors(), context);
  const std::vector<std::string> inputs = input_files(options, model);
  folder.refuse_inputs(inputs);
  folder.clear();

  RunContext rest = context;
  rest.time_limit = context.time_limit - watch.seconds();
  const CheckRun run{options,
                     rest,
                     std::move(estimator),
                     std::move(task),
                     std::move(observation),
                     std::move(held_out),
                     std::move(predictive)};
  CommandResult result;
  result.folder = folder.path();
  result.record = started_record("check", output, context);
  record_inputs(options, inputs, run, result.record);
  context.log.info(fmt::format(
      "checking on {} of {} held-out simulations",
      options.max_rows == 0 ? run.held_out.num_rows()
                            : std::min(run.held_out.num_rows(), static_cast<std::size_t>(options.max_rows)),
      run.held_out.num_rows()));
  if (run.held_out.num_dropped > 0)
    context.log.info(failure_summary(run.held_out) + " and were left out: the check is about successes");
  describe_end(run.report(), rest, result);
  if (run.predictive) {
    run.predictive->write(folder);
    result.record.merge("check.", run.predictive->record());
  }
  result.record.set("status", command_status_name(result.status));
  result.record.set("message", result.message);
  result.record.set("seconds", watch.seconds());
  write_record(result.record, folder);
  return result;
}

}  // namespace nrec
