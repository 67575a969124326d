#include "nrec/commands/info.h"
#include "nrec/core/error.h"
#include "progress_sink.h"
#include "verbs.h"

namespace nrec::app {

namespace {

class InfoVerb final : public Verb {
 public:
  InfoVerb() {
    syntax_.name = "info";
    syntax_.summary = "what is in a file, or what this machine can do (--cpu)";
    syntax_.arguments = {
        {"FILE",
         "an estimator, checkpoint, record, problem file, table or archive of numbers, or the folder of a "
         "run or a campaign",
         false}};
    syntax_.options.add("", "cpu", &cpu_, "which kernels this machine runs, and why others are not chosen");
    syntax_.options.add("", "all", &all_, "every entry of the record of a run, not only what comes first");
    syntax_.options.add("", "json", &json_, "print the record as JSON on stdout, and nothing else there");
  }

  int run(const ParsedLine& line, const std::vector<std::string>& /*words*/) override {
    for (const OptionOverride& flag : line.flags) apply(flag, syntax_.options);
    if (cpu_ && all_) throw UsageError("--all belongs to the record of a run, not to --cpu");
    if (cpu_ == !line.arguments.empty()) throw UsageError("give a file or --cpu, one of the two");
    const InfoResult result = cpu_ ? cpu_info() : info(line.arguments[0], all_);
    if (json_) {
      print_json(result.record);
    } else {
      for (const std::string& text : result.lines) to_stdout(text + "\n");
    }
    return 0;
  }

 private:
  bool cpu_ = false;
  bool all_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_info_verb() { return std::make_unique<InfoVerb>(); }

}  // namespace nrec::app
