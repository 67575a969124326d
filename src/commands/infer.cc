#include "nrec/commands/infer.h"

#include <fmt/format.h>

#include <array>

#include "commands/failures.h"
#include "commands/inputs.h"
#include "commands/results.h"
#include "commands/sampling_stage.h"
#include "nrec/io/file.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

constexpr std::array kInferFiles = {files::kEstimator, files::kCheckpoint,  files::kDrawsNpz,
                                    files::kDrawsCsv,  files::kDrawsNetcdf, files::kEvaluations,
                                    files::kRecord,    files::kConfig,      files::kPredictive};
constexpr std::array kTrainFiles = {files::kEstimator, files::kCheckpoint, files::kRecord, files::kConfig};
constexpr double kTrainingShare = 0.9;  // of a time limit, when sampling is to follow

fs::path folder_of(const Problem& problem, const OutputOptions& output) {
  if (!output.out.empty()) return output.out;
  const std::string stem = problem.file.empty() ? problem.simulations.task : problem.file.stem().string();
  return (stem.empty() ? std::string("nrec") : stem) + "_run";
}

/// The stages that infer and train share, and what they hand on.
class Run {
 public:
  Run(std::string_view command, const Problem& problem, const OutputOptions& output,
      const RunContext& context, std::span<const std::string_view> owned)
      : problem_(problem),
        output_(output),
        context_(context),
        prior_(problem_prior(problem)),
        task_(problem_task(problem, context)),
        folder_(folder_of(problem, output), owned, output) {
    result_.folder = folder_.path();
    result_.record = started_record(command, output, context);
  }

  /// Loads everything and checks that it fits together, before anything of an earlier run is touched. False when the
  /// simulations are not all there; status and message then say why.
  bool load(const Observation* observation) {
    if (observation) {  // refuses in time
      condition(prior_, read_fixed_parameters(problem_.sampling.fix));
      require_method(problem_.sampling, prior_);
    }
    if (output_.resume)
      earlier_record(folder_);  // refuses one of a newer version, which would be overwritten
    if (output_.resume && !fs::exists(folder_.file(files::kCheckpoint)))
      context_.log.info("no checkpoint of an earlier run in " + folder_.path().string() + ": starting anew");
    simulations_ = load_simulations(problem_, prior_, context_);
    result_.record.merge("", simulations_.campaign);
    if (simulations_.unfinished) {
      const CampaignReport& report = *simulations_.unfinished;
      result_.message = "simulating: " + report.message;
      result_.status = report.status == CampaignStatus::stopped        ? CommandStatus::stopped
                       : report.status == CampaignStatus::budget_spent ? CommandStatus::budget_spent
                                                                       : CommandStatus::simulations_failed;
      return false;
    }
    if (observation) {
      check_observation(*observation, simulations_);
      const std::string outside =
          outside_warning(columns_outside(simulations_.set, observation->x_o), observation->x_o.rows());
      if (!outside.empty()) context_.log.warning(outside);
    }
    record_inputs();
    std::vector<std::string> inputs = problem_.simulations.files;
    inputs.insert(inputs.end(), {problem_.file.string(), problem_.observation.file,
                                 problem_.parameters.from_samples.string()});
    folder_.refuse_inputs(inputs);
    check_training();
    folder_.clear();
    write_file(folder_.file(files::kConfig), problem_text(problem_, folder_.path()));
    return true;
  }

  /// Trains and writes the estimator. False when there is none to go on with; status and message then say
  /// why.
  bool train_estimator(double time_share) {
    RunContext part = context_;
    part.time_limit = time_share * seconds_left();
    context_.log.info(fmt::format("training on {} simulations, {} parameters, {} data",
                                  simulations_.set.num_rows(), prior_.dim(), simulations_.set.dim_x()));
    TrainingResult trained =
        train(prior_, simulations_.set, problem_.network, problem_.training, part, checkpoint(), simulator());
    if (!trained.summary.success_message.empty()) context_.log.info(trained.summary.success_message);
    context_.log.info("training: " + trained.summary.message);
    add_training(result_.record, trained.summary, trained.estimator ? &*trained.estimator : nullptr);
    result_.message = trained.summary.message;
    if (trained.summary.status == TrainingStatus::stopped) result_.status = CommandStatus::stopped;
    if (trained.summary.status == TrainingStatus::budget_spent) result_.status = CommandStatus::budget_spent;
    if (trained.summary.status == TrainingStatus::diverged) {
      if (!trained.summary.usable) result_.status = CommandStatus::failed;
      context_.log.warning(trained.summary.message);
    }
    if (!trained.summary.usable || result_.status == CommandStatus::stopped) return false;
    estimator_ = std::move(trained.estimator);
    save_estimator(*estimator_, folder_.file(files::kEstimator));
    estimator_hash_ = file_hash(folder_.file(files::kEstimator));
    result_.record.set("estimator_hash", estimator_hash_);
    return true;
  }

  void sample_and_check(const Observation& observation) {
    const std::vector<std::uint32_t> rows =
        validation_rows(simulations_.set.num_rows(), problem_.training.validation_fraction, context_.seed);
    Matrix<double> theta(rows.size(), prior_.dim());
    Matrix<double> x(rows.size(), simulations_.set.dim_x());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::ranges::copy(std::as_const(simulations_.set.theta).row(rows[i]), theta.row(i).begin());
      std::ranges::copy(std::as_const(simulations_.set.x).row(rows[i]), x.row(i).begin());
    }
    // That of an earlier run, which may have had another observation.
    std::error_code code;
    fs::remove(folder_.file(files::kPredictive), code);
    RunContext part = context_;
    part.time_limit = seconds_left();
    const CommandStatus trained = result_.status;
    std::optional<PredictiveRows> predictive;
    if (problem_.check.level == "full" && has_own_simulator(problem_))
      predictive.emplace(problem_, prior_, simulations_.set.dim_x(),
                         PredictiveRows::count(problem_.check.num_predicted) * observation.num_posteriors(),
                         part);
    const SamplingStage stage{*estimator_,
                              estimator_hash_,
                              observation,
                              problem_.sampling,
                              problem_.check,
                              theta,
                              x,
                              folder_,
                              output_.resume,
                              simulator(),
                              predictive ? &*predictive : nullptr};
    stage.run(part, result_);
    if (result_.status == CommandStatus::done) result_.status = trained;
  }

  CommandResult finish() {
    result_.record.set("status", command_status_name(result_.status));
    result_.record.set("message", result_.message);
    result_.record.set("seconds", watch_.seconds());
    write_record(result_.record, folder_);
    return std::move(result_);
  }

 private:
  CheckpointOptions checkpoint() const {
    return {.path = folder_.file(files::kCheckpoint), .resume = output_.resume};
  }

  /// Everything that train() refuses is refused here, while the files of an earlier run are untouched: a
  /// training that is told to stop before its first step checks its arguments and the checkpoint, and does
  /// nothing else.
  void check_training() const {
    StopRequest at_once;
    at_once.request(1);
    const bool goes_on = output_.resume && fs::exists(folder_.file(files::kCheckpoint));
    const RunContext silent = {
        .pool = context_.pool, .seed = context_.seed, .isa = context_.isa, .stop = &at_once};
    train(prior_, simulations_.set, problem_.network, problem_.training, silent,
          goes_on ? checkpoint() : CheckpointOptions{}, simulator());
  }

  /// For training that makes its own simulations; null where nrec has none that it can call itself.
  const Simulator* simulator() const { return task_ ? &task_->simulator() : nullptr; }

  double seconds_left() const { return std::max(0.0, context_.time_limit - watch_.seconds()); }

  void record_inputs() {
    Problem shown = problem_;
    shown.training = settled_options(problem_.training, simulations_.set.num_rows());
    OptionTable table;
    describe(table, shown);
    add_options(result_.record, table);
    result_.record.set("parameters", RecordValue(prior_.names()));
    result_.record.set("prior", RecordValue(prior_.description()));
    result_.record.merge("inputs.", input_record(problem_));
    result_.record.set("simulations.source", simulations_.set.source);
    result_.record.set("simulations.num_rows", simulations_.set.num_rows());
    result_.record.merge("simulations.", failure_record(simulations_.set));
    result_.record.set("simulations.dim_x", simulations_.set.dim_x());
  }

  const Problem& problem_;
  const OutputOptions& output_;
  const RunContext& context_;
  Stopwatch watch_;
  Prior prior_;
  std::unique_ptr<Task> task_;  // null where the problem has none
  OutputFolder folder_;
  LoadedSimulations simulations_;
  std::optional<RatioEstimator> estimator_;
  std::string estimator_hash_;
  CommandResult result_;
};

}  // namespace

CommandResult infer(const Problem& problem, const OutputOptions& output, const RunContext& context) {
  validate(problem);
  const Observation observation = read_observation(problem.observation);
  Run run("infer", problem, output, context, kInferFiles);
  if (run.load(&observation) && run.train_estimator(kTrainingShare)) run.sample_and_check(observation);
  return run.finish();
}

CommandResult train_command(const Problem& problem, const OutputOptions& output, const RunContext& context) {
  validate(problem);
  Run run("train", problem, output, context, kTrainFiles);
  if (run.load(nullptr)) run.train_estimator(1.0);
  return run.finish();
}

}  // namespace nrec
