#include "commands/benchmark_references.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include "commands/results.h"
#include "nrec/core/error.h"
#include "nrec/core/stop.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"
#include "nrec/io/npz.h"
#include "nrec/tasks/benchmark_files.h"
#include "nrec/tasks/reference_posterior.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReferenceRows = 10'000;
constexpr std::uint64_t kReferenceSeed = 1;
constexpr double kLargestError = 5e-3;  // total variation; a C2ST would gain at most half of it
constexpr int kMostAttempts = 20;
constexpr std::chrono::milliseconds kBetweenLooks(100);  // at signals and the clock

std::string bytes_of(std::span<const double> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

std::string hash_of(const BenchmarkReference& reference) {
  return content_hash(bytes_of(reference.x_o) + bytes_of(reference.true_parameters) +
                      bytes_of(reference.theta.values()));
}

template <class T>
T value_of(const Record& record, const char* name) {
  const RecordValue* value = record.find(name);
  const T* found = value ? std::get_if<T>(value) : nullptr;
  if (!found) throw IoError(fmt::format("{} is missing", name));
  return *found;
}

/// A number that JSON may have turned into a whole one.
double number_of(const Record& record, const char* name) {
  const RecordValue* value = record.find(name);
  if (value && std::holds_alternative<std::int64_t>(*value))
    return static_cast<double>(std::get<std::int64_t>(*value));
  return value_of<double>(record, name);
}

/// While it lives, stop() asks for what the run's own stop request and its time limit ask for: making a reference posterior
/// takes long and heeds a stop request only.
class Watchdog {
 public:
  explicit Watchdog(const RunContext& run)
      : thread_([this, &run](const std::stop_token& end) {
          const Stopwatch watch;
          std::unique_lock lock(mutex_);
          while (!end.stop_requested()) {
            if (run.stop_requested() || watch.seconds() > run.time_limit) stop_.request(1);
            ended_.wait_for(lock, end, kBetweenLooks, [] { return false; });
          }
        }) {}
  const StopRequest& stop() const { return stop_; }

 private:
  StopRequest stop_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;  // the last member: it ends first
};

/// Prepares the references of one task.
class References {
 public:
  References(const Task& task, fs::path folder, std::string sbibm, const RunContext& run)
      : task_(task), folder_(std::move(folder)), sbibm_(std::move(sbibm)), run_(run) {}

  std::optional<BenchmarkReference> get(int number) const {
    return sbibm_.empty() ? own(number) : published(number);
  }

 private:
  fs::path file(const char* kind, int number, const char* ending) const {
    return folder_ / fmt::format("{}_{}{}", kind, number, ending);
  }

  /// What is known about a reference beside its draws.
  Record facts(const BenchmarkReference& reference) const {
    Record record;
    record.set("schema_version", Record::kSchemaVersion);
    record.set("nrec_version", nrec_version());
    record.set("task", task_.name());
    record.set("observation", reference.number);
    record.set("method", reference.method);
    record.set("hash", hash_of(reference));
    record.set("x_o", RecordValue(reference.x_o));
    record.set("true_parameters", RecordValue(reference.true_parameters));
    record.set("num_samples", reference.theta.rows());
    record.set("error", reference.error);
    record.set("log_evidence", reference.log_evidence);
    record.set("log_evidence_se", reference.log_evidence_se);
    return record;
  }

  void write(const Record& record, const fs::path& path) const {
    fs::create_directories(folder_);
    write_file(path, record_to_json(record) + "\n");
  }

  BenchmarkReference published(int number) const {
    BenchmarkObservation observation = read_benchmark_observation(sbibm_, task_.name(), number);
    BenchmarkReference reference{.number = number,
                                 .x_o = std::move(observation.x_o),
                                 .true_parameters = std::move(observation.true_parameters),
                                 .theta = std::move(observation.reference_posterior),
                                 .method = "sbibm",
                                 .error = std::numeric_limits<double>::quiet_NaN()};
    const fs::path path = file("sbibm", number, ".json");
    if (take_evidence(path, reference)) return reference;
    const ReferenceEvidence evidence =
        reference_evidence(task_, reference.x_o, reference.theta, kReferenceSeed, run_.pool);
    reference.log_evidence = evidence.log_evidence;
    reference.log_evidence_se = evidence.standard_error;
    write(facts(reference), path);
    return reference;
  }

  bool take_evidence(const fs::path& path, BenchmarkReference& reference) const {
    const std::optional<Record> stored = readable_record(path);
    if (!stored) return false;
    try {
      if (value_of<std::string>(*stored, "hash") != hash_of(reference) ||
          value_of<std::string>(*stored, "nrec_version") != nrec_version())
        return false;
      reference.log_evidence = number_of(*stored, "log_evidence");
      reference.log_evidence_se = number_of(*stored, "log_evidence_se");
    } catch (const IoError&) {
      return false;
    }
    return true;
  }

  std::optional<BenchmarkReference> own(int number) const {
    if (std::optional<BenchmarkReference> stored = read_own(number)) return stored;
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      const std::optional<BenchmarkReference> made = make(number, attempt);
      if (run_.stop_requested()) return std::nullopt;
      if (!made) continue;
      fs::create_directories(folder_);
      // The record comes last: without it the draws do not count.
      write_npz(file("observation", number, ".npz"), {{"reference_posterior", to_array(made->theta)}});
      write(facts(*made), file("observation", number, ".json"));
      return made;
    }
    throw DomainError(
        fmt::format("task {}: observation {}: no reference posterior with an error below {} was found in {} "
                    "attempts; choose other observations by --observations",
                    task_.name(), number, kLargestError, kMostAttempts));
  }

  std::optional<BenchmarkReference> make(int number, int attempt) const {
    const MadeObservation observation = make_observation(task_, number, attempt);
    if (std::ranges::any_of(observation.x_o, [](double x) { return !std::isfinite(x); })) return std::nullopt;
    ReferencePosterior posterior = make_reference_posterior(task_, observation.x_o, kReferenceRows,
                                                            kReferenceSeed, run_.pool, run_.stop);
    if (!posterior.is_complete || posterior.error > kLargestError) return std::nullopt;
    return BenchmarkReference{.number = number,
                              .x_o = observation.x_o,
                              .true_parameters = observation.true_parameters,
                              .theta = std::move(posterior.theta),
                              .method = posterior.method,
                              .error = posterior.error,
                              .log_evidence = posterior.log_evidence,
                              .log_evidence_se = posterior.log_evidence_se};
  }

  std::optional<BenchmarkReference> read_own(int number) const {
    const std::optional<Record> stored = readable_record(file("observation", number, ".json"));
    if (!stored) return std::nullopt;
    try {
      const fs::path path = file("observation", number, ".npz");
      const std::vector<std::string> names = {"reference_posterior"};
      NamedArrays arrays = read_npz(path, names);
      BenchmarkReference reference{
          .number = number,
          .x_o = value_of<std::vector<double>>(*stored, "x_o"),
          .true_parameters = value_of<std::vector<double>>(*stored, "true_parameters"),
          .theta = to_matrix(std::move(arrays[0].second), path.string()),
          .method = value_of<std::string>(*stored, "method"),
          .error = number_of(*stored, "error"),
          .log_evidence = number_of(*stored, "log_evidence"),
          .log_evidence_se = number_of(*stored, "log_evidence_se")};
      if (value_of<std::string>(*stored, "nrec_version") != nrec_version() ||
          value_of<std::string>(*stored, "hash") != hash_of(reference))
        return std::nullopt;
      return reference;
    } catch (const IoError&) {
      return std::nullopt;  // damaged: made again, the same
    }
  }

  const Task& task_;
  fs::path folder_;
  std::string sbibm_;
  const RunContext& run_;
};

}  // namespace

std::optional<std::vector<BenchmarkTask>> benchmark_tasks(const BenchmarkOptions& options,
                                                          const BenchmarkPlan& plan, const fs::path& folder,
                                                          const RunContext& asked) {
  const Watchdog watchdog(asked);
  RunContext run = asked;
  run.stop = &watchdog.stop();
  std::vector<BenchmarkTask> tasks;
  std::size_t done = 0;
  for (const std::string& name : plan.tasks) {
    BenchmarkTask entry{.task = make_task(name), .references = {}, .x_o = {}, .hash = {}};
    entry.x_o = Matrix<double>(plan.observations.size(), entry.task->dim_x());
    const References references(*entry.task, folder / name, options.sbibm, run);
    std::string hashes;
    for (const int number : plan.observations) {
      run.log.progress({.stage = "benchmark",
                        .done = static_cast<double>(done++),
                        .total = static_cast<double>(plan.tasks.size() * plan.observations.size()),
                        .unit = "reference posterior",
                        .detail = fmt::format("{} observation {}", name, number)});
      if (run.stop_requested()) return std::nullopt;
      std::optional<BenchmarkReference> reference = references.get(number);
      if (!reference) return std::nullopt;
      std::ranges::copy(reference->x_o, entry.x_o.row(entry.references.size()).begin());
      hashes += hash_of(*reference);
      entry.references.push_back(std::move(*reference));
    }
    entry.hash = content_hash(hashes);
    tasks.push_back(std::move(entry));
  }
  return tasks;
}

}  // namespace nrec
