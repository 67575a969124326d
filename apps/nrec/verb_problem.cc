// nrec infer and nrec train: the verbs that read a problem file.
#include <fmt/format.h>

#include <algorithm>

#include "nrec/core/error.h"
#include "verb_run.h"
#include "verbs.h"

namespace nrec::app {

namespace {

using Command = CommandResult (*)(const Problem&, const OutputOptions&, const RunContext&);

class ProblemVerb final : public Verb {
 public:
  ProblemVerb(const char* name, const char* summary, Command command, bool to_the_end) : command_(command) {
    syntax_.name = name;
    syntax_.summary = summary;
    syntax_.arguments = {{"problem.toml",
                          "the problem file (docs/howto/infer.md); may be left out when flags say everything",
                          false}};
    nrec::describe(syntax_.options, output_, true);
    describe(syntax_.options, program_, to_the_end);
    nrec::describe(syntax_.options, defaults_.simulations);
    if (to_the_end) nrec::describe(syntax_.options, defaults_.observation);
    nrec::describe(syntax_.options, defaults_.network);
    describe_settings(syntax_.options, settings_);
    nrec::describe(syntax_.options, defaults_.training);
    if (to_the_end) nrec::describe(syntax_.options, defaults_.sampling);
    if (to_the_end) {
      nrec::describe(syntax_.options, defaults_.check);
      describe_num_predicted(syntax_.options, "check", defaults_.check.num_predicted);
    }
    nrec::describe(syntax_.options, defaults_.run);
    syntax_.notes =
        "Without --out the results go to <name of the problem file>_run in the current folder. Flags "
        "override the file. File names in the problem file start from its folder, those of flags from the "
        "current one.";
  }

  int run(const ParsedLine& line, const std::vector<std::string>& words) override {
    Problem problem = problem_of(line, syntax_);
    require_check(program_, problem.check);
    problem.run = with_environment(problem.run);
    output_.command_line = shell_text(words);
    VerbRun run(problem.run, program_.quiet);
    const CommandResult result = command_(problem, output_, run.context());
    return finish({syntax_.name, result, program_, words, true, run.signal_number()}, run.sink());
  }

 private:
  Command command_;
  Problem defaults_;  // what the help shows
  std::string settings_ = "default";
  OutputOptions output_;
  ProgramOptions program_;
};

}  // namespace

std::unique_ptr<Verb> make_infer_verb() {
  return std::make_unique<ProblemVerb>(
      "infer", "simulations and an observation -> posterior draws, checked: the whole way in one run", infer,
      true);
}

std::unique_ptr<Verb> make_train_verb() {
  return std::make_unique<ProblemVerb>("train", "simulations -> estimator, to be used by nrec sample",
                                       train_command, false);
}

}  // namespace nrec::app
