#include "nrec/priors/prior.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/core/printable_text.h"
#include "priors/bijection.h"
#include "priors/empirical.h"
#include "priors/families.h"

namespace nrec {

namespace {

// Rows that go through all terms together: their numbers and streams stay in the first-level cache.
constexpr std::size_t kBlockRows = 256;
constexpr std::size_t kStreamsAtOnce = 64;
// A description spells out lists up to this length.
constexpr std::size_t kLongestList = 4;

void check_names(const std::vector<std::string>& names) {
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (!sorted.empty() && sorted.front().empty())
    throw ConfigError("prior: a parameter has an empty name; give every parameter a name.");
  for (const std::string& name : names) {
    if (has_control_character(name))
      throw ConfigError("prior: the parameter name " + quoted_text(name) +
                        " holds a control character, which tables and terminals cannot show; rename it.");
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    throw ConfigError("prior: the name '" + *twice + "' is used twice; give every parameter its own name.");
}

bool has_auto_transform(const PriorTerm& term) {
  static const std::vector<std::string> known = {"auto", "identity"};
  if (term.transform == known[0]) return true;
  if (term.transform == known[1]) return false;
  throw ConfigError("prior of " + names_text(term.names) + ": unknown transform '" +
                    one_line_text(term.transform) + "'" +
                    suggestion_text(term.transform, known, "transforms"));
}

void check_table(const std::vector<std::string>& names, const Matrix<double>& theta) {
  if (theta.rows() == 0 || theta.cols() == 0)
    throw ShapeError("prior given by samples: the table of thetas is empty; give at least two rows.");
  if (names.size() != theta.cols()) {
    throw ShapeError("prior given by samples: " + std::to_string(names.size()) + " names for " +
                     std::to_string(theta.cols()) + " columns; give one name per column.");
  }
  for (std::size_t d = 0; d < theta.cols(); ++d) {
    bool is_constant = true;
    for (std::size_t i = 0; i < theta.rows(); ++i) {
      if (!std::isfinite(theta(i, d))) {
        throw DomainError("prior given by samples: theta of '" + names[d] + "' in row " + std::to_string(i) +
                          " is " + number_text(theta(i, d)) +
                          "; every number must be finite, remove such rows.");
      }
      is_constant = is_constant && theta(i, d) == theta(0, d);
    }
    if (is_constant) {
      throw DomainError("prior given by samples: '" + names[d] + "' is " + number_text(theta(0, d)) +
                        " in every row; a constant is not a parameter, leave the column out.");
    }
  }
}

std::string list_text(const std::vector<double>& values) {
  if (values.size() == 1) return number_text(values[0]);
  if (values.size() > kLongestList) return "[" + std::to_string(values.size()) + " numbers]";
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + number_text(value);
  return "[" + text + "]";
}

std::string plain_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return names.size() == 1 ? text : "(" + text + ")";
}

std::string term_text(const PriorTerm& term) {
  std::string arguments;
  for (const auto& [keyword, values] : term.parameters) {
    arguments += (arguments.empty() ? "" : ", ") + keyword + " = " + list_text(values);
  }
  const std::string text = plain_names(term.names) + " ~ " + term.family + "(" + arguments + ")";
  return term.transform == "auto" ? text : text + ", transform = " + term.transform;
}

void check_columns(const char* where, const char* what, std::size_t cols, std::size_t dim) {
  if (cols == dim) return;
  throw ShapeError(std::string("prior: ") + where + ": " + what + " has " + std::to_string(cols) +
                   " columns but the prior has " + std::to_string(dim) + " parameters.");
}

void check_count(const char* where, const char* what, std::size_t count, std::size_t rows) {
  if (count == rows) return;
  throw ShapeError(std::string("prior: ") + where + ": " + what + " has room for " + std::to_string(count) +
                   " rows but " + std::to_string(rows) + " are given.");
}

template <class T>
MatrixView<T> columns(MatrixView<T> matrix, std::size_t first, std::size_t count) {
  return {matrix.data + first, matrix.rows, count, matrix.stride};
}

}  // namespace

struct Prior::State {
  std::vector<std::string> names;
  std::vector<PriorTerm> terms;
  Matrix<double> samples;
  std::vector<std::unique_ptr<const Distribution>> distributions;  // in column order
  std::vector<Bijection> bijections;                               // [D]
  std::vector<std::pair<double, double>> bounds;                   // [D]

  void add(std::unique_ptr<const Distribution> distribution, bool has_bijection) {
    for (std::size_t d = 0; d < distribution->dim(); ++d) {
      bounds.push_back(distribution->bounds(d));
      bijections.push_back(has_bijection ? Bijection::of_support(bounds.back().first, bounds.back().second)
                                         : Bijection{});
    }
    distributions.push_back(std::move(distribution));
  }
};

Prior::Prior(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Prior Prior::from_terms(std::vector<PriorTerm> terms) {
  if (terms.empty()) throw ConfigError("prior: there are no parameters; give at least one.");
  const auto state = std::make_shared<State>();
  for (const PriorTerm& term : terms) {
    if (term.names.empty())
      throw ConfigError("prior: a term of family '" + term.family + "' has no names; name its parameters.");
    state->names.insert(state->names.end(), term.names.begin(), term.names.end());
  }
  check_names(state->names);
  for (const PriorTerm& term : terms) state->add(make_distribution(term), has_auto_transform(term));
  state->terms = std::move(terms);
  return Prior(state);
}

Prior Prior::from_samples(std::vector<std::string> names, Matrix<double> theta) {
  check_table(names, theta);
  check_names(names);
  const auto state = std::make_shared<State>();
  state->names = std::move(names);
  state->samples = std::move(theta);
  state->add(make_empirical(state->samples), false);
  return Prior(state);
}

std::size_t Prior::dim() const { return state_->names.size(); }
const std::vector<std::string>& Prior::names() const { return state_->names; }
const std::vector<PriorTerm>& Prior::terms() const { return state_->terms; }
const Matrix<double>& Prior::samples() const { return state_->samples; }
bool Prior::has_density() const { return state_->samples.empty(); }

void Prior::sample(std::uint64_t seed, Stream stream, std::uint64_t first_row,
                   MatrixView<double> theta) const {
  check_columns("sample", "theta", theta.cols, dim());
  std::vector<RandomStream> random;
  random.reserve(std::min(theta.rows, kStreamsAtOnce));
  for (std::size_t first = 0; first < theta.rows; first += kStreamsAtOnce) {
    const MatrixView<double> block = theta.middle_rows(first, std::min(kStreamsAtOnce, theta.rows - first));
    random.clear();
    for (std::size_t i = 0; i < block.rows; ++i) random.emplace_back(seed, stream, first_row + first + i);
    std::size_t column = 0;
    for (const auto& distribution : state_->distributions) {
      distribution->sample(random, columns(block, column, distribution->dim()));
      column += distribution->dim();
    }
  }
}

void Prior::log_prob(MatrixView<const double> theta, std::span<double> log_prob) const {
  check_columns("log_prob", "theta", theta.cols, dim());
  check_count("log_prob", "log_prob", log_prob.size(), theta.rows);
  std::fill(log_prob.begin(), log_prob.end(), 0.0);
  for (std::size_t first = 0; first < theta.rows; first += kBlockRows) {
    const MatrixView<const double> block = theta.middle_rows(first, std::min(kBlockRows, theta.rows - first));
    std::size_t column = 0;
    for (const auto& distribution : state_->distributions) {
      distribution->add_log_prob(columns(block, column, distribution->dim()),
                                 log_prob.subspan(first, block.rows));
      column += distribution->dim();
    }
  }
}

namespace {

/// The first coordinate outside its bounds; as many as there are where none is. Samplers ask often: it makes no text.
std::size_t first_outside(std::span<const double> theta, std::span<const std::pair<double, double>> bounds) {
  std::size_t d = 0;
  while (d < theta.size() && std::isfinite(theta[d]) && theta[d] >= bounds[d].first &&
         theta[d] <= bounds[d].second)
    ++d;
  return d;
}

}  // namespace

bool Prior::contains(std::span<const double> theta) const {
  return theta.size() == dim() && first_outside(theta, state_->bounds) == dim();
}

std::string Prior::outside_text(std::span<const double> theta, std::size_t i) const {
  check_columns("outside_text", "theta", theta.size(), dim());
  const std::size_t d = first_outside(theta, state_->bounds);
  if (d == dim()) return "";
  const auto [low, high] = state_->bounds[d];
  return "[" + std::to_string(i) + ", " + std::to_string(d) + "] (" + names()[d] +
         ") = " + number_text(theta[d]) + " is outside the prior, " + number_text(low) + " to " +
         number_text(high);
}

void Prior::to_unbounded(MatrixView<const double> theta, MatrixView<double> u) const {
  check_columns("to_unbounded", "theta", theta.cols, dim());
  check_columns("to_unbounded", "u", u.cols, dim());
  check_count("to_unbounded", "u", u.rows, theta.rows);
  for (std::size_t i = 0; i < theta.rows; ++i) {
    for (std::size_t d = 0; d < dim(); ++d) u(i, d) = state_->bijections[d].to_unbounded(theta(i, d));
  }
}

void Prior::to_constrained(MatrixView<const double> u, MatrixView<double> theta) const {
  check_columns("to_constrained", "u", u.cols, dim());
  check_columns("to_constrained", "theta", theta.cols, dim());
  check_count("to_constrained", "theta", theta.rows, u.rows);
  for (std::size_t i = 0; i < u.rows; ++i) {
    for (std::size_t d = 0; d < dim(); ++d) theta(i, d) = state_->bijections[d].to_constrained(u(i, d));
  }
}

void Prior::log_abs_det_jacobian(MatrixView<const double> u, std::span<double> log_jacobian) const {
  check_columns("log_abs_det_jacobian", "u", u.cols, dim());
  check_count("log_abs_det_jacobian", "log_jacobian", log_jacobian.size(), u.rows);
  for (std::size_t i = 0; i < u.rows; ++i) {
    double sum = 0.0;
    for (std::size_t d = 0; d < dim(); ++d) sum += state_->bijections[d].log_jacobian(u(i, d));
    log_jacobian[i] = sum;
  }
}

void Prior::unbounded_log_prob(MatrixView<const double> u, std::span<double> log_prob,
                               MatrixView<double> d_u) const {
  check_columns("unbounded_log_prob", "u", u.cols, dim());
  check_columns("unbounded_log_prob", "d_u", d_u.cols, dim());
  check_count("unbounded_log_prob", "log_prob", log_prob.size(), u.rows);
  check_count("unbounded_log_prob", "d_u", d_u.rows, u.rows);
  Matrix<double> theta(u.rows, dim()), slope(u.rows, dim());
  to_constrained(u, theta);
  this->log_prob(theta, log_prob);
  for (std::size_t i = 0; i < u.rows; ++i) {
    for (std::size_t d = 0; d < dim(); ++d) {
      const Bijection& bijection = state_->bijections[d];
      slope(i, d) = bijection.slope(u(i, d));
      log_prob[i] += bijection.log_jacobian(u(i, d));
      d_u(i, d) = bijection.log_jacobian_slope(u(i, d));
    }
  }
  std::size_t column = 0;
  for (const auto& distribution : state_->distributions) {
    const std::size_t count = distribution->dim();
    distribution->add_gradient(columns(std::as_const(theta).view(), column, count),
                               columns(std::as_const(slope).view(), column, count),
                               columns(d_u, column, count));
    column += count;
  }
  for (std::size_t i = 0; i < u.rows; ++i) {
    if (log_prob[i] > -kInfinity) continue;  // nan of u included
    log_prob[i] = -kInfinity;
    std::fill(d_u.row(i).begin(), d_u.row(i).end(), 0.0);
  }
}

void Prior::pull_back(MatrixView<const double> u, MatrixView<double> d) const {
  check_columns("pull_back", "u", u.cols, dim());
  check_columns("pull_back", "d", d.cols, dim());
  check_count("pull_back", "d", d.rows, u.rows);
  for (std::size_t i = 0; i < u.rows; ++i) {
    for (std::size_t j = 0; j < dim(); ++j) d(i, j) *= state_->bijections[j].slope(u(i, j));
  }
}

bool Prior::is_identity(std::size_t d) const {
  bounds(d);  // refuses
  return state_->bijections[d].kind == Bijection::Kind::identity;
}

Prior Prior::without_walls() const {
  if (!has_density()) return *this;
  std::vector<PriorTerm> terms = state_->terms;
  for (PriorTerm& term : terms) term.transform = "auto";
  return from_terms(std::move(terms));
}

std::pair<double, double> Prior::bounds(std::size_t d) const {
  if (d < dim()) return state_->bounds[d];
  throw ShapeError("prior: bounds: column " + std::to_string(d) + " of a prior of " + std::to_string(dim()) +
                   " parameters.");
}

std::vector<std::string> Prior::description() const {
  if (!has_density()) {
    return {plain_names(names()) + " ~ one of the " + std::to_string(samples().rows()) + " rows of a table"};
  }
  std::vector<std::string> lines;
  for (const PriorTerm& term : terms()) lines.push_back(term_text(term));
  return lines;
}

}  // namespace nrec
