#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/priors/prior.h"

namespace nrec {

/// The numbers of one PriorTerm, by keyword, checked against the keywords of its family.
///
/// Errors   of every member: ConfigError, ShapeError or DomainError that start with "prior of 'name': family:
/// "
class ParameterReader {
 public:
  /// Errors: ConfigError: unknown, repeated or missing keyword, or two alternatives at once. Both must
  /// outlive the reader.
  ParameterReader(const PriorTerm& term, const PriorFamilyInfo& family);

  std::size_t dim() const { return term_.names.size(); }
  /// Whether one of the alternatives of `keyword` is in the term; `keyword` is one word.
  bool has(std::string_view keyword) const { return find(keyword) != nullptr; }

  /// A finite number; `keyword` may list alternatives: "mean|location".
  double finite(std::string_view keyword) const;
  /// The same with the default of a keyword that may be left out.
  double finite_or(std::string_view keyword, double otherwise) const;
  /// A finite number > 0.
  double positive(std::string_view keyword) const;
  /// Any number but nan: a bound that may be infinite.
  double bound_or(std::string_view keyword, double otherwise) const;
  /// Exactly `count` finite numbers.
  const std::vector<double>& finite_list(std::string_view keyword, std::size_t count) const;

  /// Throws DomainError: low >= high, no double between them, or high - low larger than the largest double.
  void check_order(double low, double high) const;
  [[noreturn]] void fail_domain(const std::string& text) const;

 private:
  using Entry = std::pair<std::string, std::vector<double>>;
  const Entry* find(std::string_view alternatives) const;
  const Entry& single(std::string_view alternatives) const;
  void check_known() const;
  void check_complete() const;

  const PriorTerm& term_;
  const PriorFamilyInfo& family_;
  std::string where_;
};

/// Words of "a|b|c".
std::vector<std::string> alternatives_of(std::string_view keyword);
/// "; did you mean 'low'? The keywords are low, high." for an unknown word.
std::string suggestion_text(std::string_view word, const std::vector<std::string>& known,
                            std::string_view plural);
/// "'mass'", or "('a', 'b')": how messages name a term.
std::string names_text(const std::vector<std::string>& names);

}  // namespace nrec
