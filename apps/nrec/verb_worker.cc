// nrec worker: what nrec starts for simulators in shared libraries; not for people, and not in the help.
#include "nrec/core/error.h"
#include "nrec/simulation/library_worker.h"
#include "verbs.h"

namespace nrec::app {

namespace {

class WorkerVerb final : public Verb {
 public:
  WorkerVerb() {
    syntax_.name = "worker";
    syntax_.summary = "answers rows by a shared library; started by nrec itself";
    syntax_.options.add("", "library", &library_, {}, "the shared library");
    syntax_.is_hidden = true;
  }

  int run(const ParsedLine& line, const std::vector<std::string>& /*words*/) override {
    for (const OptionOverride& flag : line.flags) apply(flag, syntax_.options);
    if (library_.empty()) throw UsageError("--library is missing; nrec starts this verb itself");
    return run_library_worker(library_);
  }

 private:
  std::string library_;
};

}  // namespace

std::unique_ptr<Verb> make_worker_verb() { return std::make_unique<WorkerVerb>(); }

}  // namespace nrec::app
