// nrec simulate and nrec export: the verbs of campaigns.
#include <fmt/format.h>

#include "nrec/commands/simulate.h"
#include "nrec/core/error.h"
#include "progress_sink.h"
#include "verb_run.h"
#include "verbs.h"

namespace nrec::app {

namespace {

class SimulateVerb final : public Verb {
 public:
  SimulateVerb() {
    syntax_.name = "simulate";
    syntax_.summary = "run or go on with a simulation campaign: every row is stored, nothing is lost";
    syntax_.arguments = {
        {"problem.toml",
         "the problem file (docs/howto/simulators.md); may be left out when flags say everything", false}};
    nrec::describe(syntax_.options, options_);
    describe(syntax_.options, program_, false);
    nrec::describe(syntax_.options, defaults_.simulations);
    nrec::describe(syntax_.options, defaults_.run);
    syntax_.notes =
        "The same command goes on after any end, and adds rows when --num-simulations has grown. nrec infer "
        "and nrec "
        "train use the same rows.";
  }

  int run(const ParsedLine& line, const std::vector<std::string>& words) override {
    Problem problem = problem_of(line, syntax_);
    VerbRun run(problem.run, program_.quiet);
    OutputOptions output;
    output.command_line = shell_text(words);
    const CommandResult result = simulate(problem, options_, output, run.context());
    return finish({syntax_.name, result, program_, words, false, run.signal_number()}, run.sink());
  }

 private:
  Problem defaults_;  // what the help shows
  SimulateOptions options_;
  ProgramOptions program_;
};

class ExportVerb final : public Verb {
 public:
  ExportVerb() {
    syntax_.name = "export";
    syntax_.summary = "a campaign -> one .npz file with theta, x and status";
    syntax_.arguments = {{"CAMPAIGN", "the folder of the campaign", true}};
    nrec::describe(syntax_.options, options_);
    describe(syntax_.options, program_, false);
  }

  int run(const ParsedLine& line, const std::vector<std::string>& words) override {
    for (const OptionOverride& flag : line.flags) apply(flag, syntax_.options);
    options_.campaign = line.arguments[0];
    ThreadPool pool(1);
    ProgressSink sink(program_.quiet);
    const RunContext context = {.pool = pool, .log = sink};
    OutputOptions output;
    output.command_line = shell_text(words);
    const CommandResult result = export_campaign(options_, output, context);
    return finish({syntax_.name, result, program_, words, false, 0}, sink);
  }

 private:
  ExportOptions options_;
  ProgramOptions program_;
};

}  // namespace

std::unique_ptr<Verb> make_simulate_verb() { return std::make_unique<SimulateVerb>(); }

std::unique_ptr<Verb> make_export_verb() { return std::make_unique<ExportVerb>(); }

}  // namespace nrec::app
