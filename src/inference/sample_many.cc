#include "nrec/inference/sample_many.h"

#include <atomic>

#include "nrec/core/random.h"

namespace nrec {

namespace {

constexpr double kSecondsBetweenUpdates = 0.5;

PosteriorDraws not_begun(const Prior& prior, SamplingStatus status) {
  PosteriorDraws draws;
  draws.names = prior.names();
  draws.theta = Matrix<double>(0, prior.dim());
  draws.method = "none";
  draws.status = status;
  draws.message = status == SamplingStatus::stopped
                      ? "stopped before this observation was begun"
                      : "the time limit was over before this observation was begun";
  return draws;
}

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

std::vector<PosteriorDraws> sample_many(std::size_t num_observations, const PosteriorMaker& make,
                                        const SamplingOptions& options, const RunContext& run) {
  std::vector<PosteriorDraws> all(num_observations);
  if (num_observations == 1) {
    all[0] = sample(make(0, run), options, run);
    return all;
  }
  const Stopwatch watch;
  Progress progress(num_observations, run);
  run.pool.run(num_observations, [&](std::size_t i, int worker) {
    ThreadPool alone(1);
    const RunContext context = {.pool = alone,
                                .seed = observation_seed(run.seed, i),
                                .isa = run.isa,
                                .stop = run.stop,
                                .time_limit = run.time_limit - watch.seconds()};
    const Posterior posterior = make(i, context);
    if (run.stop_requested()) {
      all[i] = not_begun(posterior.prior(), SamplingStatus::stopped);
    } else if (context.time_limit <= 0.0) {
      all[i] = not_begun(posterior.prior(), SamplingStatus::budget_spent);
    } else {
      all[i] = sample(posterior, options, context);
    }
    progress.finished_one(worker == 0);
  });
  return all;
}

std::vector<PosteriorDraws> sample_many(const RatioEstimator& estimator, MatrixView<const double> x_o,
                                        const SamplingOptions& options, const RunContext& run) {
  return sample_many(
      x_o.rows,
      [&](std::size_t i, const RunContext& context) {
        return Posterior::from_estimator(estimator, x_o.row(i), context);
      },
      options, run);
}

}  // namespace nrec
