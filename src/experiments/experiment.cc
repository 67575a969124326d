#include "nrec/experiments/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "commands/results.h"
#include "commands/unfinished_files.h"
#include "experiments/benchmark_folder.h"
#include "experiments/experiment_cells.h"
#include "experiments/experiment_plan.h"
#include "experiments/findings.h"
#include "experiments/importance_figure.h"
#include "experiments/plot.h"
#include "experiments/verdicts.h"
#include "nrec/core/error.h"
#include "nrec/core/stop.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"
#include "nrec/tasks/task.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

const std::vector<ExperimentInfo> kExperiments = {
    {"fig1", "C2ST over the number of contrastive parameters and gamma, slcp"},
    {"fig3", "importance-sampling diagnostic on a problem where all is known, NRE-C against NRE-B"},
    {"fig4", "C2ST against the number of contrastive parameters, mean over tasks, three regimes"},
    {"fig5", "bounds I0 and I1 on the mutual information against epoch, three gammas, slcp"},
    {"fig6", "fig4 by task"},
    {"fig7", "validation losses against epoch, new simulations for every mini-batch (joint)"},
    {"fig8", "the same, new contrastive parameters for every mini-batch (prior)"},
    {"fig9", "the same, fixed simulations"},
    {"fig10", "fig9 for slcp and the large network"},
    {"fig11", "fig10 with the same loss, gamma = 1 and K = 1, for all networks"},
    {"fig12", "fig5 for all gammas and numbers of contrastive parameters"},
    {"fig13", "bound I0 on the mutual information against C2ST, slcp"},
    {"fig14", "log Z against epoch, NRE-B and all gammas, slcp"},
    {"table1", "C2ST, mean over ten tasks, beside the published algorithms"},
    {"table2", "settings of the networks of table1"},
    {"table3", "C2ST of the first five tasks, beside the published NRE-C"},
    {"table4", "C2ST of the other five"},
    {"convergence", "NRE-C and NRE-B with gradients that are reset, and accumulated as published"},
    {"verdicts", "what the checks say of networks of known quality"},
};
constexpr std::size_t kTasksPerTable = 5;

bool trains_nothing(const std::string& name) { return name == "table2"; }

OutputOptions always_going_on(OutputOptions output) {
  if (output.out.empty())
    throw UsageError(
        "--out is missing; name the folder of the experiments, in which they can go on: --out DIR");
  output.resume = !output.overwrite;
  return output;
}

std::vector<std::string> owned_files(const std::string& name) {
  std::vector<std::string> owned = {name + ".csv", name + "_claims.csv", name + ".json"};
  for (const char* ending : {".gp", ".svg", ".png"}) owned.push_back(name + ending);
  return owned;
}

std::vector<std::string_view> views(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

/// One call of run_experiment().
class ExperimentRun {
 public:
  ExperimentRun(const ExperimentOptions& options, const OutputOptions& output, const RunContext& run)
      : options_(with_tables_tasks(options)),
        output_(always_going_on(output)),
        run_(run),
        plan_(plan_of(options_)),
        owned_(owned_files(options.name)),
        folder_(checked_out(), views(owned_), output_) {
    result_.command.folder = folder_.path();
    start_record();
  }

  ExperimentResult result() {
    refuse_other_results();
    folder_.clear();
    remove_unfinished_files(folder_.path());
    std::optional<Findings> findings = options_.name == "fig3" ? importance() : from_cells();
    const bool is_whole = result_.command.status == CommandStatus::done;
    if (findings && !findings->claims.empty() && !(is_whole && is_as_published())) {
      leave_untested(*findings);
      run_.log.info(is_whole
                        ? "claims are not decided: what was run is smaller or other than what they are about"
                        : "claims are not decided: not all networks are done");
    }
    if (findings) write(*findings);
    finish();
    return std::move(result_);
  }

 private:
  /// table3 and table4 share the tasks among them.
  static ExperimentOptions with_tables_tasks(ExperimentOptions options) {
    if (!options.tasks.empty()) return options;
    const std::vector<std::string>& all = task_names();
    if (options.size == "quick") {
      if (options.name == "table3") options.tasks = {"two_moons"};
      if (options.name == "table4") options.tasks = {"gaussian_linear"};
      return options;
    }
    if (options.name == "table3") options.tasks.assign(all.begin(), all.begin() + kTasksPerTable);
    if (options.name == "table4") options.tasks.assign(all.begin() + kTasksPerTable, all.end());
    return options;
  }
  static ExperimentPlan plan_of(const ExperimentOptions& options) {
    ExperimentPlan plan = experiment_plan(options);
    if (!options.benchmark.empty()) {
      if (options.name != "verdicts")
        throw UsageError("--benchmark: only verdicts looks at the networks of a benchmark; leave it out");
      plan.cells = benchmark_plan_cells(options.benchmark);
    }
    return plan;
  }

  static bool has_tables(const fs::path& folder) {
    std::error_code code;
    for (const auto& entry : fs::directory_iterator(folder, code)) {
      if (entry.path().extension() == ".csv") return true;
    }
    return false;
  }

  /// What training will refuse is refused before anything runs.
  void check_networks() const {
    if (!options_.benchmark.empty()) return;
    std::set<std::string> seen;
    for (const ExperimentCell& cell : plan_.cells) {
      const std::string settings = record_to_json(cell_settings(cell.options, cell.cell), -1);
      if (!seen.insert(settings + cell.cell.algorithm + fmt::format("{}", cell.cell.budget)).second) continue;
      BenchmarkPlan plan;
      plan.algorithms = {cell.cell.algorithm};
      plan.budgets = {cell.cell.budget};
      try {
        check_cells(cell.options, plan, run_);
      } catch (const ShapeError& error) {
        throw ShapeError(cell.text() + ": " + error.what());
      } catch (const ConfigError& error) {
        throw ConfigError(cell.text() + ": " + error.what());
      }
    }
  }

  fs::path checked_out() const {
    std::error_code code;
    if (!options_.sbibm.empty() && !fs::is_directory(fs::path(options_.sbibm) / "tasks", code))
      throw IoError(
          options_.sbibm +
          ": holds no folder tasks; --sbibm names the folder of the published benchmark; without it "
          "nrec makes its own observations");
    if (!options_.anchors.empty() && !fs::is_directory(options_.anchors, code))
      throw IoError(options_.anchors +
                    ": is no folder; --anchors names the folder with the tables of published numbers");
    if (!options_.anchors.empty() && !has_tables(options_.anchors))
      throw IoError(options_.anchors +
                    ": holds no .csv file; --anchors names the folder with the tables of published numbers");
    check_networks();
    return output_.out;
  }

  /// Whether claims can be decided: the experiment at a size that shows something, on its own tasks, regimes and networks, and with
  /// its own training. Tables are compared cell by cell, whatever the cells are.
  bool is_as_published() const {
    const ExperimentOptions& o = options_;
    if (o.size == "quick") return false;
    if (o.name.starts_with("table") || o.name == "verdicts") return true;
    return o.tasks.empty() && o.regimes.empty() && o.architectures.empty() && o.observations.empty() &&
           o.settings.empty();
  }

  /// Of everything that decides what is run.
  std::string options_hash() const {
    ExperimentOptions shown = options_;
    shown.parallel = 0;
    shown.anchors.clear();
    shown.sbibm = shown.sbibm.empty() ? "" : "sbibm";
    OptionTable table;
    describe(table, shown);
    Record record;
    add_options(record, table);
    for (const OptionOverride& flag : shown.settings)
      record.set(flag.section + "." + flag.name, RecordValue(flag.values));
    std::string cells;
    for (const ExperimentCell& cell : plan_.cells)
      cells += record_to_json(cell_settings(cell.options, cell.cell), -1);
    record.set("cells", content_hash(cells));
    return content_hash(record_to_json(record, -1));
  }

  /// A look of another kind must not replace the tables of hours.
  void refuse_other_results() const {
    if (output_.overwrite) return;
    const std::optional<Record> earlier = readable_record(folder_.file(options_.name + ".json"));
    if (!earlier) return;
    const RecordValue* hash = earlier->find("options_hash");
    if (hash && *hash == RecordValue(options_hash())) return;
    throw ConfigError(
        fmt::format("{}: holds {} made with other flags; replace its tables by --overwrite (networks are "
                    "kept), or choose "
                    "another --out",
                    folder_.path().string(), options_.name));
  }

  void start_record() {
    Record& record = result_.command.record;
    record.set("schema_version", Record::kSchemaVersion);
    record.set("command", "experiment");
    record.set("nrec_version", nrec_version());
    record.set("command_line", output_.command_line);
    record.set("experiment", options_.name);
    record.set("size", options_.size);
    record.set("faithful", options_.faithful);
    record.set("options_hash", options_hash());
    record.set("threads", run_.pool.num_threads());
    record.set("networks", plan_.cells.size());
  }

  RunContext rest() const {
    RunContext context = run_;
    context.time_limit = run_.time_limit - watch_.seconds();
    return context;
  }

  std::optional<Findings> from_cells() {
    CellResults results;
    if (!options_.benchmark.empty()) {
      results = benchmark_cells(options_.benchmark, plan_.cells);
      result_.command.record.set("networks", results.cells.size());
    } else if (!trains_nothing(options_.name)) {
      results = run_experiment_cells(plan_, options_, folder_.path(), rest());
      result_.command.record.set("networks_done", results.cells.size());
      if (results.status != ScheduleStatus::done) {
        cut_off(results.status == ScheduleStatus::stopped,
                fmt::format("{} of {} networks are done", results.cells.size(), plan_.cells.size()));
        if (results.cells.empty()) return std::nullopt;
      }
    }
    if (options_.name == "verdicts") {
      VerdictTable verdicts = verdict_table(plan_, results, folder_.path(), rest());
      if (!verdicts.is_complete && result_.command.status == CommandStatus::done)
        cut_off(run_.stop_requested(), "not all networks are checked");
      return std::move(verdicts.findings);
    }
    return found(results);
  }

  Findings found(const CellResults& results) const {
    const std::string& name = options_.name;
    if (name == "fig1") return c2st_map(results, options_.anchors);
    if (name == "fig4" || name == "fig6") return c2st_against_count(plan_, results, options_.anchors);
    if (name == "fig5" || name == "fig12") return information_curves(results);
    if (name == "fig13") return information_against_c2st(results, options_.anchors);
    if (name == "fig14") return partition_curves(results);
    if (name == "convergence") return convergence_curves(results);
    if (name.starts_with("table")) return benchmark_tables(plan_, results, options_.anchors);
    return loss_curves(plan_, results);
  }

  std::optional<Findings> importance() {
    ImportanceFigure figure = importance_figure(options_, folder_.path(), rest());
    if (figure.status != CommandStatus::done)
      cut_off(figure.status == CommandStatus::stopped, figure.message);
    return std::move(figure.findings);
  }

  void cut_off(bool is_stop, const std::string& count) {
    result_.command.status = is_stop ? CommandStatus::stopped : CommandStatus::budget_spent;
    result_.command.message = fmt::format("{}; {}; the same command goes on",
                                          is_stop ? "stopped on request" : "time limit reached", count);
  }

  void write(const Findings& findings) {
    for (const TableFile& table : findings.tables)
      write_file(folder_.file(options_.name + table.suffix + ".csv"), table.csv);
    TidyTable claims("_claims", {"claim", "state", "found", "published"});
    for (const Claim& one : findings.claims)
      claims.add({one.text, std::string(claim_state_name(one.state)), one.found, one.anchor});
    write_file(folder_.file(options_.name + "_claims.csv"), claims.csv());
    result_.claims = findings.claims;
    // An old figure must not stand beside new tables.
    std::error_code ignored;
    for (const char* ending : {".svg", ".png"}) fs::remove(folder_.file(options_.name + ending), ignored);
    if (findings.figure.panels.empty()) return;
    const std::string problem = draw_figure(findings.figure, folder_.path(), options_.name, run_);
    if (!problem.empty()) run_.log.warning(problem);
    result_.command.record.set("figure", problem.empty() ? options_.name + ".svg" : problem);
  }

  void finish() {
    CommandResult& command = result_.command;
    if (command.status == CommandStatus::done) command.message = fmt::format("{} is done", options_.name);
    std::vector<std::string> texts, states, found, published;
    for (const Claim& one : result_.claims) {
      texts.push_back(one.text);
      states.emplace_back(claim_state_name(one.state));
      found.push_back(one.found);
      published.push_back(one.anchor);
    }
    command.record.set("claims", RecordValue(texts));
    command.record.set("claims_state", RecordValue(states));
    command.record.set("claims_found", RecordValue(found));
    command.record.set("claims_published", RecordValue(published));
    command.record.set("status", command_status_name(command.status));
    command.record.set("message", command.message);
    command.record.set("seconds", watch_.seconds());
    write_file(folder_.file(options_.name + ".json"), record_to_json(with_valid_text(command.record)) + "\n");
  }

  const ExperimentOptions options_;
  const OutputOptions output_;
  const RunContext& run_;
  Stopwatch watch_;
  const ExperimentPlan plan_;
  const std::vector<std::string> owned_;
  OutputFolder folder_;
  ExperimentResult result_;
};

}  // namespace

const std::vector<ExperimentInfo>& experiments() { return kExperiments; }

std::string_view claim_state_name(ClaimState state) {
  switch (state) {
    case ClaimState::reproduced:
      return "reproduced";
    case ClaimState::not_reproduced:
      return "not reproduced";
    case ClaimState::not_tested:
      return "not tested";
  }
  return "";
}

void describe(OptionTable& table, ExperimentOptions& options) {
  table.add(
      "", "size", &options.size, {"quick", "medium", "full"},
      "quick: in a minute or so, to see that it works; medium: the corners of the published grid; full: all "
      "of it");
  table.add(
      "", "faithful", &options.faithful,
      "with the quirks of the published code: gradients that accumulate within an epoch, statistics of the "
      "first mini-batch, one component of gaussian_mixture per network, independent contrastive sets, 21 "
      "steps");
  table.add("", "tasks", &options.tasks, "tasks (docs/methods/tasks.md); without it those of the experiment");
  table.add("", "regimes", &options.regimes, "of fixed, prior, joint");
  table.add("", "architectures", &options.architectures, "small: 2 blocks of 50; large: 3 blocks of 128");
  table.add("", "gammas", &options.gammas, "odds of dependent to independent classes, for NRE-C");
  table.add("", "counts", &options.counts, "contrastive parameters: K + 1 for NRE-C, atoms for NRE-B");
  table.add("", "budgets", &options.budgets, "simulations per network, of the tables and of verdicts");
  table.add("", "seeds", &options.seeds, "one network per seed: 1-5 or 1,7");
  table.add("", "observations", &options.observations, "observations of every task, by number");
  table.add(
      "", "sbibm", &options.sbibm, {},
      "folder of the published benchmark (it holds tasks/); without it nrec makes its own observations");
  table.add("", "anchors", &options.anchors, {},
            "folder with tables of published numbers; without it claims that need them are not tested");
  table.add(
      "", "benchmark", &options.benchmark, {},
      "verdicts: folder of a benchmark (nrec benchmark --out) whose networks are checked; without it the "
      "experiment trains its own");
  table.add("", "parallel", &options.parallel, {.low = 0, .high = 1024},
            "networks side by side; 0: as many as threads and memory allow");
}

ExperimentResult run_experiment(const ExperimentOptions& options, const OutputOptions& output,
                                const RunContext& run) {
  return ExperimentRun(options, output, run).result();
}

}  // namespace nrec
