#include "verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "exit_code.h"
#include "nrec/commands/posterior_table.h"
#include "nrec/core/environment.h"
#include "nrec/core/error.h"
#include "nrec/io/json.h"
#include "nrec/kernels/dispatch.h"
#include "progress_sink.h"

namespace nrec::app {

std::vector<std::unique_ptr<Verb>> make_verbs() {
  std::vector<std::unique_ptr<Verb>> verbs;
  verbs.push_back(make_infer_verb());
  verbs.push_back(make_simulate_verb());
  verbs.push_back(make_train_verb());
  verbs.push_back(make_sample_verb());
  verbs.push_back(make_check_verb());
  verbs.push_back(make_compare_verb());
  verbs.push_back(make_benchmark_verb());
  verbs.push_back(make_experiment_verb());
  verbs.push_back(make_export_verb());
  verbs.push_back(make_info_verb());
  verbs.push_back(make_worker_verb());
  return verbs;
}

void describe(OptionTable& table, ProgramOptions& options, bool can_be_strict) {
  table.add("", "json", &options.json, "print the record as JSON on stdout, and nothing else there");
  table.add("", "quiet", &options.quiet, "no progress and no messages but warnings and errors");
  if (can_be_strict)
    table.add("", "strict", &options.strict, "exit with code 4 when the verdict is \"not trusted\"");
}

void require_check(const ProgramOptions& options, const CheckOptions& check) {
  if (options.strict && check.level == "none")
    throw UsageError(
        "--strict asks for a verdict, but check.level = \"none\" gives none; leave one of them out");
}

RunOptions with_environment(RunOptions options) {
  const std::string isa = environment_isa();
  if (options.isa == "auto" && !isa.empty()) {
    OptionTable table;
    nrec::describe(table, options);
    apply({"run", "isa", {isa}, "environment variable NREC_ISA"}, table);
  }
  if (options.precision != "auto") options.isa = resolve_isa(options.isa, options.precision);
  return options;
}

Problem problem_of(const ParsedLine& line, const VerbSyntax& syntax) {
  std::vector<OptionOverride> overrides;
  for (const OptionOverride& flag : line.flags) {
    if (flag.section.empty()) {
      apply(flag, syntax.options);
    } else {
      overrides.push_back(flag);
    }
  }
  if (line.arguments.empty() && overrides.empty())
    throw UsageError(
        fmt::format("problem.toml is missing; nrec {} --help shows how it is called", syntax.name));
  return read_problem(line.arguments.empty() ? std::string() : line.arguments[0], overrides);
}

std::string shell_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool is_plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("-_./=,:+@%").find(c) != std::string_view::npos;
    });
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += (text.empty() ? "" : " ") + (is_plain ? word : quoted + "'");
  }
  return text;
}

void print_json(const Record& record) { fmt::print("{}\n", record_to_json(record)); }

namespace {

/// The command that goes on where this one stopped.
std::string resume_command(const std::vector<std::string>& words) {
  std::vector<std::string> again;
  for (const std::string& word : words) {
    if (word != "--overwrite" && word != "--resume") again.push_back(word);
  }
  again.emplace_back("--resume");
  return shell_text(again);
}

/// The first posteriors of a batch, and where the others are.
void print_batch(const std::vector<PosteriorDraws>& batch) {
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < std::min(kShown, batch.size()); ++i) {
    fmt::print("{}observation {}: {}\n", i > 0 ? "\n" : "", i, sampling_status_name(batch[i].status));
    if (batch[i].size() > 0) to_stdout(posterior_table(summarise(batch[i])));
  }
  if (batch.size() > kShown)
    fmt::print("\n... and {} more: observations.* in record.json, draws in draws.npz\n",
               batch.size() - kShown);
}

void print_tables(const CommandResult& result) {
  if (!result.marginals.empty()) to_stdout(posterior_table(result.marginals));
  if (!result.batch.empty()) print_batch(result.batch);
  if (!result.check) return;
  SaidVerdict said{std::string(verdict_name(result.check->verdict)), result.check->sentence, {}};
  for (const CheckItem& item : result.check->items)
    said.items.push_back({item.name, std::string(verdict_name(item.verdict)), item.sentence});
  to_stdout("\n" + verdict_text(said));
}

}  // namespace

int finish(const FinishedRun& run, ProgressSink& sink) {
  const CommandResult& result = run.result;
  const int code = exit_code_of(result, run.options.strict, run.signal_number);
  if (run.options.json) {
    print_json(result.record);
  } else if (result.status != CommandStatus::stopped || !result.marginals.empty() || !result.batch.empty()) {
    print_tables(result);
  }
  std::fflush(stdout);
  if (code == kDone && run.options.quiet) return code;
  std::string text = fmt::format("nrec {}: {}", run.verb, command_status_name(result.status));
  if (!result.message.empty()) text += ": " + result.message;
  if (result.check) text += fmt::format("; verdict: {}", verdict_name(result.check->verdict));
  if (code == kChecksFailed) text += "; the checks failed (--strict)";
  if (run.can_resume && (code == kBudgetSpent || result.status == CommandStatus::stopped))
    text += "; to go on: " + resume_command(run.words) +
            // Evaluations are counted from the start; seconds are those of one call.
            (code == kBudgetSpent && result.record.find("sampling.key")
                 ? ", with a larger --max-evaluations where these are spent"
                 : "");
  text += fmt::format("; {} in {}", code == kDone || code == kChecksFailed ? "results" : "what there is lies",
                      result.folder.string());
  sink.line(text);
  return code;
}

}  // namespace nrec::app
