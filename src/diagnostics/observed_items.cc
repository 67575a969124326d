#include "diagnostics/observed_items.h"

#include <algorithm>

#include "nrec/inference/posterior.h"

namespace nrec {

std::size_t most_iid_rows(std::size_t num_ranks) { return std::max<std::size_t>(1, num_ranks / 16); }

CheckItem range_item(const RatioEstimator& estimator, MatrixView<const double> x_o, Record& record) {
  const std::vector<OutsideColumn> outside = columns_outside(estimator, x_o);
  std::vector<std::int64_t> columns, rows;
  for (const OutsideColumn& column : outside) {
    columns.push_back(static_cast<std::int64_t>(column.column));
    rows.push_back(static_cast<std::int64_t>(column.row));
  }
  record.set("observation.columns_outside", columns);
  if (x_o.rows > 1) record.set("observation.rows_outside", rows);  // of the columns above
  if (outside.empty())
    return {"observation range", Verdict::trusted,
            "every number of the observation lies in the range of the simulations"};
  return {"observation range", Verdict::not_trusted, outside_warning(outside, x_o.rows)};
}

CheckItem iid_item(std::size_t num_rows, std::size_t num_ranks, Record& record) {
  const std::size_t most = most_iid_rows(num_ranks);
  record.set("iid.rows", num_rows);
  record.set("iid.most_rows", most);
  CheckItem item{"independent rows", Verdict::trusted, ""};
  item.sentence = std::to_string(num_rows) + " independent rows; the coverage of " +
                  std::to_string(num_ranks) + " held-out simulations can vouch for " + std::to_string(most);
  if (num_rows <= most) return item;
  item.verdict = Verdict::cannot_tell;
  item.sentence +=
      ": errors of log ratios add over the rows, so that errors too small for the check may be large here; "
      "compare with the posterior of half of the rows, or train on data sets of as many rows";
  return item;
}

namespace {

/// How the draws of one observation are.
CheckItem one_draws_item(const PosteriorDraws& draws) {
  CheckItem item{"draws", Verdict::trusted, draws.message};
  if (draws.status != SamplingStatus::complete)
    item.verdict = draws.size() == 0 ? Verdict::not_trusted : Verdict::cannot_tell;
  if (draws.status == SamplingStatus::chains_disagree || draws.status == SamplingStatus::weights_unreliable)
    item.verdict = Verdict::not_trusted;
  const RecordValue* bad = draws.statistics.find("non_finite_log_ratios");
  if (bad && std::get_if<std::int64_t>(bad) && std::get<std::int64_t>(*bad) > 0) {
    item.verdict = std::max(item.verdict, Verdict::cannot_tell);
    item.sentence += "; " + std::to_string(std::get<std::int64_t>(*bad)) +
                     " log ratios were not finite and counted as zero density";
  }
  return item;
}

}  // namespace

CheckItem draws_item(std::span<const PosteriorDraws> all, Record& record, std::size_t num_observations) {
  num_observations = std::max(num_observations, all.size());
  CheckItem worst = one_draws_item(all[0]);
  std::size_t where = 0, complete = 0, count = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    complete += all[i].status == SamplingStatus::complete;
    count += all[i].size();
    CheckItem item = one_draws_item(all[i]);
    if (item.verdict <= worst.verdict) continue;
    worst = std::move(item);
    where = i;
  }
  record.set("draws.status", sampling_status_name(all[where].status));
  record.set("draws.count", count);
  if (num_observations == 1) return worst;
  record.set("draws.complete", complete);
  if (worst.verdict != Verdict::trusted) record.set("draws.worst", where);
  const std::string head = std::to_string(complete) + " of " + std::to_string(num_observations) +
                           " observations have all their draws";
  worst.sentence = worst.verdict == Verdict::trusted ? head
                                                     : head + "; the first of the worst is row " +
                                                           std::to_string(where) + ": " + worst.sentence;
  return worst;
}

PosteriorDraws pooled_draws(const ObservedDraws& observed) {
  const std::span<const PosteriorDraws> all = observed.draws;
  if (observed.x_o.rows == 1) return all[0];
  PosteriorDraws pool;
  std::size_t rows = 0;
  for (const PosteriorDraws& draws : all) rows += draws.size();
  pool.theta = Matrix<double>(rows, all[0].theta.cols());
  std::size_t row = 0;
  for (const PosteriorDraws& draws : all) {
    std::ranges::copy(draws.theta.values(), pool.theta.row(row).begin());
    row += draws.size();
    const RecordValue* stored = draws.statistics.find("log_z");
    const double* log_z = stored ? std::get_if<double>(stored) : nullptr;
    for (const double log_ratio : draws.log_ratio)
      pool.log_ratio.push_back(log_ratio - (log_z ? *log_z : 0.0));
  }
  return pool;
}

}  // namespace nrec
