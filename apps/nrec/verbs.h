#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command_line.h"
#include "nrec/commands/infer.h"
#include "nrec/core/record.h"

namespace nrec::app {

/// Flags that only the program has: how it shows the result.
struct ProgramOptions {
  bool json = false;
  bool quiet = false;
  bool strict = false;
};

/// One verb of the program: its words, and what it does with them.
class Verb {
 public:
  virtual ~Verb() = default;
  const VerbSyntax& syntax() const { return syntax_; }
  /// Runs the verb; `words` are all words of the command line. Returns the exit code.
  /// Errors   Error: everything the command refuses
  virtual int run(const ParsedLine& line, const std::vector<std::string>& words) = 0;

 protected:
  VerbSyntax syntax_;
};

std::unique_ptr<Verb> make_infer_verb();
std::unique_ptr<Verb> make_train_verb();
std::unique_ptr<Verb> make_simulate_verb();
std::unique_ptr<Verb> make_export_verb();
std::unique_ptr<Verb> make_worker_verb();
std::unique_ptr<Verb> make_sample_verb();
std::unique_ptr<Verb> make_check_verb();
std::unique_ptr<Verb> make_compare_verb();
std::unique_ptr<Verb> make_benchmark_verb();
std::unique_ptr<Verb> make_experiment_verb();
std::unique_ptr<Verb> make_info_verb();

/// All verbs in the order of the help.
std::vector<std::unique_ptr<Verb>> make_verbs();

/// --json, --quiet and, if the verb checks its result, --strict.
void describe(OptionTable& table, ProgramOptions& options, bool can_be_strict);

/// Refuses --strict where nothing is checked. Errors: UsageError.
void require_check(const ProgramOptions& options, const CheckOptions& check);

/// `options` with the environment's choice of kernels where nothing else was chosen, and with the kernels of the precision that is asked for.
/// Errors: UsageError, as resolve_isa with a precision.
RunOptions with_environment(RunOptions options);

/// The problem of a line: its file with the flags on top. Flags without a section go to the verb's own options.
/// Errors   UsageError; those of read_problem
Problem problem_of(const ParsedLine& line, const VerbSyntax& syntax);

/// The words as a shell would take them back.
std::string shell_text(const std::vector<std::string>& words);

/// A result as JSON on stdout.
void print_json(const Record& record);

struct FinishedRun {
  std::string verb;
  const CommandResult& result;
  const ProgramOptions& options;
  const std::vector<std::string>& words;
  bool can_resume;
  int signal_number;
};
/// Result on stdout, the last line on stderr; returns the exit code.
int finish(const FinishedRun& run, class ProgressSink& sink);

}  // namespace nrec::app
