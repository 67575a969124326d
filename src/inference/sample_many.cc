#include "nrec/inference/sample_many.h"

#include <atomic>
#include <numeric>

#include "nrec/core/random.h"

namespace nrec {

namespace {

constexpr double kSecondsBetweenUpdates = 0.5;

/// Says how many observations are done; only from the thread that called, as sinks demand.
class Progress {
 public:
  Progress(std::size_t total, const RunContext& run) : total_(total), run_(run) {}

  void finished_one(bool is_calling_thread) {
    const std::size_t done = ++done_;
    if (!is_calling_thread || watch_.seconds() - last_update_ < kSecondsBetweenUpdates) return;
    last_update_ = watch_.seconds();
    const auto left = static_cast<double>(total_ - done);
    run_.log.progress({.stage = "sampling",
                       .done = static_cast<double>(done),
                       .total = static_cast<double>(total_),
                       .unit = "observation",
                       .seconds_left = last_update_ * left / static_cast<double>(done),
                       .detail = ""});
  }

 private:
  const std::size_t total_;
  const RunContext& run_;
  std::atomic<std::size_t> done_ = 0;
  Stopwatch watch_;
  double last_update_ = 0.0;
};

}  // namespace

std::uint64_t observation_seed(std::uint64_t seed, std::size_t index) {
  return index == 0 ? seed : RandomStream(seed, Stream::batch, index).bits64();
}

void over_observations(std::span<const std::size_t> indices, const RunContext& run,
                       const ObservationWork& work) {
  if (indices.size() == 1) {
    if (run.stop_requested() || run.time_limit <= 0.0) return;
    RunContext context = run;
    context.seed = observation_seed(run.seed, indices[0]);
    work(indices[0], context);
    return;
  }
  const Stopwatch watch;
  Progress progress(indices.size(), run);
  run.pool.run(indices.size(), [&](std::size_t task, int worker) {
    ThreadPool alone(1);
    const RunContext context = {.pool = alone,
                                .seed = observation_seed(run.seed, indices[task]),
                                .isa = run.isa,
                                .stop = run.stop,
                                .time_limit = run.time_limit - watch.seconds()};
    if (run.stop_requested() || context.time_limit <= 0.0) return;
    work(indices[task], context);
    progress.finished_one(worker == 0);
  });
}

PosteriorDraws not_begun(const Prior& prior, const RunContext& run) {
  PosteriorDraws draws;
  draws.names = prior.names();
  draws.theta = Matrix<double>(0, prior.dim());
  draws.method = "none";
  draws.status = run.stop_requested() ? SamplingStatus::stopped : SamplingStatus::budget_spent;
  draws.message = run.stop_requested() ? "stopped before this observation was begun"
                                       : "the time limit was over before this observation was begun";
  return draws;
}

std::vector<PosteriorDraws> sample_many(std::size_t num_observations, const PosteriorMaker& make,
                                        const SamplingOptions& options, const RunContext& run) {
  std::vector<PosteriorDraws> all(num_observations);
  std::vector<std::size_t> indices(num_observations);
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  over_observations(indices, run, [&](std::size_t i, const RunContext& context) {
    all[i] = sample(make(i, context), options, context);
  });
  for (std::size_t i = 0; i < num_observations; ++i) {
    if (all[i].method.empty()) all[i] = not_begun(make(i, run).prior(), run);
  }
  return all;
}

std::vector<PosteriorDraws> sample_many(const RatioEstimator& estimator, MatrixView<const double> x_o,
                                        const SamplingOptions& options, const RunContext& run) {
  const AmortisedPosterior posterior(estimator, run.pool);
  return sample_many(
      x_o.rows,
      [&](std::size_t i, const RunContext& context) { return posterior.at(x_o.row(i), context); }, options,
      run);
}

}  // namespace nrec
