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
namespace {

std::string prefix(const SimulationSet& simulations) {
  return simulations.source.empty() ? "simulations: " : "simulations (" + simulations.source + "): ";
}

// "column 2 (beta)"; columns are counted from 1, as in the names data_1, parameter_1.
std::string column_text(std::size_t column, const std::vector<std::string>& names) {
  const std::string number = "column " + std::to_string(column + 1);
  return column < names.size() ? number + " (" + names[column] + ")" : number;
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

// What is known of the failures of a set, in words.
std::string failure_text(const SimulationSet& simulations) {
  const auto count = [&](RowStatus status) {
    return std::count(simulations.status.begin(), simulations.status.end(), status);
  };
  const auto failed = count(RowStatus::failed);
  const auto non_finite = count(RowStatus::non_finite);
  const auto first =
      static_cast<std::size_t>(std::find_if(simulations.status.begin(), simulations.status.end(),
                                            [](RowStatus s) { return s != RowStatus::ok; }) -
                               simulations.status.begin());
  std::string text = std::to_string(failed + non_finite) + " of " + std::to_string(simulations.num_rows()) +
                     " simulations failed (" + std::to_string(failed) + " ended with an error, " +
                     std::to_string(non_finite) + " gave nan or infinity); the first is row " +
                     std::to_string(first + 1);
  if (const auto column = first_non_finite(simulations.x.row(first))) {
    text += ", x " + column_text(*column, {}) + " = " + number_text(simulations.x(first, *column));
  }
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
  simulations.num_dropped += simulations.num_rows() - kept;
  simulations.theta.resize_rows(kept);
  simulations.x.resize_rows(kept);
  simulations.status.clear();
}

}  // namespace

void check_simulations(SimulationSet& simulations) {
  check_shapes(simulations);
  for (std::size_t i = 0; i < simulations.num_rows(); ++i) {
    if (const auto column = first_non_finite(std::as_const(simulations.theta).row(i))) {
      throw DomainError(prefix(simulations) + "theta row " + std::to_string(i + 1) + ", " +
                        column_text(*column, simulations.parameter_names) + " = " +
                        number_text(simulations.theta(i, *column)) +
                        "; parameters must be finite numbers: correct or remove this row");
    }
  }
  for (std::size_t i = 0; i < simulations.num_rows(); ++i) {
    if (!first_non_finite(std::as_const(simulations.x).row(i))) continue;
    if (simulations.status.empty()) simulations.status.assign(simulations.num_rows(), RowStatus::ok);
    if (simulations.status[i] == RowStatus::ok) simulations.status[i] = RowStatus::non_finite;
  }
}

SimulationSet without_failures(SimulationSet simulations, bool drop_failed) {
  const bool all_ok = std::all_of(simulations.status.begin(), simulations.status.end(),
                                  [](RowStatus s) { return s == RowStatus::ok; });
  if (all_ok) return simulations;
  if (!drop_failed) {
    throw DomainError(prefix(simulations) + failure_text(simulations) +
                      ". Dropping failed rows biases the posterior: what is learnt is then conditioned on "
                      "the simulator not failing, and "
                      "parameters that often fail look less probable than they are. Mend the simulator or "
                      "let it write a finite value that "
                      "stands for failure; if the failures do not depend on theta or the bias is acceptable, "
                      "drop them with --drop-failed");
  }
  const std::string text = failure_text(simulations);
  const std::string where = prefix(simulations);
  keep_ok_rows(simulations);
  if (simulations.num_rows() == 0) {
    throw DomainError(where + text + "; after dropping them no row is left. Mend the simulator");
  }
  return simulations;
}

}  // namespace nrec
