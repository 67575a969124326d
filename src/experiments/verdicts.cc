#include "experiments/verdicts.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "commands/results.h"
#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "nrec/core/stop.h"
#include "nrec/diagnostics/full_check.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeldOut = 1000, kQuickHeldOut = 200;
constexpr double kGood = 0.6, kBad = 0.8;  // C2ST
constexpr double kLeastFlagged = 0.95, kMostFalse = 0.10;
constexpr std::array kColumns = {Verdict::trusted, Verdict::cannot_tell, Verdict::not_trusted};

std::string text_of(const Record& record, const char* name) {
  const RecordValue* value = record.find(name);
  const auto* text = value ? std::get_if<std::string>(value) : nullptr;
  return text ? *text : std::string();
}

Record check_network(const CellResult& result, bool is_quick, const RunContext& run) {
  const RatioEstimator estimator = load_estimator(result.estimator);
  const std::unique_ptr<Task> task = cell_task(result.cell->options, result.cell->cell);
  const std::uint64_t seed = RandomStream(result.cell->cell.seed, Stream::check).bits64();
  SimulationSet held_out = simulate_from_prior(task->prior(), task->simulator(),
                                               is_quick ? kQuickHeldOut : kHeldOut, seed, run.pool);
  held_out = without_failures(std::move(held_out), FailureRule::drop);
  const CheckData data{.theta = held_out.theta, .x = held_out.x, .simulator = &task->simulator()};
  const Stopwatch watch;
  const CheckReport report = full_check(estimator, data, {}, run);
  Record record;
  record.set("verdict", verdict_name(report.verdict));
  record.set("reason", report.sentence);
  record.set("held_out", held_out.num_rows());
  record.set("seconds", watch.seconds());
  const RecordValue* complete = report.record.find("complete");
  record.set("complete", complete && std::get<bool>(*complete));
  record.merge("check.", report.record);
  return record;
}

/// By the content of the network: those of two folders may have one name.
fs::path verdict_file(const fs::path& estimator, const fs::path& folder) {
  const std::string hash = file_hash(estimator);
  return folder / "verdicts" /
         fmt::format("{}-{}.json", estimator.stem().string(), hash.substr(hash.find(':') + 1));
}

/// Names of the qualities, in the order of the confusion table.
const char* quality_of(double c2st) {
  if (std::isnan(c2st)) return "unknown";
  return c2st < kGood ? "good" : c2st > kBad ? "bad" : "between";
}

/// Networks of one quality: all, those whose verdict is anything but "trusted", and those that are not trusted.
struct Flagged {
  int all = 0, flagged = 0, not_trusted = 0;

  explicit Flagged(const std::map<std::string, int>& verdicts) {
    for (const auto& [verdict, count] : verdicts) {
      all += count;
      if (verdict != verdict_name(Verdict::trusted)) flagged += count;
      if (verdict == verdict_name(Verdict::not_trusted)) not_trusted += count;
    }
  }

  std::string text() const {
    return fmt::format("{} of {} ({} not trusted, {} cannot tell)", flagged, all, not_trusted,
                       flagged - not_trusted);
  }
};

std::vector<Claim> claims_of(const std::map<std::string, std::map<std::string, int>>& counts) {
  const Flagged bad(counts.at("bad")), good(counts.at("good"));
  return {claim("networks with C2ST above 0.8 are not trusted or cannot be told (95 % of them)",
                bad.flagged >= kLeastFlagged * bad.all, bad.all > 0, bad.text()),
          claim("networks with C2ST below 0.6 are rarely refused or doubted (10 % of them at most)",
                good.flagged <= kMostFalse * good.all, good.all > 0, good.text())};
}

TableFile confusion_table(const std::map<std::string, std::map<std::string, int>>& counts) {
  TidyTable confusion("_confusion", {"quality", "trusted", "cannot tell", "not trusted"});
  for (const auto& [quality, verdicts] : counts) {
    std::vector<std::string> row = {quality};
    for (const Verdict verdict : kColumns) {
      const auto found = verdicts.find(std::string(verdict_name(verdict)));
      row.push_back(fmt::format("{}", found == verdicts.end() ? 0 : found->second));
    }
    confusion.add(std::move(row));
  }
  return confusion.file();
}

}  // namespace

VerdictTable verdict_table(const ExperimentPlan& plan, const CellResults& results, const fs::path& folder,
                           const RunContext& run) {
  VerdictTable verdicts;
  TidyTable table("", {"task", "algorithm", "budget", "seed", "c2st_mean", "quality", "verdict", "reason",
                       "check_seconds"});
  // Every quality has its row, whether there are such networks or not.
  std::map<std::string, std::map<std::string, int>> counts = {{"bad", {}}, {"between", {}}, {"good", {}}};
  const Stopwatch watch;
  fs::create_directories(folder / "verdicts");
  std::size_t done = 0, num_checked = 0;
  for (const CellResult& result : results.cells) {
    run.log.progress({.stage = "verdicts",
                      .done = static_cast<double>(done++),
                      .total = static_cast<double>(results.cells.size()),
                      .unit = "network",
                      .detail = result.cell->cell.text()});
    if (result.estimator.empty()) {
      run.log.warning(result.cell->cell.text() +
                      ": has no network, so that nothing can be checked; it is left out");
      continue;
    }
    const fs::path file = verdict_file(result.estimator, folder);
    Record verdict = readable_record(file).value_or(Record());
    if (text_of(verdict, "verdict").empty()) {  // none yet, or a damaged one
      RunContext rest = run;
      rest.time_limit = run.time_limit - watch.seconds();
      // Those after it may have been checked in an earlier call.
      const bool has_time = !run.stop_requested() && rest.time_limit > 0.0;
      if (has_time) verdict = check_network(result, plan.is_quick, rest);
      if (!has_time || !std::get<bool>(*verdict.find("complete"))) {
        verdicts.is_complete = false;
        continue;
      }
      write_file(file, record_to_json(verdict) + "\n");
    }
    const double c2st = mean_of(result.list("c2st"));
    const std::string quality = quality_of(c2st), word = text_of(verdict, "verdict");
    ++counts[quality][word];
    ++num_checked;
    const RecordValue* seconds = verdict.find("seconds");
    const auto* real = seconds ? std::get_if<double>(seconds) : nullptr;
    const BenchmarkCell& cell = result.cell->cell;
    table.add({cell.task, cell.algorithm, fmt::format("{}", cell.budget), fmt::format("{}", cell.seed),
               cell_text(c2st), quality, word, text_of(verdict, "reason"),
               real ? cell_text(*real) : std::string()});
  }
  if (verdicts.is_complete || num_checked > 0)
    verdicts.findings = {.tables = {table.file(), confusion_table(counts)}, .claims = claims_of(counts)};
  return verdicts;
}

}  // namespace nrec
