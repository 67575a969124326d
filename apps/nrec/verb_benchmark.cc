#include <fmt/format.h>

#include "nrec/commands/benchmark.h"
#include "nrec/io/json.h"
#include "nrec/kernels/dispatch.h"
#include "verb_run.h"
#include "verbs.h"

namespace nrec::app {

namespace {

class BenchmarkVerb final : public Verb {
 public:
  BenchmarkVerb() {
    syntax_.name = "benchmark";
    syntax_.summary =
        "tasks x algorithms x budgets x seeds -> a table of metrics; the same command goes on after any end";
    use_settings(options_);  // what the help shows
    OptionTable& table = syntax_.options;
    nrec::describe(table, output_, false);
    describe(table, program_, false);
    nrec::describe(table, options_);
    // No --seed: --seeds has one per network.
    describe_without_seed(table, run_);
    syntax_.notes =
        "With --json there is one JSON object per cell and line on stdout. A cell is one network, measured "
        "on all "
        "observations; docs/howto/benchmark.md.";
  }

  int run(const ParsedLine& line, const std::vector<std::string>& words) override {
    apply_benchmark_flags(line.flags, syntax_.options, options_);
    run_ = with_environment(run_);
    output_.command_line = shell_text(words);
    VerbRun run(run_, program_.quiet);
    const BenchmarkResult result = benchmark(options_, output_, run.context());
    if (program_.json) {
      for (const Record& cell : result.cells) fmt::print("{}\n", record_to_json(cell, -1));
    } else {
      to_stdout(result.table);
    }
    ProgramOptions shown = program_;
    shown.json = false;  // the cells have been printed
    return finish({syntax_.name, result.command, shown, words, false, run.signal_number()}, run.sink());
  }

 private:
  BenchmarkOptions options_;
  RunOptions run_;
  OutputOptions output_;
  ProgramOptions program_;
};

}  // namespace

std::unique_ptr<Verb> make_benchmark_verb() { return std::make_unique<BenchmarkVerb>(); }

}  // namespace nrec::app
