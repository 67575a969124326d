// What 10,000 independent draws cost by rejection and by importance resampling, what slice sampling costs and gives, and
// what `auto` chooses, on the benchmark tasks with their exact likelihoods; one CSV line per task and observation.
// usage: sampler_choice <seeds> <prior draws> <1: run slice, too> task ...
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "inference/importance_sampler.h"
#include "inference/prior_candidates.h"
#include "nrec/tasks/task.h"

namespace {

using namespace nrec;

constexpr std::size_t kPilot = 470000;  // candidates of the pilot of `auto`
constexpr double kFar = 1e12;
constexpr double kBoundMargin = 1.2;  // of rejection

/// The exact posterior of one simulated observation, up to a factor.
struct Problem {
  std::unique_ptr<Task> task;
  std::vector<double> x_o;

  Problem(const char* name, std::uint64_t seed) : task(make_task(name)), x_o(task->dim_x()) {
    Matrix<double> theta(1, task->dim_theta());
    task->prior().sample(seed, Stream::observation, 0, theta);
    RandomStream random(seed, Stream::observation, 1);
    task->simulator().simulate(theta.row(0), random, x_o);
  }

  Posterior posterior(ThreadPool& pool) const {
    return Posterior::from_log_ratio(
        task->prior(), [this, &pool](MatrixView<const double> theta, std::span<double> log_ratio) {
          constexpr std::size_t kRows = 1024;
          pool.run((theta.rows + kRows - 1) / kRows, [&](std::size_t block, int) {
            const std::size_t first = block * kRows, rows = std::min(kRows, theta.rows - first);
            task->log_likelihood(theta.middle_rows(first, rows), x_o, log_ratio.subspan(first, rows));
          });
        });
  }
};

/// Candidates that importance resampling needs, as far as `log_ratios` can tell, and their k-hat.
std::pair<double, double> importance_needs(std::span<const double> log_ratios) {
  const WeightQuality quality = judge_weights(log_ratios);
  const double size = static_cast<double>(log_ratios.size());
  return {size * Resampling(log_ratios, quality, 10000).growth_needed(kFar / size), quality.k_hat};
}

void measure(const char* name, std::uint64_t seed, std::size_t num_draws, bool with_slice, ThreadPool& pool) {
  const Problem problem(name, seed);
  const Posterior posterior = problem.posterior(pool);
  const RunContext run{.pool = pool, .seed = seed};
  std::vector<double> log_ratio(num_draws);
  for (std::size_t first = 0; first < num_draws; first += kCandidateBatch) {
    Matrix<double> theta(std::min(kCandidateBatch, num_draws - first), posterior.prior().dim());
    draw_candidates(posterior.prior(), run, Stream::sampler, first, theta);
    posterior.log_ratio(theta, std::span(log_ratio).subspan(first, theta.rows()));
  }
  const double top = *std::max_element(log_ratio.begin(), log_ratio.end());
  double sum = 0;
  for (const double value : log_ratio) sum += std::exp(value - top);
  const double rejection = 10000 * kBoundMargin * static_cast<double>(num_draws) / sum;
  const auto [pilot, pilot_k_hat] = importance_needs(std::span(log_ratio).first(std::min(kPilot, num_draws)));
  const auto [all, all_k_hat] = importance_needs(log_ratio);
  std::printf("%s,%zu,%d,%.3g,%.3g,%.2f,%.3g,%.2f", name, posterior.prior().dim(), static_cast<int>(seed),
              rejection, pilot, pilot_k_hat, all, all_k_hat);
  const auto worst = [](const PosteriorDraws& draws, const char* statistic, bool largest) {
    const auto values = std::get<std::vector<double>>(*draws.statistics.find(statistic));
    return largest ? *std::max_element(values.begin(), values.end())
                   : *std::min_element(values.begin(), values.end());
  };
  if (with_slice) {
    const PosteriorDraws slice = sample_by_slice(posterior, {}, run);
    const PosteriorDraws chosen = sample(posterior, {}, run);
    std::printf(",%.3g,%.3f,%.0f,%s,%.3g\n", std::get<double>(*slice.statistics.find("evaluations")),
                worst(slice, "r_hat", true), worst(slice, "ess_bulk", false), chosen.method.c_str(),
                std::get<double>(*chosen.statistics.find("evaluations")));
  } else {
    std::printf(",,,,,\n");
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: sampler_choice <seeds> <prior draws> <1: run slice, too> task ...\n");
    return 2;
  }
  ThreadPool pool(2);
  std::printf(
      "task,dim,seed,rejection_evaluations,importance_by_pilot,pilot_k_hat,importance_evaluations,k_hat,"
      "slice_evaluations,slice_r_hat,slice_least_ess,auto,auto_evaluations\n");
  for (int i = 4; i < argc; ++i) {
    for (int seed = 1; seed <= std::atoi(argv[1]); ++seed)
      measure(argv[i], static_cast<std::uint64_t>(seed), static_cast<std::size_t>(std::atof(argv[2])),
              std::atoi(argv[3]) == 1, pool);
  }
}
