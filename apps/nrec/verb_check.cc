#include <fmt/format.h>

#include "nrec/commands/check_command.h"
#include "nrec/core/error.h"
#include "verb_run.h"
#include "verbs.h"

namespace nrec::app {

namespace {

class CheckVerb final : public Verb {
 public:
  CheckVerb() {
    syntax_.name = "check";
    syntax_.summary = "estimator and held-out simulations -> can it be trusted";
    nrec::describe(syntax_.options, options_);
    nrec::describe(syntax_.options, output_, false);
    describe(syntax_.options, program_, true);
    nrec::describe(syntax_.options, options_.observation);
    nrec::describe(syntax_.options, run_);
    syntax_.notes =
        "Without --out the results go to <name of the model>_check in the current folder. "
        "docs/howto/check.md says what "
        "each check sees.";
  }

  int run(const ParsedLine& line, const std::vector<std::string>& words) override {
    for (const OptionOverride& flag : line.flags) apply(flag, syntax_.options);
    if (options_.model.empty())
      throw UsageError("--model is missing; name an estimator, --model estimator.safetensors");
    if (options_.simulations.empty() && options_.task.empty())
      throw UsageError(
          "--simulations or --task is missing; name simulations that the estimator was not trained on, "
          "--simulations "
          "held_out.npz, or its built-in task");
    run_ = with_environment(run_);
    output_.command_line = shell_text(words);
    output_.can_resume = false;
    VerbRun run(run_, program_.quiet);
    const CommandResult result = check_command(options_, output_, run.context());
    if (!program_.json) to_stdout(check_table(result.record));
    return finish({syntax_.name, result, program_, words, false, run.signal_number()}, run.sink());
  }

 private:
  CheckCommandOptions options_;
  RunOptions run_;
  OutputOptions output_;
  ProgramOptions program_;
};

}  // namespace

std::unique_ptr<Verb> make_check_verb() { return std::make_unique<CheckVerb>(); }

}  // namespace nrec::app
