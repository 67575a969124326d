// Samplers on trained networks: the posterior that the network means, crescents and needles included, is known by quadrature of the
// network's own density on a fine grid.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "nrec/inference/posterior.h"
#include "nrec/inference/sample.h"
#include "nrec/inference/summarise.h"
#include "nrec/simulation/simulator.h"
#include "nrec/tasks/task.h"
#include "nrec/training/train.h"

namespace nrec {
namespace {

/// Moments of a posterior over a box [low, high]^D, by the midpoint rule.
struct Quadrature {
  double low = 0.0, high = 0.0;
  std::vector<double> mean, sd;  // [D]
  double first_above = 0.0;      // mass with theta[0] > `cut`
};

/// `cells` midpoints along each coordinate of [low, high]^D, D = 1 or 2.
Quadrature quadrature(const Posterior& posterior, double low, double high, std::size_t cells, double cut) {
  const std::size_t dim = posterior.prior().dim();
  const std::size_t rows = dim == 1 ? 1 : cells;
  const double width = (high - low) / static_cast<double>(cells);
  Matrix<double> theta(cells, dim);
  std::vector<std::vector<double>> log_density(rows, std::vector<double>(cells));
  double top = -1e300;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t i = 0; i < cells; ++i) {
      theta(i, 0) = low + (static_cast<double>(i) + 0.5) * width;
      if (dim == 2) theta(i, 1) = low + (static_cast<double>(r) + 0.5) * width;
    }
    posterior.log_density(theta, log_density[r]);
    top = std::max(top, *std::ranges::max_element(log_density[r]));
  }
  double total = 0.0, above = 0.0;
  std::vector<double> sum(dim), square(dim);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t i = 0; i < cells; ++i) {
      const double weight = std::exp(log_density[r][i] - top);
      const double at[] = {low + (static_cast<double>(i) + 0.5) * width,
                           low + (static_cast<double>(r) + 0.5) * width};
      total += weight;
      above += at[0] > cut ? weight : 0.0;
      for (std::size_t d = 0; d < dim; ++d) {
        sum[d] += weight * at[d];
        square[d] += weight * at[d] * at[d];
      }
    }
  }
  Quadrature result{.low = low, .high = high};
  for (std::size_t d = 0; d < dim; ++d) {
    result.mean.push_back(sum[d] / total);
    result.sd.push_back(std::sqrt(square[d] / total - result.mean[d] * result.mean[d]));
  }
  result.first_above = above / total;
  return result;
}

class TrainedPosterior : public ::testing::Test {
 protected:
  RatioEstimator trained(const Prior& prior, const SimulationSet& simulations, int epochs) {
    TrainingOptions options;
    options.num_classes = 9;
    options.training_batch_size = 128;
    options.learning_rate = 2e-3;
    options.learning_rate_schedule = "cosine";
    options.max_num_epochs = epochs;
    options.stop_after_epochs = 0;
    const NetworkOptions network{.hidden_features = 32, .num_blocks = 1, .norm = "layer"};
    return *train(prior, simulations, network, options, run_).estimator;
  }
  /// Takes draws outside the box away: a network may leave a ten thousandth of the mass anywhere, which moments of a needle would show more than
  /// its width.
  static std::size_t keep_box(PosteriorDraws& draws, const Quadrature& box) {
    std::vector<std::size_t> inside;
    for (std::size_t s = 0; s < draws.size(); ++s) {
      if (std::ranges::all_of(draws.theta.row(s), [&](double v) { return v >= box.low && v <= box.high; }))
        inside.push_back(s);
    }
    Matrix<double> kept(inside.size(), draws.theta.cols());
    for (std::size_t i = 0; i < inside.size(); ++i)
      std::ranges::copy(draws.theta.row(inside[i]), kept.row(i).begin());
    const std::size_t outside = draws.size() - inside.size();
    draws.theta = std::move(kept);
    return outside;
  }

  /// Every sampler against the moments; `share` of draws above the cut within 4 standard errors.
  void expect_right(const Posterior& posterior, const Quadrature& truth, double cut,
                    const std::vector<std::string>& methods) {
    for (const std::string& method : methods) {
      SamplingOptions options;
      options.method = method;
      options.num_samples = 4000;
      PosteriorDraws draws = sample(posterior, options, run_);
      ASSERT_EQ(draws.status, SamplingStatus::complete) << method << ": " << draws.message;
      EXPECT_LE(keep_box(draws, truth), draws.size() / 500) << method;
      double above = 0.0;
      for (std::size_t s = 0; s < draws.size(); ++s) above += draws.theta(s, 0) > cut;
      above /= static_cast<double>(draws.size());
      const std::vector<MarginalSummary> rows = summarise(draws);
      const double share_error = std::sqrt(truth.first_above * (1.0 - truth.first_above) / rows[0].ess);
      EXPECT_NEAR(above, truth.first_above, 4.0 * share_error + 1e-9) << method;
      for (std::size_t d = 0; d < rows.size(); ++d) {
        EXPECT_NEAR(rows[d].mean, truth.mean[d], 4.0 * truth.sd[d] / std::sqrt(rows[d].ess))
            << method << " " << d;
        EXPECT_NEAR(rows[d].sd, truth.sd[d], std::max(4.0 * rows[d].mcse_sd, 0.02 * truth.sd[d]))
            << method << " " << d;
      }
    }
  }

  ThreadPool pool_{2};
  RunContext run_{.pool = pool_, .seed = 3};
};

TEST_F(TrainedPosterior, CrescentsHaveTheWeightsThatTheNetworkGivesThem) {
  const std::unique_ptr<Task> task = make_task("two_moons");
  const RatioEstimator estimator =
      trained(task->prior(), simulate_from_prior(task->prior(), task->simulator(), 8000, 1, pool_), 25);
  for (const std::vector<double>& x_o : {std::vector<double>{0.0, 0.0}, {0.2, -0.5}}) {
    const Posterior posterior = Posterior::from_estimator(estimator, x_o, run_);
    const double cut = quadrature(posterior, -1.0, 1.0, 400, 0.0).mean[0];  // between the crescents
    const Quadrature truth = quadrature(posterior, -1.0, 1.0, 1000, cut);
    ASSERT_GT(truth.first_above, 0.1);
    ASSERT_LT(truth.first_above, 0.9);
    expect_right(posterior, truth, cut, {"rejection", "importance", "slice", "nuts", "auto"});
  }
}

TEST_F(TrainedPosterior, ANeedleHasTheWidthThatTheNetworkGivesIt) {
  // Noise of 1e-4 of the prior's width: the network is as sharp as it can be, and its density says how sharp.
  const Prior prior = Prior::from_terms({{{"t"}, "uniform", {{"low", {0}}, {"high", {1}}}, "auto"}});
  const FunctionSimulator needle(
      "needle", 1, 1, [](std::span<const double> theta, RandomStream& random, std::span<double> x) {
        x[0] = theta[0] + 1e-4 * random.normal();
      });
  const RatioEstimator estimator = trained(prior, simulate_from_prior(prior, needle, 8000, 1, pool_), 25);
  const std::vector<double> x_o = {0.37};
  // Rows add their log ratios: narrower still.
  for (const std::size_t rows : {1u, 8u}) {
    Matrix<double> many(rows, 1);
    std::fill(many.values().begin(), many.values().end(), x_o[0]);
    const Posterior posterior = Posterior::from_iid_rows(estimator, many, run_);
    const std::size_t cells = 20000;
    const Quadrature coarse = quadrature(posterior, 0.0, 1.0, cells, 0.5);
    const double half = std::max(30.0 * coarse.sd[0], 5.0 / static_cast<double>(cells));
    const Quadrature truth = quadrature(posterior, std::max(0.0, coarse.mean[0] - half),
                                        std::min(1.0, coarse.mean[0] + half), cells, coarse.mean[0]);
    EXPECT_LT(truth.sd[0], 0.05);
    expect_right(posterior, truth, coarse.mean[0], {"importance", "slice", "auto"});
  }
}

}  // namespace
}  // namespace nrec
