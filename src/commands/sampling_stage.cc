#include "commands/sampling_stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "commands/draws_files.h"
#include "commands/draws_netcdf.h"
#include "commands/posterior_facts.h"
#include "commands/results.h"
#include "commands/run_check.h"
#include "inference/evaluation_log.h"
#include "nrec/core/error.h"
#include "nrec/inference/sample_many.h"
#include "nrec/io/file.h"
#include "nrec/kernels/dispatch.h"

namespace nrec {

namespace {

constexpr double kSecondsBetweenSaves = 60.0;
constexpr std::string_view kWaiting = "none";       // method of not_begun()
constexpr std::size_t kObservationsOfAThread = 16;  // between two looks at the clock

/// One run of the stage.
class Sampling {
 public:
  Sampling(const SamplingStage& stage, const RunContext& context, CommandResult& result)
      : stage_(stage),
        context_(context),
        result_(result),
        conditioned_(condition(stage.estimator.prior, read_fixed_parameters(stage.sampling.fix))),
        is_batch_(stage.observation.rows == ObservationRows::batch),
        key_(key()),
        all_(stage.observation.num_posteriors()),
        maps_(all_.size()) {}

  void run() {
    const Stopwatch watch;
    if (stage_.resume) take_over();
    if (is_batch_) {
      draw_batch();
    } else {
      draw_one(watch);
    }
    describe_draws();
    if (result_.status == CommandStatus::stopped || stage_.check.level == "none") return;
    check();
  }

 private:
  /// What the draws are a function of.
  std::string key() const {
    const Matrix<double>& x = stage_.observation.x_o;
    const std::string_view bytes(reinterpret_cast<const char*>(x.values().data()),
                                 x.values().size() * sizeof(double));
    const char* rows = stage_.observation.rows == ObservationRows::one   ? ""
                       : stage_.observation.rows == ObservationRows::iid ? " iid"
                                                                         : " batch";
    return content_hash(fmt::format("{} {} {} {} {} {} {}{}", stage_.estimator_hash, content_hash(bytes),
                                    stage_.sampling.method, stage_.sampling.num_samples, context_.seed,
                                    resolve_isa(context_.isa), fmt::join(stage_.sampling.fix, " "), rows));
  }

  void take_over() {
    std::optional<EarlierDraws> earlier =
        earlier_draws(stage_.folder, key_, stage_.estimator.prior.names(), all_.size(), is_batch_);
    if (!earlier) {
      warn_of_other_draws();
      return;
    }
    all_ = std::move(earlier->draws);
    maps_ = std::move(earlier->maps);
    context_.log.info(is_batch_ ? fmt::format("taking over the draws of {} observations of the earlier run",
                                              all_.size() - missing().size())
                                : "taking over the draws of the earlier run");
  }

  /// --resume takes nothing over that other settings have made; whoever mistyped one should know.
  void warn_of_other_draws() const {
    const std::optional<Record> record = earlier_record(stage_.folder);
    const RecordValue* stored = record ? record->find("sampling.key") : nullptr;
    const auto* other = stored ? std::get_if<std::string>(stored) : nullptr;
    if (other && *other != key_)
      context_.log.warning(stage_.folder.path().string() +
                           ": the draws there were made with other settings, another observation or another "
                           "estimator; they are replaced");
  }

  std::vector<std::size_t> missing() const {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].method.empty()) indices.push_back(i);
    }
    return indices;
  }

  Posterior posterior(std::size_t i, const RunContext& context) const {
    const MatrixView<const double> x = stage_.observation.x_o.view();
    return Posterior::from_iid_rows(stage_.estimator, is_batch_ ? x.middle_rows(i, 1) : x, context)
        .conditioned(conditioned_);
  }

  /// From here on the record in the folder belongs to no draws: whatever ends the run, earlier ones are not taken for these.
  void disown_files() {
    result_.record.set("status", "running");
    write_record(result_.record, stage_.folder);
  }

  void save() {
    write_draws(all_, is_batch_, stage_.folder);
    if (std::ranges::any_of(all_, [](const PosteriorDraws& draws) { return draws.size() > 0; }))
      write_netcdf(stage_.folder.file(files::kDrawsNetcdf),
                   draws_groups(all_, stage_.estimator.prior, stage_.observation, result_.record));
    result_.record.set("sampling.key", key_);
    if (is_batch_) {
      add_observations(result_.record, all_, maps_);
    } else {
      add_sampling(result_.record, all_[0]);
    }
    write_record(result_.record, stage_.folder);
  }

  /// Draws through a log of the network's answers, which stays behind when a signal or a budget ends them.
  void draw_logged(const Posterior& target) {
    const auto log = std::make_shared<EvaluationLog>(stage_.folder.file(files::kEvaluations), key_,
                                                     stage_.resume, context_.log);
    all_[0] = draws_with_facts(recorded(target, log), conditioned_, stage_.sampling, context_);
    if (log->num_replayed() > 0)
      context_.log.info(
          fmt::format("went on with sampling after {} evaluations of the earlier run", log->num_replayed()));
    if (is_final(all_[0].status)) log->remove();
  }

  void draw_one(const Stopwatch& watch) {
    const Posterior target = posterior(0, context_);
    if (all_[0].method.empty()) {
      context_.log.info(fmt::format("sampling {} draws", stage_.sampling.num_samples));
      disown_files();
      draw_logged(target);
      save();
    } else {
      add_sampling(result_.record, all_[0]);
      result_.record.set("sampling.key", key_);
    }
    result_.marginals = summarise(all_[0]);
    add_marginals(result_.record, result_.marginals);
    write_record(result_.record, stage_.folder);
    if (!stage_.sampling.map || all_[0].status == SamplingStatus::stopped) return;
    if (maps_[0].entries().empty()) {
      RunContext rest = context_;
      rest.time_limit = std::max(0.0, context_.time_limit - watch.seconds());
      add_map(maps_[0], target, conditioned_, all_[0], rest);
      if (context_.stop_requested()) {  // half a search is none
        result_.status = CommandStatus::stopped;
        result_.message = "stopped on request while looking for the mode; the draws are complete";
        return;
      }
    }
    result_.record.merge("", maps_[0]);
    write_record(result_.record, stage_.folder);
  }

  void draw_observation(std::size_t i, const RunContext& context) {
    const Stopwatch watch;
    const Posterior target = posterior(i, context);
    PosteriorDraws draws = draws_with_facts(target, conditioned_, stage_.sampling, context);
    if (stage_.sampling.map && draws.status != SamplingStatus::stopped) {
      RunContext rest = context;
      rest.time_limit = std::max(0.0, context.time_limit - watch.seconds());
      add_map(maps_[i], target, conditioned_, draws, rest);
      if (context.stop_requested()) {  // the search may be cut short: the observation waits for --resume
        maps_[i] = Record();
        return;
      }
    }
    all_[i] = std::move(draws);
  }

  /// Side by side, some at a time, so that what is done can be saved now and then.
  void draw_batch() {
    const std::vector<std::size_t> todo = missing();
    if (todo.empty()) {
      save();
      return;
    }
    context_.log.info(fmt::format("sampling {} draws for each of {} observations",
                                  stage_.sampling.num_samples, todo.size()));
    disown_files();
    for (const std::size_t i : todo) all_[i] = waiting();
    const Stopwatch watch;
    double saved = 0.0;
    const std::size_t step = kObservationsOfAThread * static_cast<std::size_t>(context_.pool.num_threads());
    for (std::size_t first = 0; first < todo.size() && !context_.stop_requested(); first += step) {
      // Silent: its own progress would be that of this part.
      const RunContext rest = {.pool = context_.pool,
                               .seed = context_.seed,
                               .isa = context_.isa,
                               .stop = context_.stop,
                               .time_limit = std::max(0.0, context_.time_limit - watch.seconds())};
      over_observations(std::span(todo).subspan(first, std::min(step, todo.size() - first)), rest,
                        [&](std::size_t i, const RunContext& context) { draw_observation(i, context); });
      report(first + step, todo.size(), watch.seconds());
      if (watch.seconds() - saved > kSecondsBetweenSaves) {
        save();
        saved = watch.seconds();
      }
    }
    for (const std::size_t i : todo) {
      if (all_[i].method == kWaiting) all_[i] = waiting();  // with the reason as it is now
    }
    save();
  }

  /// Before its turn an observation is as if the budget had been spent before it.
  PosteriorDraws waiting() const {
    PosteriorDraws draws = not_begun(conditioned_.prior, context_);
    return with_fixed_columns(std::move(draws), conditioned_);
  }

  void report(std::size_t done, std::size_t total, double seconds) const {
    const double n = static_cast<double>(std::min(done, total));
    context_.log.progress({.stage = "sampling",
                           .done = n,
                           .total = static_cast<double>(total),
                           .unit = "observation",
                           .seconds_left = seconds * (static_cast<double>(total) - n) / n,
                           .detail = ""});
  }

  /// Status and message of the result. Chains that disagree are a finished run with a bad verdict; all else that is not
  /// complete is a partial result.
  void describe_draws() {
    std::size_t partial = 0, stopped = 0, without = 0, disagreeing = 0;
    const PosteriorDraws* worst = nullptr;
    for (const PosteriorDraws& draws : all_) {
      if (draws.status == SamplingStatus::complete) continue;
      const bool disagrees = draws.status == SamplingStatus::chains_disagree;
      if (!worst || (partial == 0 && !disagrees)) worst = &draws;  // the first partial one, if any
      disagreeing += disagrees;
      partial += !disagrees;
      stopped += draws.status == SamplingStatus::stopped;
      without += draws.status == SamplingStatus::no_support;
    }
    if (is_batch_) {
      const std::size_t complete = all_.size() - partial - disagreeing;
      result_.record.set("observations.complete", complete);
      result_.batch = all_;
    }
    if (disagreeing > 0)
      context_.log.warning(is_batch_ ? fmt::format("the chains of {} observations disagree", disagreeing)
                                     : worst->message);
    if (partial == 0) return;
    result_.status = stopped > 0              ? CommandStatus::stopped
                     : without == all_.size() ? CommandStatus::failed
                                              : CommandStatus::budget_spent;
    result_.message = is_batch_
                          ? fmt::format("{} of {} observations have all their draws; {}",
                                        all_.size() - partial - disagreeing, all_.size(), worst->message)
                          : worst->message;
  }

  void check() {
    context_.log.info("checking");
    RunContext rest = context_;
    rest.time_limit = std::max(0.0, context_.time_limit - watch_.seconds());
    result_.check = check_of_run(stage_, all_, rest);
    if (context_.stop_requested()) {  // half a check is none
      result_.check.reset();
      result_.status = CommandStatus::stopped;
      result_.message = "stopped on request while checking; the draws are complete";
      return;
    }
    add_check(result_.record, *result_.check);
    const RecordValue* complete = result_.check->record.find("complete");
    if (complete && !std::get<bool>(*complete) && result_.status == CommandStatus::done) {
      result_.status = CommandStatus::budget_spent;
      result_.message = "the draws are complete, but the time limit was over while checking";
    }
  }

  const Stopwatch watch_;
  const SamplingStage& stage_;
  const RunContext& context_;
  CommandResult& result_;
  const ConditionedPrior conditioned_;
  const bool is_batch_;
  const std::string key_;
  std::vector<PosteriorDraws> all_;
  std::vector<Record> maps_;
};

}  // namespace

void SamplingStage::run(const RunContext& context, CommandResult& result) const {
  Sampling(*this, context, result).run();
}

}  // namespace nrec
