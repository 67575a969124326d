#include "nrec/priors/conditioned_prior.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/core/suggest.h"

namespace nrec {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Values by column, nan where free.
std::vector<double> fixed_values(const Prior& prior, std::span<const FixedParameter> fixed) {
  const std::vector<std::string>& names = prior.names();
  std::vector<double> values(names.size(), kNan);
  for (const FixedParameter& parameter : fixed) {
    const auto found = std::find(names.begin(), names.end(), parameter.name);
    if (found == names.end()) {
      const std::string nearest = nearest_word(parameter.name, names);
      throw ConfigError("fix: unknown parameter \"" + parameter.name + "\"; the parameters are " +
                        listed(names) + (nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?"));
    }
    double& value = values[static_cast<std::size_t>(found - names.begin())];
    if (!std::isnan(value)) throw ConfigError("fix: \"" + parameter.name + "\" is fixed twice; keep one");
    if (!std::isfinite(parameter.value))
      throw DomainError("fix: " + parameter.name + " = " + number_text(parameter.value) + " must be finite");
    value = parameter.value;
  }
  if (std::none_of(values.begin(), values.end(), [](double value) { return std::isnan(value); }))
    throw ConfigError("fix: all parameters (" + listed(names) + ") are fixed; leave at least one free");
  return values;
}

void check_support(const Prior& prior, std::size_t column, bool is_open, double value) {
  const auto [low, high] = prior.bounds(column);
  const bool inside = is_open ? value > low && value < high : value >= low && value <= high;
  if (inside) return;
  throw DomainError("fix: " + prior.names()[column] + " = " + number_text(value) +
                    " must be inside the support of its prior, " + (is_open ? "(" : "[") + number_text(low) +
                    ", " + number_text(high) + (is_open ? ")" : "]"));
}

/// X with A X = B for a positive definite A, by its Cholesky factor. A prior has checked A when it was made.
Matrix<double> solved(Matrix<double> a, Matrix<double> b) {
  const std::size_t n = a.rows();
  for (std::size_t j = 0; j < n; ++j) {  // a becomes its lower factor
    for (std::size_t k = 0; k < j; ++k) a(j, j) -= a(j, k) * a(j, k);
    a(j, j) = std::sqrt(a(j, j));
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) a(i, j) -= a(i, k) * a(j, k);
      a(i, j) /= a(j, j);
    }
  }
  for (std::size_t c = 0; c < b.cols(); ++c) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < i; ++k) b(i, c) -= a(i, k) * b(k, c);
      b(i, c) /= a(i, i);
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t k = i + 1; k < n; ++k) b(i, c) -= a(k, i) * b(k, c);
      b(i, c) /= a(i, i);
    }
  }
  return b;
}

/// Rows and columns of a D x D matrix that is stored row by row.
Matrix<double> part(const std::vector<double>& matrix, std::size_t dim, const std::vector<std::size_t>& rows,
                    const std::vector<std::size_t>& cols) {
  Matrix<double> result(rows.size(), cols.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < cols.size(); ++j) {
      // Its two halves may differ by what a text file loses; their mean is what the prior uses.
      result(i, j) = 0.5 * matrix[rows[i] * dim + cols[j]] + 0.5 * matrix[cols[j] * dim + rows[i]];
    }
  }
  return result;
}

const std::vector<double>* numbers(const PriorTerm& term, const char* keyword) {
  for (const auto& [name, values] : term.parameters) {
    if (name == keyword) return &values;
  }
  return nullptr;
}

/// multivariate_normal given the components that `values` [D of the term] holds.
PriorTerm conditional_normal(const PriorTerm& term, std::span<const double> values) {
  const std::size_t dim = term.names.size();
  std::vector<std::size_t> free, fixed;
  for (std::size_t d = 0; d < dim; ++d) (std::isnan(values[d]) ? free : fixed).push_back(d);
  const std::vector<double>& mean = *numbers(term, "mean");
  Matrix<double> offset(fixed.size(), 1);
  for (std::size_t j = 0; j < fixed.size(); ++j) offset(j, 0) = values[fixed[j]] - mean[fixed[j]];
  const std::vector<double>* precision = numbers(term, "precision");
  const std::vector<double>& matrix = precision ? *precision : *numbers(term, "covariance");
  Matrix<double> rest = part(matrix, dim, free, free);
  const Matrix<double> cross = part(matrix, dim, free, fixed);
  Matrix<double> shift(free.size(), 1);
  if (precision) {  // -P_ff^-1 P_fx (a - m_x)
    for (std::size_t i = 0; i < free.size(); ++i) {
      for (std::size_t j = 0; j < fixed.size(); ++j) shift(i, 0) -= cross(i, j) * offset(j, 0);
    }
    shift = solved(rest, shift);
  } else {
    const Matrix<double> inner = part(matrix, dim, fixed, fixed);
    const Matrix<double> gain = solved(inner, part(matrix, dim, fixed, free));  // C_xx^-1 C_xf
    for (std::size_t i = 0; i < free.size(); ++i) {
      for (std::size_t j = 0; j < fixed.size(); ++j) shift(i, 0) += gain(j, i) * offset(j, 0);
      for (std::size_t k = 0; k < free.size(); ++k) {
        for (std::size_t j = 0; j < fixed.size(); ++j) rest(i, k) -= cross(i, j) * gain(j, k);
      }
    }
  }
  PriorTerm result{{}, term.family, {{"mean", {}}, {}}, term.transform};
  for (std::size_t i = 0; i < free.size(); ++i) {
    result.names.push_back(term.names[free[i]]);
    result.parameters[0].second.push_back(mean[free[i]] + shift(i, 0));
  }
  result.parameters[1] = {precision ? "precision" : "covariance", rest.values()};
  return result;
}

FixedParameter read_fixed_parameter(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw ConfigError("fix: \"" + text + "\" must be name=value, as in mass=1.5");
  const auto trimmed = [](std::string word) {
    word.erase(0, word.find_first_not_of(" \t"));
    word.erase(word.find_last_not_of(" \t") + 1);
    return word;
  };
  FixedParameter parameter{trimmed(text.substr(0, equals)), 0.0};
  std::string number = trimmed(text.substr(equals + 1));
  if (number.starts_with('+')) number.erase(0, 1);
  const char* end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, parameter.value);
  if (error != std::errc() || stop != end || !std::isfinite(parameter.value))
    throw ConfigError("fix: " + parameter.name + " = \"" + number + "\" must be a finite number");
  return parameter;
}

}  // namespace

std::vector<FixedParameter> read_fixed_parameters(std::span<const std::string> texts) {
  std::vector<FixedParameter> parameters;
  for (const std::string& text : texts) parameters.push_back(read_fixed_parameter(text));
  return parameters;
}

Matrix<double> ConditionedPrior::all_columns(MatrixView<const double> free) const {
  Matrix<double> all(free.rows, names.size());
  for (std::size_t i = 0; i < free.rows; ++i) {
    std::copy(values.begin(), values.end(), all.row(i).begin());
    for (std::size_t j = 0; j < free_columns.size(); ++j) all(i, free_columns[j]) = free(i, j);
  }
  return all;
}

Matrix<double> ConditionedPrior::only_free(MatrixView<const double> all) const {
  Matrix<double> free(all.rows, free_columns.size());
  for (std::size_t i = 0; i < all.rows; ++i) {
    for (std::size_t j = 0; j < free_columns.size(); ++j) free(i, j) = all(i, free_columns[j]);
  }
  return free;
}

ConditionedPrior condition(const Prior& prior, std::span<const FixedParameter> fixed) {
  ConditionedPrior result{prior, prior.names(), fixed_values(prior, fixed), {}};
  for (std::size_t d = 0; d < prior.dim(); ++d) {
    if (std::isnan(result.values[d])) result.free_columns.push_back(d);
  }
  if (fixed.empty()) return result;
  if (!prior.has_density()) {
    throw UnsupportedError(
        "fix: the prior is given by samples, and a table has no conditional distribution; give [parameters] "
        "as distributions");
  }
  std::vector<PriorTerm> terms;
  std::size_t column = 0;
  for (const PriorTerm& term : prior.terms()) {
    const std::span<const double> values = std::span(result.values).subspan(column, term.names.size());
    std::size_t num_fixed = 0;
    for (std::size_t d = 0; d < values.size(); ++d) {
      if (std::isnan(values[d])) continue;
      check_support(prior, column + d, term.transform == "auto", values[d]);
      ++num_fixed;
    }
    column += values.size();
    if (num_fixed == values.size()) continue;
    if (num_fixed > 0 && term.family != "multivariate_normal") {
      throw UnsupportedError("fix: " + listed(term.names) + " have the joint prior " + term.family +
                             ", whose conditional is not known here; fix all of them or none");
    }
    terms.push_back(num_fixed == 0 ? term : conditional_normal(term, values));
  }
  result.prior = Prior::from_terms(std::move(terms));
  return result;
}

}  // namespace nrec
