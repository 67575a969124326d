#include "commands/parameters_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "nrec/core/error.h"
#include "nrec/core/suggest.h"

namespace nrec {

namespace {

constexpr const char* kSamplesKey = "from_samples";

std::optional<double> as_number(const TomlValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value.value)) return *real;
  return std::nullopt;
}

/// A number, a list of numbers, or a list of such lists of one length, flattened row by row; nullopt for
/// anything else.
std::optional<std::vector<double>> as_numbers(const TomlValue& value) {
  if (const auto number = as_number(value)) return std::vector<double>{*number};
  const auto* list = std::get_if<TomlArray>(&value.value);
  if (!list) return std::nullopt;
  std::vector<double> numbers;
  std::size_t row_length = 0;
  for (const TomlValue& item : *list) {
    const bool is_row = std::holds_alternative<TomlArray>(item.value);
    const auto row = as_numbers(item);
    if (!row ||
        (is_row && std::any_of(std::get<TomlArray>(item.value).begin(), std::get<TomlArray>(item.value).end(),
                               [](const TomlValue& inner) { return !as_number(inner); }))) {
      return std::nullopt;
    }
    const std::size_t length = is_row ? row->size() : 0;
    if (&item != &list->front() && length != row_length) return std::nullopt;
    row_length = length;
    numbers.insert(numbers.end(), row->begin(), row->end());
  }
  return numbers;
}

std::optional<std::vector<std::string>> as_texts(const TomlValue& value) {
  const auto* list = std::get_if<TomlArray>(&value.value);
  if (!list) return std::nullopt;
  std::vector<std::string> texts;
  for (const TomlValue& item : *list) {
    const auto* text = std::get_if<std::string>(&item.value);
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  return texts;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const PriorFamilyInfo& family : prior_families()) names.push_back(family.family);
  return names;
}

/// One entry of the section, `key = { prior = ..., ... }`. Throws ConfigError without the place.
PriorTerm read_term(const std::string& key, const TomlTable& table) {
  PriorTerm term;
  term.names = {key};
  for (const auto& [name, value] : table) {
    if (name == "prior" || name == "transform") {
      const auto* text = std::get_if<std::string>(&value.value);
      if (!text) throw ConfigError(fmt::format("{} = {} must be a text", name, shown_value(value)));
      (name == "prior" ? term.family : term.transform) = *text;
    } else if (name == "names") {
      auto names = as_texts(value);
      if (!names)
        throw ConfigError(
            fmt::format("names = {} must be a list of texts, [\"a\", \"b\"]", shown_value(value)));
      term.names = std::move(*names);
    } else {
      auto numbers = as_numbers(value);
      if (!numbers)
        throw ConfigError(
            fmt::format("{} = {} must be a number, a list of numbers, or a list of rows of one length", name,
                        shown_value(value)));
      term.parameters.emplace_back(name, std::move(*numbers));
    }
  }
  if (term.family.empty())
    throw ConfigError(fmt::format("prior is missing; give one of {}", fmt::join(family_names(), " | ")));
  if (term.transform != "auto" && term.transform != "identity")
    throw ConfigError(
        fmt::format("transform = {} must be one of auto | identity", toml_text(term.transform)));
  return term;
}

void read_samples_prior(const TomlTable& table, const std::string& file, ParameterOptions& options,
                        std::vector<std::string>& errors) {
  for (const auto& [name, value] : table) {
    const std::string where = fmt::format("{}:{}: [parameters]: ", file, value.line);
    if (name == kSamplesKey) {
      options.from_samples = std::get<std::string>(value.value);
      if (options.from_samples.empty())
        errors.push_back(where + "from_samples = \"\" must name a file of thetas");
    } else if (name == "names") {
      auto names = as_texts(value);
      if (names) {
        options.names = std::move(*names);
      } else {
        errors.push_back(where + "names = " + shown_value(value) +
                         " must be a list of texts, [\"a\", \"b\"]");
      }
    } else {
      errors.push_back(
          where +
          fmt::format("\"{}\" cannot stand beside from_samples, which gives all parameters; only names can",
                      name));
    }
  }
}

}  // namespace

std::string shown_value(const TomlValue& value) {
  if (const bool* flag = std::get_if<bool>(&value.value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value.value)) return std::to_string(*whole);
  if (const double* real = std::get_if<double>(&value.value)) return number_text(*real);
  if (const auto* text = std::get_if<std::string>(&value.value)) return toml_text(*text);
  return fmt::format("(a {})", value.kind());
}

void read_parameters(const TomlValue& section, const std::string& file, ParameterOptions& options,
                     std::vector<std::string>& errors) {
  const auto& table = std::get<TomlTable>(section.value);
  const TomlValue* samples = section.find(kSamplesKey);
  if (samples && std::holds_alternative<std::string>(samples->value))
    return read_samples_prior(table, file, options, errors);
  for (const auto& [key, value] : table) {
    const std::string where = fmt::format("{}:{}: [parameters] {}: ", file, value.line, key);
    const auto* entry = std::get_if<TomlTable>(&value.value);
    if (!entry) {
      errors.push_back(
          where +
          fmt::format("{} = {} must be a prior, such as {} = {{ prior = \"uniform\", low = 0, high = 1 }}",
                      key, shown_value(value), key));
      continue;
    }
    try {
      PriorTerm term = read_term(key, *entry);
      Prior::from_terms({term});
      options.terms.push_back(std::move(term));
    } catch (const Error& error) {
      errors.push_back(where + error.what());
    }
  }
  if (table.empty())
    errors.push_back(
        fmt::format("{}:{}: [parameters] is empty; list every parameter with its prior", file, section.line));
}

namespace {

std::string names_list(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(toml_text(name));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

/// A list of D or D x D numbers as TOML.
std::string numbers_list(const std::vector<double>& values, std::size_t dim, bool joint) {
  if (!joint && values.size() == 1) return number_text(values[0]);
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool in_rows = joint && values.size() == dim * dim && dim > 1;
    if (i) text += ", ";
    if (in_rows && i % dim == 0) text += "[";
    text += number_text(values[i]);
    if (in_rows && i % dim == dim - 1) text += "]";
  }
  return text + "]";
}

bool is_bare_key(const std::string& key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

std::string parameters_text(const ParameterOptions& options, const std::string& samples_file) {
  std::string text = "[parameters]\n";
  if (!options.from_samples.empty()) {
    text += fmt::format("{} = {}\n", kSamplesKey, toml_text(samples_file));
    if (!options.names.empty()) text += "names = " + names_list(options.names) + "\n";
    return text;
  }
  std::size_t number = 0;
  for (const PriorTerm& term : options.terms) {
    const bool joint = term.names.size() > 1;
    std::string key = term.names[0];
    if (joint) {  // any word that is no parameter's name
      const auto taken = [&](const std::string& word) {
        return std::any_of(options.terms.begin(), options.terms.end(), [&](const PriorTerm& other) {
          return std::find(other.names.begin(), other.names.end(), word) != other.names.end();
        });
      };
      do key = fmt::format("joint_{}", ++number);
      while (taken(key));
    }
    text += (is_bare_key(key) ? key : toml_text(key)) + " = { ";
    if (joint) text += "names = " + names_list(term.names) + ", ";
    text += "prior = " + toml_text(term.family);
    for (const auto& [keyword, values] : term.parameters)
      text += fmt::format(", {} = {}", keyword, numbers_list(values, term.names.size(), joint));
    if (term.transform != "auto") text += ", transform = " + toml_text(term.transform);
    text += " }\n";
  }
  return text;
}

}  // namespace nrec
