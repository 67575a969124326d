#include "simulation/external/preflight.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "nrec/core/error.h"
#include "simulation/external/number_text.h"
#include "simulation/external/persistent_runner.h"
#include "simulation/external/run_runner.h"

namespace nrec::simulation {
namespace {

constexpr std::size_t kMostTries = 8;
// Programs that hang do so for every theta: two are enough to know.
constexpr std::size_t kMostTimeOuts = 2;
constexpr double kTimeLimit = 600.0;
constexpr double kFirstWords = 10.0;  // seconds until the user hears that we wait, and how often after that
constexpr double kLaterWords = 60.0;
// An answer that has not come by then may sit in a buffer of the program.
constexpr double kCloseAfter = 5.0;
constexpr double kPatience = 1.5;  // with the second run, in units of the first one
// Limits made from what was seen; as RowTimeLimit.
constexpr double kLeastLimit = 60.0;
constexpr double kLimitPerSlowest = 20.0;
// A call of run() should last so long, and so many times as long as a start where a call costs one.
constexpr double kSecondsPerCall = 0.2;
constexpr double kCallPerStartup = 20.0;
constexpr double kMostRowsPerCall = 1e6;
constexpr double kLongStartup = 10.0;

class Preflight {
 public:
  Preflight(const std::shared_ptr<const SimulatorSetup>& setup, MatrixView<const double> theta,
            std::uint64_t seed, const RunContext& run)
      : setup_(setup), theta_(theta), seed_(seed), run_(run), runner_(make_runner(setup, settings(*setup))) {
    persistent_ = dynamic_cast<PersistentRunner*>(runner_.get());
    host().on_wait = [this] { tell_of_waiting(); };
    if (persistent_) persistent_->set_close_after(kCloseAfter);
  }

  PreflightReport fly() {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < kMostTries && !first && !gives_up(); ++i) {
      const std::vector<RowResult> results = run_rows({task(i, i, i)});
      if (results.empty()) return {};  // stopped
      if (results[0].status == RowStatus::ok) first = i;
      tries_.push_back(results[0]);
    }
    if (!first) throw_refusal();
    const double first_seconds = tries_.back().seconds;
    if (persistent_) {
      persistent_->forget_notes();
      persistent_->set_close_after(kPatience * first_seconds + kCloseAfter / 2.0);
      persistent_->on_violation = throw_violation;
    }
    // Twice the same, then another seed; together, so that order and number of answers can be wrong.
    const std::vector<RowResult> repeats =
        run_rows({task(*first, *first, kMostTries), task(*first, *first, kMostTries + 1),
                  task(*first, kMostTries, kMostTries + 2)});
    if (repeats.size() < 3) return {};
    return report(repeats);
  }

 private:
  static RunnerSettings settings(const SimulatorSetup& setup) {
    RunnerSettings result;
    const double given = setup.options.row_time_limit;
    result.row_time_limit = given > 0.0 ? given : kTimeLimit;
    return result;
  }
  ProgramHost& host() { return persistent_ ? persistent_->host() : static_cast<RunRunner&>(*runner_).host(); }
  const XShape& x_shape() const {
    return persistent_ ? persistent_->x_shape() : static_cast<const RunRunner&>(*runner_).x_shape();
  }

  RowTask task(std::size_t theta_row, std::size_t seed_number, std::size_t row) const {
    return {row, row_seed(seed_, seed_number), theta_.row(theta_row)};
  }

  std::vector<RowResult> run_rows(const std::vector<RowTask>& tasks) {
    watch_ = Stopwatch();
    next_words_ = kFirstWords;
    std::vector<RowResult> results(tasks.size());
    std::size_t count = 0;
    runner_->run(
        tasks,
        [&](RowResult&& result) {
          const std::size_t place = result.row - tasks.front().row;
          results.at(place) = std::move(result);
          ++count;
          if (persistent_ && tasks.size() > 1) check_protocol(persistent_->notes());
        },
        stop_);
    if (count < tasks.size()) results.clear();
    return results;
  }

  /// Called while we wait: passes a stop request on, and the end of the time limit as one.
  void tell_of_waiting() {
    if (run_.stop_requested() || flight_.seconds() > run_.time_limit) stop_.request(1);
    if (watch_.seconds() < next_words_) return;
    run_.log.info(fmt::format("simulator: still waiting for {} ({} so far)",
                              tries_.empty() ? "the first run" : "a pre-flight run",
                              seconds_text(watch_.seconds())));
    next_words_ = watch_.seconds() + kLaterWords;
  }

  bool gives_up() const {
    const auto is_late = [](const RowResult& result) { return result.status == RowStatus::timed_out; };
    return static_cast<std::size_t>(std::count_if(tries_.begin(), tries_.end(), is_late)) >= kMostTimeOuts;
  }

  [[noreturn]] void throw_refusal() const;
  static void check_protocol(const ProgramNotes& notes);
  [[noreturn]] static void throw_violation(const std::string& problem);
  PreflightReport report(const std::vector<RowResult>& repeats) const;
  void add_times(PreflightReport& report, const std::vector<RowResult>& repeats) const;
  void compare(PreflightReport& report, const std::vector<RowResult>& repeats) const;
  std::string by_hand() const;

  std::shared_ptr<const SimulatorSetup> setup_;
  MatrixView<const double> theta_;
  std::uint64_t seed_;
  const RunContext& run_;
  std::unique_ptr<RowRunner> runner_;
  PersistentRunner* persistent_ = nullptr;
  std::vector<RowResult> tries_;
  StopRequest stop_;
  Stopwatch flight_, watch_;
  double next_words_ = kFirstWords;
};

// How the user can see the same: the command of the first row.
std::string Preflight::by_hand() const {
  const RowTask first = task(0, 0, 0);
  if (setup_->protocol == Protocol::run) {
    std::string text;
    for (const WordTemplate& word : setup_->words) {
      if (!text.empty()) text += ' ';
      append_filled(text, word, {first.theta, first.seed, first.row, "theta_file", "x_file"});
    }
    return fmt::format("Try by hand, in {}: {}", setup_->folder.string(), text);
  }
  if (setup_->protocol == Protocol::lines) {
    std::string line;
    append_filled(line, setup_->line, {first.theta, first.seed, first.row, "", ""});
    return fmt::format("Try by hand, in {}: echo \"{}\" | {}", setup_->folder.string(), line,
                       setup_->options.command);
  }
  return "See docs/howto/simulators.md for what is expected of it";
}

void Preflight::throw_refusal() const {
  std::string text = fmt::format(
      "simulator {}: none of {} pre-flight runs gave an x.",
      setup_->options.library.empty() ? setup_->options.command : setup_->options.library, tries_.size());
  std::vector<std::pair<std::string, std::size_t>> reasons;
  for (const RowResult& result : tries_) {
    const std::string reason = fmt::format("{}: {}", row_status_name(result.status), result.reason);
    const auto same =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == reason; });
    if (same == reasons.end()) {
      reasons.emplace_back(reason, 1);
    } else {
      ++same->second;
    }
  }
  for (const auto& [reason, count] : reasons) text += fmt::format("\n  {} x {}", count, reason);
  std::string theta;
  append_numbers(theta, theta_.row(0));
  text += fmt::format("\nThe first theta was {}.", theta);
  const auto spoke =
      std::find_if(tries_.begin(), tries_.end(), [](const RowResult& r) { return !r.messages.empty(); });
  if (spoke != tries_.end()) text += fmt::format(" It said on stderr:\n{}", spoke->messages);
  if (text.back() != '\n') text += '\n';
  throw ConfigError(text + by_hand());
}

void Preflight::check_protocol(const ProgramNotes& notes) {
  if (notes.answered_after_close) {
    throw ConfigError(
        "simulator: its answers come only when its input ends, because they stay in a buffer; flush stdout "
        "after every "
        "answer (Python: print(..., flush=True); C: fflush(stdout); C++: std::endl; Fortran: "
        "flush(output_unit))");
  }
  if (notes.ended_early) {
    throw ConfigError(
        "simulator: it ends before it has answered all requests; let it go on until its input ends, or start "
        "it once per "
        "row with protocol = \"run\"");
  }
}

void Preflight::throw_violation(const std::string& problem) {
  throw ConfigError(
      fmt::format("simulator: alone each row is answered, but not three requests in a row: {}; every request "
                  "needs one answer, in the order of the requests",
                  problem));
}

void Preflight::compare(PreflightReport& report, const std::vector<RowResult>& repeats) const {
  const auto same = [](const RowResult& a, const RowResult& b) { return a.status == b.status && a.x == b.x; };
  const RowResult& first = tries_.back();
  const char* how = setup_->protocol == Protocol::run
                        ? "{seed} in the command, or NREC_SEED in its environment"
                    : setup_->protocol == Protocol::lines   ? "{seed} in `line`"
                    : setup_->protocol == Protocol::library ? "the argument seed of nrec_simulate"
                                                            : "the array of seeds, one per row";
  report.is_reproducible = same(first, repeats[0]) && same(first, repeats[1]);
  if (!report.is_reproducible) {
    const bool differs_in_batch = setup_->protocol == Protocol::npy && same(repeats[0], repeats[1]);
    report.warnings.push_back(
        fmt::format("the simulator gave different x for the same theta and seed{}, so rows cannot be made "
                    "again; take all randomness of "
                    "a row from its seed: {}",
                    differs_in_batch ? ", depending on the rows beside it" : "", how));
    return;
  }
  report.seed_has_effect = repeats[2].status != RowStatus::ok || !same(first, repeats[2]);
  if (!report.seed_has_effect) {
    report.warnings.push_back(fmt::format(
        "the simulator gave the same x for another seed; if it is meant to be random, give it the seed: {}",
        how));
  }
}

void Preflight::add_times(PreflightReport& report, const std::vector<RowResult>& repeats) const {
  double slowest = tries_.back().seconds;
  double sum = 0.0;
  for (const RowResult& result : repeats) {
    slowest = std::max(slowest, result.seconds);
    sum += result.seconds;
  }
  report.seconds_per_row = sum / static_cast<double>(repeats.size());
  double call = 0.0;
  if (persistent_) {
    const ProgramNotes& notes = persistent_->notes();
    if (notes.seconds_per_row >= 0.0) report.seconds_per_row = notes.seconds_per_row;
    report.startup_seconds = std::max(0.0, notes.startup_seconds);
    const bool costs_start = setup_->protocol == Protocol::npy ||
                             (setup_->protocol == Protocol::lines && !uses(setup_->line, Blank::row));
    call = std::max(kSecondsPerCall, costs_start ? kCallPerStartup * report.startup_seconds : 0.0);
    if (setup_->protocol == Protocol::lines && costs_start && report.startup_seconds > kLongStartup) {
      report.warnings.push_back(
          fmt::format("the simulator needs {} to start and is started again now and then, to see that no "
                      "answer is missing or too "
                      "many; put {{row}} in `line` and let answers begin with it, then it runs on",
                      seconds_text(report.startup_seconds)));
    }
  }
  report.rows_per_call = static_cast<std::size_t>(
      std::clamp(call / std::max(report.seconds_per_row, 1e-9), 1.0, kMostRowsPerCall));
  const double given = setup_->options.row_time_limit;
  report.row_time_limit = given > 0.0 ? given : std::max(kLeastLimit, kLimitPerSlowest * slowest);
}

PreflightReport Preflight::report(const std::vector<RowResult>& repeats) const {
  PreflightReport result;
  result.x_shape = x_shape().shape();
  compare(result, repeats);
  add_times(result, repeats);
  return result;
}

}  // namespace

PreflightReport run_preflight(const std::shared_ptr<const SimulatorSetup>& setup,
                              MatrixView<const double> theta, std::uint64_t seed, const RunContext& run) {
  if (theta.rows < kMostTries || theta.cols != setup->names.size()) {
    throw ShapeError(fmt::format("simulator: the pre-flight runs need theta [{} or more, {}], not [{}, {}]",
                                 kMostTries, setup->names.size(), theta.rows, theta.cols));
  }
  return Preflight(setup, theta, seed, run).fly();
}

}  // namespace nrec::simulation
