#include "nrec/simulation/simulation_set.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "nrec/core/error.h"
#include "nrec/core/options.h"

namespace nrec {

std::string_view row_status_name(RowStatus status) {
  switch (status) {
    case RowStatus::ok:
      return "ok";
    case RowStatus::non_finite:
      return "non-finite";
    case RowStatus::failed:
      return "failed";
    case RowStatus::timed_out:
      return "timed out";
    case RowStatus::wrong_shape:
      return "wrong shape";
    case RowStatus::refused:
      break;
  }
  return "refused";
}

std::optional<RowStatus> row_status_of(double number) {
  const bool is_one =
      number >= 0.0 && number < static_cast<double>(kNumRowStatuses) && number == std::floor(number);
  if (!is_one) return std::nullopt;
  return static_cast<RowStatus>(number);
}

FailureRule failure_rule(std::string_view name) {
  for (const FailureRule rule : {FailureRule::stop, FailureRule::model, FailureRule::drop}) {
    if (name == failure_rule_name(rule)) return rule;
  }
  throw ConfigError("failures = \"" + std::string(name) +
                    "\" is unknown; it must be one of stop | model | drop");
}

std::string_view failure_rule_name(FailureRule rule) {
  switch (rule) {
    case FailureRule::stop:
      return "stop";
    case FailureRule::model:
      return "model";
    case FailureRule::drop:
      break;
  }
  return "drop";
}

namespace {

std::string prefix(const SimulationSet& simulations) {
  return simulations.source.empty() ? "simulations: " : "simulations (" + simulations.source + "): ";
}

// "theta[3, 1] (beta)": places as NumPy counts them, from 0, like the rows of campaigns and of --row.
std::string place_text(const char* array, std::size_t row, std::size_t column,
                       const std::vector<std::string>& names) {
  const std::string place =
      std::string(array) + "[" + std::to_string(row) + ", " + std::to_string(column) + "]";
  return column < names.size() ? place + " (" + names[column] + ")" : place;
}

std::optional<std::size_t> first_non_finite(std::span<const double> values) {
  const auto found =
      std::find_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
  if (found == values.end()) return std::nullopt;
  return static_cast<std::size_t>(found - values.begin());
}

void check_shapes(const SimulationSet& simulations) {
  const std::string where = prefix(simulations);
  const std::size_t rows = simulations.num_rows();
  if (rows != simulations.x.rows()) {
    throw ShapeError(where + "theta has " + std::to_string(rows) + " rows but x has " +
                     std::to_string(simulations.x.rows()) +
                     "; row i of x must be the simulation of row i of theta");
  }
  if (rows == 0) throw ShapeError(where + "theta and x have no rows; at least one simulation is needed");
  if (simulations.dim_theta() == 0)
    throw ShapeError(where + "theta has no columns; give one column per parameter");
  if (simulations.dim_x() == 0) throw ShapeError(where + "x has no columns; give one column per datum");
  const std::vector<std::string>& names = simulations.parameter_names;
  if (!names.empty() && names.size() != simulations.dim_theta()) {
    throw ShapeError(where + "there are " + std::to_string(names.size()) + " parameter names but theta has " +
                     std::to_string(simulations.dim_theta()) + " columns; give one name per column");
  }
  if (!simulations.status.empty() && simulations.status.size() != rows) {
    throw ShapeError(where + "status has " + std::to_string(simulations.status.size()) +
                     " entries but there are " + std::to_string(rows) +
                     " rows; give one status per row, or none");
  }
}

// "1 ended with an error", by status.
std::string status_text(RowStatus status, std::size_t count) {
  const std::string number = std::to_string(count);
  switch (status) {
    case RowStatus::ok:
      return number + " succeeded";
    case RowStatus::non_finite:
      return number + " with nan or infinity in x";
    case RowStatus::failed:
      return number + " ended with an error";
    case RowStatus::timed_out:
      return number + " timed out";
    case RowStatus::wrong_shape:
      return number + " gave something else than the wanted numbers";
    case RowStatus::refused:
      break;
  }
  return number + " refused theta";
}

std::vector<std::size_t> count_statuses(const SimulationSet& simulations) {
  std::vector<std::size_t> counts(kNumRowStatuses, 0);
  for (const RowStatus status : simulations.status) ++counts[static_cast<std::size_t>(status)];
  return counts;
}

std::string counts_text(const std::vector<std::size_t>& counts) {
  std::size_t all = 0;
  std::string kinds;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    all += counts[i];
    if (i > 0 && counts[i] > 0)
      kinds += (kinds.empty() ? "" : ", ") + status_text(static_cast<RowStatus>(i), counts[i]);
  }
  return std::to_string(all - counts[0]) + " of " + std::to_string(all) + " simulations failed (" + kinds +
         ")";
}

// The first failed row of a set that has one.
std::string first_failure_text(const SimulationSet& simulations) {
  const auto first =
      static_cast<std::size_t>(std::find_if(simulations.status.begin(), simulations.status.end(),
                                            [](RowStatus s) { return s != RowStatus::ok; }) -
                               simulations.status.begin());
  std::string text = "the first is row " + std::to_string(first) + " (from 0)";
  if (simulations.status[first] != RowStatus::non_finite) return text;  // x holds no data of other failures
  if (const auto column = first_non_finite(simulations.x.row(first)))
    text += ", " + place_text("x", first, *column, {}) + " = " + number_text(simulations.x(first, *column));
  return text;
}

void keep_ok_rows(SimulationSet& simulations) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < simulations.num_rows(); ++i) {
    if (simulations.status[i] != RowStatus::ok) continue;
    if (kept != i) {
      std::ranges::copy(std::as_const(simulations.theta).row(i), simulations.theta.row(kept).begin());
      std::ranges::copy(std::as_const(simulations.x).row(i), simulations.x.row(kept).begin());
    }
    ++kept;
  }
  simulations.theta.resize_rows(kept);
  simulations.x.resize_rows(kept);
  simulations.status.clear();
}

Matrix<double> theta_of_failures(const SimulationSet& simulations, std::size_t count) {
  Matrix<double> failed(count, simulations.dim_theta());
  std::size_t next = 0;
  for (std::size_t i = 0; i < simulations.num_rows(); ++i) {
    if (simulations.status[i] != RowStatus::ok)
      std::ranges::copy(simulations.theta.row(i), failed.row(next++).begin());
  }
  return failed;
}

}  // namespace

void check_simulations(SimulationSet& simulations) {
  check_shapes(simulations);
  for (std::size_t i = 0; i < simulations.num_rows(); ++i) {
    if (const auto column = first_non_finite(std::as_const(simulations.theta).row(i))) {
      throw DomainError(prefix(simulations) + place_text("theta", i, *column, simulations.parameter_names) +
                        " = " + number_text(simulations.theta(i, *column)) +
                        "; parameters must be finite numbers: correct or remove this row");
    }
  }
  for (std::size_t i = 0; i < simulations.num_rows(); ++i) {
    if (!first_non_finite(std::as_const(simulations.x).row(i))) continue;
    if (simulations.status.empty()) simulations.status.assign(simulations.num_rows(), RowStatus::ok);
    if (simulations.status[i] == RowStatus::ok) simulations.status[i] = RowStatus::non_finite;
  }
}

SimulationSet without_failures(SimulationSet simulations, FailureRule rule) {
  const std::vector<std::size_t> counts = count_statuses(simulations);
  const std::size_t num_ok = counts[0];
  const std::size_t num_failed = simulations.status.size() - num_ok;
  if (num_failed == 0) return simulations;
  if (!simulations.status_counts.empty())
    throw ConfigError(prefix(simulations) + "a rule for failed rows has been applied to this set before");
  const std::string text =
      prefix(simulations) + counts_text(counts) + "; " + first_failure_text(simulations) + ". ";
  if (num_ok == 0) throw DomainError(text + "No row is left: mend the simulator");
  if (rule == FailureRule::stop) {
    throw DomainError(
        text +
        "Leaving failed rows out biases the posterior: the ratio then compares successes only, "
        "and parameters that often fail look more probable than they are. Choose what to do: "
        "--failures model learns the chance of success at every theta from the same simulations "
        "and multiplies it in; --failures drop leaves the rows out, right only where failures do "
        "not depend on theta or are accidents that say nothing about x; or mend the simulator and simulate "
        "again (docs/methods/failures.md)");
  }
  simulations.status_counts = counts;
  if (rule == FailureRule::model) {
    simulations.failed_theta = theta_of_failures(simulations, num_failed);
  } else {
    simulations.num_dropped = num_failed;
  }
  keep_ok_rows(simulations);
  return simulations;
}

std::string failure_summary(const SimulationSet& simulations) {
  return simulations.status_counts.empty() ? "" : counts_text(simulations.status_counts);
}

}  // namespace nrec
