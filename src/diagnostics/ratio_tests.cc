#include "diagnostics/ratio_tests.h"

#include <algorithm>
#include <cmath>

#include "diagnostics/simulated_successes.h"
#include "nrec/diagnostics/classifier_check.h"

namespace nrec {

namespace {

// That of two normal densities 0.43 sds apart, whose C2ST is 0.585.
constexpr double kLargeArea = 0.62;
// That weights must be worth: the standard error of a weighted area is asymptotic.
constexpr double kLeastEffectiveRows = 50.0;
constexpr std::uint64_t kThetaRows = 1ull << 62;  // of the prior draws and simulations at single thetas

/// exp of log weights relative to the largest, so that none overflows.
std::vector<double> relative_weights(std::span<const double> log_weights) {
  const double top = *std::max_element(log_weights.begin(), log_weights.end());
  std::vector<double> weights;
  for (const double value : log_weights) weights.push_back(std::isfinite(top) ? std::exp(value - top) : 1.0);
  return weights;
}

/// (sum w)^2 / sum w^2 / n
double effective_share(std::span<const double> weights) {
  double sum = 0.0, square = 0.0;
  for (const double weight : weights) {
    sum += weight;
    square += weight * weight;
  }
  return sum * sum / square / static_cast<double>(weights.size());
}

/// Rows of (theta in unbounded space, x, further columns).
Matrix<double> features(const Prior& prior, MatrixView<const double> theta, MatrixView<const double> x,
                        std::initializer_list<std::span<const double>> columns) {
  Matrix<double> all(theta.rows, theta.cols + x.cols + columns.size());
  prior.to_unbounded(theta, {all.data(), theta.rows, theta.cols, all.cols()});
  for (std::size_t i = 0; i < theta.rows; ++i) {
    std::copy(x.row(i).begin(), x.row(i).end(), all.row(i).begin() + static_cast<std::ptrdiff_t>(theta.cols));
    std::size_t j = theta.cols + x.cols;
    for (const std::span<const double> column : columns) all(i, j++) = column[i];
  }
  return all;
}

void record_auc(const std::string& name, const WeightedAuc& auc, Record& record) {
  record.set(name + ".auc", auc.auc);
  record.set(name + ".auc_se", auc.standard_error);
  record.set(name + ".p_value", auc.p_value);
  record.set(name + ".roc", RecordValue(auc.true_positive));
}

std::string area_text(const char* what, const WeightedAuc& auc) {
  return what + check_text(" (area under the curve %.3f +- %.3f, 0.5 for an exact one)", auc.auc,
                           auc.standard_error);
}

}  // namespace

void record_information(const HeldOutRatios& held_out, Record& record) {
  const RatioInformation information = ratio_information(held_out.log_ratio, held_out.z);
  record.set("normalisation.mean_ratio", information.mean_ratio);
  record.set("normalisation.mean_ratio_se", information.mean_ratio_se);
  record.set("normalisation.mean_log_z", information.mean_log_z);
  record.set("normalisation.mean_log_z_se", information.mean_log_z_se);
  record.set("normalisation.sd_log_z", information.sd_log_z);
  record.set("information.mean_log_ratio", information.mean_log_ratio);
  record.set("information.i0", information.i0);
  record.set("information.i0_se", information.i0_se);
  record.set("information.i0_bias", information.i0_bias);
  record.set("information.i1", information.i1);
  record.set("information.i1_se", information.i1_se);
}

void test_classifiers(const HeldOutRatios& held_out, const CheckedRatio& ratio, const CheckData& data,
                      const RunContext& run, CheckFindings& findings) {
  const std::size_t n = held_out.num_rows();
  const MatrixView<const double> theta = data.theta.middle_rows(0, n), x = data.x.middle_rows(0, n);
  const Matrix<double> joint = features(ratio.prior, theta, x, {held_out.log_ratio, held_out.other_log_z});
  const Matrix<double> drawn =
      features(ratio.prior, held_out.draws, x, {held_out.draw_log_ratio, held_out.other_log_z});
  const Matrix<double> prior =
      features(ratio.prior, held_out.prior_draws, x, {held_out.prior_log_ratio, held_out.other_log_z});
  const std::vector<double> equal(n, 1.0);
  const WeightedAuc posterior_auc = classifier_check(joint, drawn, equal, run.seed, run.pool);
  record_auc("classifier", posterior_auc, findings.record);
  findings.tests.push_back(
      {"classifier", "posterior draws against truths", posterior_auc.p_value, posterior_auc.auc > kLargeArea,
       true, area_text("a network tells true thetas from posterior draws", posterior_auc), advice::kShape});
  record_auc("power.prior", classifier_check(joint, prior, equal, run.seed, run.pool), findings.record);
  if (!ratio.is_normalised) return;
  const std::vector<double> weights = relative_weights(held_out.draw_log_z);
  const double share = effective_share(weights);
  const WeightedAuc ratio_auc = classifier_check(joint, drawn, weights, run.seed, run.pool);
  record_auc("ratio", ratio_auc, findings.record);
  findings.record.set("ratio.effective_share", share);
  // Where posterior draws can be told already, the weighted ones say nothing of their own.
  const bool is_of_x = !(posterior_auc.auc > kLargeArea);
  findings.tests.push_back(
      {"ratio", "weighted draws against truths",
       share * static_cast<double>(n) < kLeastEffectiveRows ? std::nan("") : ratio_auc.p_value,
       ratio_auc.auc > kLargeArea, false,
       area_text(is_of_x ? "the ratio is wrong by a function of x: a network tells joint pairs from "
                           "pairs weighted by it"
                         : "a network tells joint pairs from pairs weighted by the ratio",
                 ratio_auc),
       is_of_x ? advice::kRatio : advice::kShape});
}

namespace {

/// Data simulated at one theta, fewer than `rows` where simulations fail.
Matrix<double> simulated_at(std::span<const double> theta, std::size_t rows, std::uint64_t first,
                            const Simulator& simulator, const RunContext& run) {
  Matrix<double> thetas(rows, theta.size());
  for (std::size_t i = 0; i < rows; ++i) std::copy(theta.begin(), theta.end(), thetas.row(i).begin());
  return simulated_successes(simulator, thetas, first, run);
}

/// Log ratios of every theta at each row of x, [thetas, rows].
Matrix<double> ratios_at(MatrixView<const double> thetas, MatrixView<const double> x,
                         const CheckedRatio& ratio, const RunContext& run) {
  Matrix<double> values(thetas.rows, x.rows);
  run.pool.run(x.rows, [&](std::size_t i, int) {
    ThreadPool alone(1);
    const RunContext context = {.pool = alone, .seed = run.seed, .isa = run.isa};
    std::vector<double> at_row(thetas.rows);
    ratio.posterior(i, context).log_ratio(thetas, at_row);
    for (std::size_t t = 0; t < thetas.rows; ++t) values(t, i) = at_row[t];
  });
  return values;
}

struct ThetaColumns {
  std::vector<double> theta, auc, auc_se, p_value, unweighted_auc, effective_share;

  void write(Record& record) const {
    record.set("thetas.theta", RecordValue(theta));
    record.set("thetas.auc", RecordValue(auc));
    record.set("thetas.auc_se", RecordValue(auc_se));
    record.set("thetas.p_value", RecordValue(p_value));
    record.set("thetas.unweighted_auc", RecordValue(unweighted_auc));
    record.set("thetas.effective_share", RecordValue(effective_share));
  }
};

}  // namespace

void test_thetas(const HeldOutRatios& held_out, const CheckedRatio& ratio, const CheckData& data,
                 int num_thetas, const RunContext& run, CheckFindings& findings) {
  if (num_thetas < 1) return;
  const std::size_t n = held_out.num_rows();
  ThetaColumns columns;
  const auto first_of = [&](int t) { return kThetaRows + static_cast<std::uint64_t>(t) * n; };
  Matrix<double> thetas(static_cast<std::size_t>(num_thetas), ratio.prior.dim());
  for (int t = 0; t < num_thetas; ++t)
    ratio.prior.sample(run.seed, Stream::check, first_of(t),
                       thetas.view().middle_rows(static_cast<std::size_t>(t), 1));
  const Matrix<double> log_ratios = ratios_at(thetas, data.x.middle_rows(0, n), ratio, run);
  for (int t = 0; t < num_thetas && !run.stop_requested(); ++t) {
    const auto row = static_cast<std::size_t>(t);
    const std::span<const double> theta = thetas.row(row);
    const Matrix<double> simulated = simulated_at(theta, n, first_of(t), *data.simulator, run);
    const std::size_t rows = simulated.rows();
    if (rows < n / 2 || rows < 50) continue;  // this theta fails: there is nothing to compare
    const MatrixView<const double> x = data.x.middle_rows(0, rows);
    const std::vector<double> weights = relative_weights(log_ratios.row(row).first(rows));
    const std::vector<double> equal(rows, 1.0);
    const WeightedAuc weighted =
        classifier_check(simulated, x, weights, run.seed + 1 + static_cast<std::uint64_t>(t), run.pool);
    const WeightedAuc plain =
        classifier_check(simulated, x, equal, run.seed + 1 + static_cast<std::uint64_t>(t), run.pool);
    const double share = effective_share(weights);
    columns.theta.insert(columns.theta.end(), theta.begin(), theta.end());
    columns.auc.push_back(weighted.auc);
    columns.auc_se.push_back(weighted.standard_error);
    columns.p_value.push_back(weighted.p_value);
    columns.unweighted_auc.push_back(plain.auc);
    columns.effective_share.push_back(share);
    findings.tests.push_back(
        {"ratio", "importance sampling at theta " + std::to_string(t + 1),
         share * static_cast<double>(rows) < kLeastEffectiveRows ? std::nan("") : weighted.p_value,
         weighted.auc > kLargeArea, false,
         area_text("at one theta, a network tells simulations from x of the prior weighted by the ratio",
                   weighted),
         advice::kRatio});
  }
  columns.write(findings.record);
}

}  // namespace nrec
