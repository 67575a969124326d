#pragma once

#include "nrec/commands/problem.h"
#include "nrec/core/run_context.h"
#include "progress_sink.h"
#include "signals.h"

namespace nrec::app {

/// Threads, messages and signals of one run of a verb. Signals are caught while it lives.
class VerbRun {
 public:
  VerbRun(const RunOptions& run, bool quiet)
      : pool_(run.threads),
        sink_(quiet),
        context_{.pool = pool_,
                 .seed = run.seed,
                 .isa = run.isa,
                 .log = sink_,
                 .stop = &signals_.stop(),
                 .time_limit = run.time_limit} {}
  VerbRun(const VerbRun&) = delete;
  VerbRun& operator=(const VerbRun&) = delete;

  const RunContext& context() const { return context_; }
  ProgressSink& sink() { return sink_; }
  /// 0 if none came.
  int signal_number() const { return signals_.stop().signal_number(); }

 private:
  ThreadPool pool_;
  ProgressSink sink_;
  SignalGuard signals_;
  RunContext context_;
};

}  // namespace nrec::app
