#include "nrec/experiments/importance_diagnostic.h"

#include "experiments/diagnostic_network.h"
#include "experiments/diagnostic_parts.h"
#include "experiments/toy_problem.h"
#include "nrec/core/error.h"

namespace nrec {

namespace {

SimulationSet simulate(const ImportanceDiagnosticOptions& options, const RunContext& run) {
  return toy::simulations(static_cast<std::size_t>(options.num_simulations), run.seed, run.pool);
}

ImportanceDiagnosticResult started_result(const std::string& ratio, const RunContext& run) {
  ImportanceDiagnosticResult result;
  result.ratio = ratio;
  result.seed = run.seed;
  result.exact_information = toy::mutual_information();
  return result;
}

void end(ExperimentStatus status, const std::string& where, ImportanceDiagnosticResult& result) {
  result.status = status;
  result.message =
      std::string(status == ExperimentStatus::stopped ? "stopped on request" : "time limit reached") +
      " while " + where + "; the same call goes on";
}

/// All parts, in an order in which the shorter ones come first. A part that is cut short leaves nothing behind.
void diagnose(const PairLogRatio& log_ratio, const SimulationSet& simulations,
              const ImportanceDiagnosticOptions& options, const RunContext& run,
              ImportanceDiagnosticResult& result) {
  const AskedRatio ratio(log_ratio, run);
  std::string where = "drawing from the posterior";
  try {
    Stopwatch watch;
    ratio.say("posterior draws");
    result.posterior = compare_posterior(ratio, options);
    result.sampling_seconds = watch.seconds();
    watch = {};
    where = "weighting simulations";
    ratio.say("likelihoods");
    result.likelihoods = compare_likelihoods(ratio, options);
    const HeldOutPairs held_out(simulations, options, run.seed);
    result.normalisation = normalisation_curve(ratio, held_out);
    where = "training the classifiers";
    result.rocs = compare_rocs(ratio, result.normalisation, options);
    where = "measuring information";
    ratio.say("information");
    result.information =
        held_out_information(ratio, held_out, static_cast<std::size_t>(options.num_information_draws));
    result.diagnostic_seconds = watch.seconds();
  } catch (const CutShort& cut) {
    end(cut.status, where, result);
  }
}

}  // namespace

ImportanceDiagnosticResult run_importance_diagnostic(const ImportanceDiagnosticOptions& options,
                                                     const RunContext& run,
                                                     const std::filesystem::path& folder) {
  options.validate();
  const Stopwatch watch;
  ImportanceDiagnosticResult result = started_result(options.training.loss, run);
  const SimulationSet simulations = simulate(options, run);
  const DiagnosticNetwork network = diagnostic_network(options, simulations, run, folder);
  result.training = network.training;
  result.num_classes = options.training.num_classes;
  result.gamma = options.training.gamma;
  if (network.status == ExperimentStatus::failed) {
    result.status = ExperimentStatus::failed;
    result.message = network.training.message;
  } else if (!network.estimator) {
    end(network.status, "training", result);
  } else {
    RunContext rest = run;
    rest.time_limit = std::max(0.0, run.time_limit - watch.seconds());
    diagnose(pair_log_ratio(*network.estimator, run), simulations, options, rest, result);
  }
  return result;
}

ImportanceDiagnosticResult run_importance_diagnostic(const std::string& name, const PairLogRatio& log_ratio,
                                                     const ImportanceDiagnosticOptions& options,
                                                     const RunContext& run) {
  options.validate();
  if (!log_ratio)
    throw ConfigError("importance_diagnostic: the log ratio \"" + name +
                      "\" is an empty function; give one that can be called");
  ImportanceDiagnosticResult result = started_result(name, run);
  const Stopwatch watch;
  const SimulationSet simulations = simulate(options, run);
  RunContext rest = run;
  rest.time_limit = std::max(0.0, run.time_limit - watch.seconds());
  diagnose(log_ratio, simulations, options, rest, result);
  return result;
}

}  // namespace nrec
