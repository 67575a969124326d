#include <fmt/format.h>

#include "nrec/commands/sample_command.h"
#include "nrec/core/error.h"
#include "verb_run.h"
#include "verbs.h"

namespace nrec::app {

namespace {

class SampleVerb final : public Verb {
 public:
  SampleVerb() {
    syntax_.name = "sample";
    syntax_.summary = "estimator and observation -> posterior draws";
    OptionTable& table = syntax_.options;
    table.add("", "model", &options_.model, {}, "the estimator, or the folder of the run that made it");
    nrec::describe(table, output_, true);
    describe(table, program_, true);
    nrec::describe(table, options_.observation);
    nrec::describe(table, options_.sampling);
    nrec::describe(table, options_.check);
    nrec::describe(table, run_);
    syntax_.notes =
        "Without --out the results go to <name of the observation file>_draws in the current folder.";
  }

  int run(const ParsedLine& line, const std::vector<std::string>& words) override {
    for (const OptionOverride& flag : line.flags) apply(flag, syntax_.options);
    if (options_.model.empty())
      throw UsageError("--model is missing; name an estimator, --model estimator.safetensors");
    if (options_.observation.file.empty())
      throw UsageError("--observation is missing; name the observed data, --observation x_o.npy");
    require_check(program_, options_.check);
    run_ = with_environment(run_);
    output_.command_line = shell_text(words);
    VerbRun run(run_, program_.quiet);
    const CommandResult result = sample_command(options_, output_, run.context());
    return finish({syntax_.name, result, program_, words, true, run.signal_number()}, run.sink());
  }

 private:
  SampleCommandOptions options_;
  RunOptions run_;
  OutputOptions output_;
  ProgramOptions program_;
};

}  // namespace

std::unique_ptr<Verb> make_sample_verb() { return std::make_unique<SampleVerb>(); }

}  // namespace nrec::app
