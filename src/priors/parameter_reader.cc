#include "priors/parameter_reader.h"

#include <algorithm>
#include <cmath>

#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/core/printable_text.h"
#include "nrec/core/suggest.h"

namespace nrec {

namespace {

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(separator)) + word;
  return text;
}

std::string or_text(std::string_view keyword) { return joined(alternatives_of(keyword), " or "); }

}  // namespace

std::vector<std::string> alternatives_of(std::string_view keyword) {
  std::vector<std::string> words;
  for (std::size_t first = 0; first <= keyword.size();) {
    const std::size_t last = std::min(keyword.find('|', first), keyword.size());
    words.emplace_back(keyword.substr(first, last - first));
    first = last + 1;
  }
  return words;
}

std::string suggestion_text(std::string_view word, const std::vector<std::string>& known,
                            std::string_view plural) {
  const std::string near = nearest_word(word, known);
  return (near.empty() ? "; the " : "; did you mean '" + near + "'? The ") + std::string(plural) + " are " +
         joined(known, ", ") + ".";
}

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return names.size() == 1 ? text : "(" + text + ")";
}

ParameterReader::ParameterReader(const PriorTerm& term, const PriorFamilyInfo& family)
    : term_(term), family_(family), where_("prior of " + names_text(term.names) + ": " + term.family + ": ") {
  check_known();
  check_complete();
}

void ParameterReader::check_known() const {
  std::vector<std::string> known;
  for (const std::string& keyword : family_.keywords) {
    for (std::string& word : alternatives_of(keyword)) known.push_back(std::move(word));
  }
  for (std::size_t i = 0; i < term_.parameters.size(); ++i) {
    const std::string& keyword = term_.parameters[i].first;
    if (std::find(known.begin(), known.end(), keyword) == known.end()) {
      throw ConfigError(where_ + "unknown keyword '" + one_line_text(keyword) + "'" +
                        suggestion_text(keyword, known, "keywords"));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (term_.parameters[j].first == keyword)
        throw ConfigError(where_ + "keyword '" + keyword + "' is given twice; keep one.");
    }
  }
}

void ParameterReader::check_complete() const {
  for (std::size_t k = 0; k < family_.keywords.size(); ++k) {
    std::vector<std::string> given;
    for (const std::string& word : alternatives_of(family_.keywords[k])) {
      if (has(word)) given.push_back(word);
    }
    if (given.size() > 1)
      throw ConfigError(where_ + "both " + joined(given, " and ") + " are given; keep one of them.");
    if (given.empty() && family_.defaults[k].empty()) {
      throw ConfigError(where_ + "keyword " + or_text(family_.keywords[k]) + " is missing; give it (" +
                        family_.meanings[k] + ").");
    }
  }
}

const ParameterReader::Entry* ParameterReader::find(std::string_view alternatives) const {
  for (const std::string& word : alternatives_of(alternatives)) {
    for (const Entry& entry : term_.parameters) {
      if (entry.first == word) return &entry;
    }
  }
  return nullptr;
}

const ParameterReader::Entry& ParameterReader::single(std::string_view alternatives) const {
  const Entry* entry = find(alternatives);
  require_internal(entry != nullptr, "a family reads a keyword that its PriorFamilyInfo does not demand");
  if (entry->second.size() != 1) {
    throw ShapeError(where_ + entry->first + " has " + std::to_string(entry->second.size()) +
                     " numbers but must have 1.");
  }
  return *entry;
}

double ParameterReader::finite(std::string_view keyword) const {
  const auto& [word, values] = single(keyword);
  if (!std::isfinite(values[0]))
    fail_domain(word + " = " + number_text(values[0]) + " must be a finite number.");
  return values[0];
}

double ParameterReader::finite_or(std::string_view keyword, double otherwise) const {
  return find(keyword) ? finite(keyword) : otherwise;
}

double ParameterReader::positive(std::string_view keyword) const {
  const double value = finite(keyword);
  if (!(value > 0.0)) fail_domain(find(keyword)->first + " = " + number_text(value) + " must be > 0.");
  return value;
}

double ParameterReader::bound_or(std::string_view keyword, double otherwise) const {
  if (!find(keyword)) return otherwise;
  const auto& [word, values] = single(keyword);
  if (std::isnan(values[0])) fail_domain(word + " = nan must be a number or an infinity.");
  return values[0];
}

const std::vector<double>& ParameterReader::finite_list(std::string_view keyword, std::size_t count) const {
  const Entry* entry = find(keyword);
  require_internal(entry != nullptr, "a family reads a keyword that its PriorFamilyInfo does not demand");
  const auto& [word, values] = *entry;
  if (values.size() != count) {
    throw ShapeError(where_ + word + " has " + std::to_string(values.size()) + " numbers but " +
                     std::to_string(dim()) + " names need " + std::to_string(count) + ".");
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) {
      fail_domain(word + "[" + std::to_string(i) + "] = " + number_text(values[i]) +
                  " must be a finite number.");
    }
  }
  return values;
}

void ParameterReader::check_order(double low, double high) const {
  const std::string both = "low = " + number_text(low) + " and high = " + number_text(high);
  if (!(low < high)) fail_domain(both + " but low must be below high; swap or correct them.");
  if (!(std::nextafter(low, high) < high))
    fail_domain(both + " have no number between them; choose a wider interval.");
  if (std::isfinite(low) && std::isfinite(high) && !std::isfinite(high - low)) {
    fail_domain(both + " are further apart than the largest double; choose a smaller interval.");
  }
}

void ParameterReader::fail_domain(const std::string& text) const { throw DomainError(where_ + text); }

}  // namespace nrec
