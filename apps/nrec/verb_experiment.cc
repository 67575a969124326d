#include <fmt/format.h>

#include "nrec/core/error.h"
#include "nrec/experiments/experiment.h"
#include "verb_run.h"
#include "verbs.h"

namespace nrec::app {

namespace {

/// One line per experiment.
void print_list() {
  for (const ExperimentInfo& one : experiments()) fmt::print("{:<12} {}\n", one.name, one.summary);
}

/// One line per claim.
void print_claims(const std::vector<Claim>& claims) {
  for (const Claim& one : claims) {
    const std::string published = one.anchor.empty() ? "" : "; published: " + one.anchor;
    to_stdout(fmt::format("{:<15} {}: {}{}\n", claim_state_name(one.state), one.text, one.found, published));
  }
}

class ExperimentVerb final : public Verb {
 public:
  ExperimentVerb() {
    syntax_.name = "experiment";
    syntax_.summary = "a figure or table of the method's paper -> tables, a figure, a line per claim";
    syntax_.arguments = {{"name", "of the experiment, or list: says what there is"}};
    OptionTable& table = syntax_.options;
    nrec::describe(table, output_, false);
    describe(table, program_, false);
    table.add("", "quick", &quick_, "the same as --size quick");
    table.add("", "full", &full_, "the same as --size full");
    nrec::describe(table, options_);
    use_published_settings(network_, training_);  // what figures and tables start from
    nrec::describe(table, network_);
    nrec::describe(table, training_);
    nrec::describe(table, sampling_);
    describe_without_seed(table, run_);  // --seeds has one per network
    syntax_.notes =
        "Flags of [network], [training] and [sampling] replace what the experiment sets, where it does not "
        "vary "
        "it. The same command in the same folder goes on; docs/howto/experiment.md.";
  }

  int run(const ParsedLine& line, const std::vector<std::string>& words) override {
    if (line.arguments[0] == "list") {
      print_list();
      return 0;
    }
    options_.name = line.arguments[0];
    for (const OptionOverride& flag : line.flags) {
      apply(flag, syntax_.options);
      const bool is_setting =
          flag.section == "network" || flag.section == "training" || flag.section == "sampling";
      if (is_setting) options_.settings.push_back(flag);
      is_size_given_ = is_size_given_ || flag.name == "size";
    }
    take_size();
    run_ = with_environment(run_);
    output_.command_line = shell_text(words);
    VerbRun run(run_, program_.quiet);
    const ExperimentResult result = run_experiment(options_, output_, run.context());
    if (!program_.json) print_claims(result.claims);
    return finish({syntax_.name, result.command, program_, words, false, run.signal_number()}, run.sink());
  }

 private:
  void take_size() {
    if (quick_ + full_ + is_size_given_ > 1) throw UsageError("--quick, --full and --size: give one of them");
    if (quick_) options_.size = "quick";
    if (full_) options_.size = "full";
  }

  ExperimentOptions options_;
  bool quick_ = false, full_ = false, is_size_given_ = false;
  NetworkOptions network_;  // for the help, and to check what is typed
  TrainingOptions training_;
  SamplingOptions sampling_;
  RunOptions run_;
  OutputOptions output_;
  ProgramOptions program_;
};

}  // namespace

std::unique_ptr<Verb> make_experiment_verb() { return std::make_unique<ExperimentVerb>(); }

}  // namespace nrec::app
