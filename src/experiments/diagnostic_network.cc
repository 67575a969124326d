#include "experiments/diagnostic_network.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "experiments/toy_problem.h"
#include "nrec/core/error.h"
#include "nrec/core/stop.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"
#include "nrec/kernels/dispatch.h"
#include "nrec/networks/pair_step.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

constexpr const char* kIdentity = "experiment.";  // starts the names in the settings of a kept estimator
constexpr std::size_t kPairsAtOnce = 4096;        // few enough for their rows to stay in cache

/// The files of one network in the folder.
struct NetworkFiles {
  fs::path estimator, checkpoint, facts;

  NetworkFiles(const fs::path& folder, const ImportanceDiagnosticOptions& options, std::uint64_t seed) {
    const fs::path start = folder / (options.training.loss + "_seed" + std::to_string(seed));
    estimator = start.string() + ".safetensors";
    checkpoint = start.string() + ".checkpoint.safetensors";
    facts = start.string() + ".json";
  }
};

void require_same(const Record& identity, const RatioEstimator& estimator, const fs::path& path) {
  for (const auto& [name, value] : identity.entries()) {
    const RecordValue* there = estimator.settings.find(kIdentity + name);
    const auto* was = there ? std::get_if<std::string>(there) : nullptr;
    const auto& is = std::get<std::string>(value);
    if (was && *was == is) continue;
    throw ConfigError("importance_diagnostic: " + path.string() + ": this network was trained with " + name +
                      " = " + (was ? *was : "nothing") + " but now it is " + is +
                      "; choose another folder, or remove the file");
  }
}

template <class T>
T value_or(const Record& record, const char* name, T otherwise) {
  const RecordValue* value = record.find(name);
  const T* found = value ? std::get_if<T>(value) : nullptr;
  return found ? *found : otherwise;
}

/// What the estimator does not say itself, because equal networks are equal files: how long it took, and why it ended.
void write_facts(const DiagnosticTraining& training, const fs::path& path) {
  Record record;
  record.set("schema_version", Record::kSchemaVersion);
  record.set("status", training.status);
  record.set("message", training.message);
  record.set("seconds", training.seconds);
  record.set("was_resumed", training.was_resumed);
  write_file(path, record_to_json(record));
}

void read_facts(const fs::path& path, DiagnosticTraining& training) {
  Record record;
  try {
    record = record_from_json(read_file(path), path.string());
  } catch (const IoError&) {
    return;  // lost with the folder's history: the network is as good without
  }
  training.status = value_or<std::string>(record, "status", "");
  training.message = value_or<std::string>(record, "message", "");
  training.seconds = value_or(record, "seconds", training.seconds);
  training.was_resumed = value_or(record, "was_resumed", false);
}

DiagnosticNetwork kept_network(const Record& identity, const NetworkFiles& files) {
  DiagnosticNetwork network{.estimator = load_estimator(files.estimator), .training = {}};
  const RatioEstimator& estimator = *network.estimator;
  require_same(identity, estimator, files.estimator);
  network.training.was_reused = true;
  network.training.num_epochs = static_cast<int>(estimator.history.size());
  network.training.best_epoch = estimator.best_epoch;
  network.training.best_validation_loss =
      estimator.history[static_cast<std::size_t>(estimator.best_epoch) - 1].validation_loss;
  read_facts(files.facts, network.training);
  return network;
}

ExperimentStatus status_of(const TrainingSummary& summary) {
  if (summary.status == TrainingStatus::stopped) return ExperimentStatus::stopped;
  if (summary.status == TrainingStatus::budget_spent) return ExperimentStatus::budget_spent;
  return summary.usable ? ExperimentStatus::done : ExperimentStatus::failed;
}

DiagnosticTraining facts_of(const TrainingSummary& summary, bool was_resumed) {
  DiagnosticTraining training{.status = std::string(training_status_name(summary.status)),
                              .message = summary.message,
                              .num_epochs = summary.num_epochs,
                              .best_epoch = summary.best_epoch,
                              .seconds = summary.seconds,
                              .was_resumed = was_resumed};
  if (summary.usable) training.best_validation_loss = summary.best_validation_loss;
  return training;
}

}  // namespace

Record network_identity(const ImportanceDiagnosticOptions& options, const RunContext& run) {
  ImportanceDiagnosticOptions copy = options;
  OptionTable table;
  describe(table, copy.network);
  describe(table, copy.training);
  Record identity;
  for (const OptionEntry& entry : table.entries())
    identity.set(entry.name, option_value_text(entry.current()));
  identity.set("num_simulations", std::to_string(options.num_simulations));
  identity.set("seed", std::to_string(run.seed));
  identity.set("isa", resolve_isa(run.isa));
  return identity;
}

namespace {

void make_folder(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code)
    throw IoError("importance_diagnostic: " + folder.string() +
                  ": this folder cannot be made: " + code.message() + "; choose another");
}

DiagnosticNetwork train_network(const ImportanceDiagnosticOptions& options, const SimulationSet& simulations,
                                const RunContext& run, const CheckpointOptions& checkpoint) {
  std::error_code ignored;
  const bool was_resumed = !checkpoint.path.empty() && fs::exists(checkpoint.path, ignored);
  const FunctionSimulator simulator = toy::simulator();
  TrainingResult trained =
      train(toy::prior(), simulations, options.network, options.training, run, checkpoint, &simulator);
  DiagnosticNetwork network{.estimator = std::nullopt,
                            .training = facts_of(trained.summary, was_resumed),
                            .status = status_of(trained.summary)};
  if (network.status == ExperimentStatus::done) network.estimator = std::move(trained.estimator);
  return network;
}

}  // namespace

DiagnosticNetwork diagnostic_network(const ImportanceDiagnosticOptions& options,
                                     const SimulationSet& simulations, const RunContext& run,
                                     const fs::path& folder) {
  if (folder.empty()) return train_network(options, simulations, run, {});
  const Record identity = network_identity(options, run);
  const NetworkFiles files(folder, options, run.seed);
  std::error_code ignored;
  if (fs::exists(files.estimator, ignored)) return kept_network(identity, files);
  make_folder(folder);
  DiagnosticNetwork network =
      train_network(options, simulations, run, {.path = files.checkpoint, .resume = true});
  if (!network.estimator) return network;
  network.estimator->settings.merge(kIdentity, identity);
  // The estimator last: when it is there, everything is.
  write_facts(network.training, files.facts);
  save_estimator(*network.estimator, files.estimator);
  fs::remove(files.checkpoint, ignored);
  return network;
}

PairLogRatio exact_pair_log_ratio() {
  return [](std::span<const double> theta, std::span<const double> x, std::span<double> log_ratio) {
    for (std::size_t i = 0; i < x.size(); ++i) log_ratio[i] = toy::log_ratio(theta[i], x[i]);
  };
}

namespace {

/// A network ready for pairs of one theta and one x.
class EstimatorPairs {
 public:
  EstimatorPairs(const RatioEstimator& estimator, const RunContext& run)
      : estimator_(estimator), step_(make_pair_step(run.isa, run.pool)), own_(kPairsAtOnce, 1) {
    std::iota(own_.values().begin(), own_.values().end(), 0u);
    if (estimator.prior.dim() != 1 || estimator.x_standardiser.dim() != 1)
      throw ShapeError("importance_diagnostic: the estimator has " + std::to_string(estimator.prior.dim()) +
                       " parameters and " + std::to_string(estimator.x_standardiser.dim()) +
                       " columns of x; the problem has one of each");
    if (estimator.success)
      throw UnsupportedError(
          "importance_diagnostic: the estimator was trained where simulations fail, which its log ratio "
          "alone "
          "does not say; "
          "train one on simulations that all succeed");
  }

  void operator()(std::span<const double> theta, std::span<const double> x, std::span<double> log_ratio) {
    for (std::size_t first = 0; first < x.size(); first += kPairsAtOnce) {
      const std::size_t n = std::min(kPairsAtOnce, x.size() - first);
      chunk(theta.subspan(first, n), x.subspan(first, n), log_ratio.subspan(first, n));
    }
  }

 private:
  void chunk(std::span<const double> theta, std::span<const double> x, std::span<double> log_ratio) {
    const std::size_t n = x.size();
    for (Matrix<float>* matrix : {&theta_, &x_, &logits_}) *matrix = Matrix<float>(n, 1);
    estimator_.encode_theta({theta.data(), n, 1}, theta_);
    estimator_.x_standardiser.apply({x.data(), n, 1}, x_);
    step_->logits(estimator_.network, {theta_, x_, own_.view().middle_rows(0, n)}, logits_);
    std::copy(logits_.values().begin(), logits_.values().end(), log_ratio.begin());
  }

  RatioEstimator estimator_;
  std::unique_ptr<PairNetworkStep> step_;
  Matrix<float> theta_, x_, logits_;
  Matrix<std::uint32_t> own_;  // 0, 1, 2, ..: theta of a row is its own
};

}  // namespace

PairLogRatio pair_log_ratio(const RatioEstimator& estimator, const RunContext& run) {
  const auto pairs = std::make_shared<EstimatorPairs>(estimator, run);
  return [pairs](std::span<const double> theta, std::span<const double> x, std::span<double> log_ratio) {
    (*pairs)(theta, x, log_ratio);
  };
}

}  // namespace nrec
