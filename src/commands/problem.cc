#include "nrec/commands/problem.h"

#include <fmt/format.h>

#include <algorithm>

#include "commands/parameters_section.h"
#include "nrec/core/error.h"
#include "nrec/core/suggest.h"
#include "nrec/io/tables.h"
#include "nrec/io/toml.h"
#include "nrec/tasks/task.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kShownErrors = 10;

std::string joined(const std::vector<std::string>& errors) {
  std::string text;
  for (std::size_t i = 0; i < std::min(errors.size(), kShownErrors); ++i) text += (i ? "\n" : "") + errors[i];
  if (errors.size() > kShownErrors) text += fmt::format("\nand {} more", errors.size() - kShownErrors);
  return text;
}

std::vector<std::string> section_names(const OptionTable& table) {
  std::vector<std::string> names = {"parameters"};
  for (const OptionEntry& entry : table.entries()) {
    if (std::find(names.begin(), names.end(), entry.section) == names.end()) names.push_back(entry.section);
  }
  return names;
}

/// The value of a key as an option takes it. Errors: ConfigError for kinds that no option has.
OptionValue option_value(const TomlValue& value, std::string_view name) {
  if (const bool* flag = std::get_if<bool>(&value.value)) return *flag;
  if (const auto* whole = std::get_if<std::int64_t>(&value.value)) return *whole;
  if (const double* real = std::get_if<double>(&value.value)) return *real;
  if (const auto* text = std::get_if<std::string>(&value.value)) return *text;
  std::vector<std::string> texts;
  const auto* list = std::get_if<TomlArray>(&value.value);
  for (const TomlValue& item : list ? *list : TomlArray{}) {
    const auto* text = std::get_if<std::string>(&item.value);
    if (!text) throw ConfigError(fmt::format("{} must be a list of texts", name));
    texts.push_back(*text);
  }
  if (!list) throw ConfigError(fmt::format("{} = {} must be a single value", name, shown_value(value)));
  return texts;
}

/// Reads one problem file into a Problem, collecting what is wrong.
class ProblemReader {
 public:
  ProblemReader(const fs::path& path, Problem& problem, const OptionTable& table)
      : file_(path.string()), problem_(problem), table_(table) {}

  void read(const TomlValue& root) {
    const std::vector<std::string> known = section_names(table_);
    for (const auto& [name, value] : std::get<TomlTable>(root.value)) {
      const std::string where = fmt::format("{}:{}: ", file_, value.line);
      if (!std::holds_alternative<TomlTable>(value.value)) {
        errors_.push_back(where +
                          fmt::format("\"{}\" stands outside a section; every key belongs under one of [{}]",
                                      name, fmt::join(known, "], [")));
      } else if (name == "parameters") {
        read_parameters(value, file_, problem_.parameters, errors_);
      } else if (std::find(known.begin(), known.end(), name) == known.end() || name.empty()) {
        const std::string nearest = nearest_word(name, known);
        errors_.push_back(where + fmt::format("unknown section [{}]; ", name) +
                          (nearest.empty() ? fmt::format("the sections are [{}]", fmt::join(known, "], ["))
                                           : fmt::format("did you mean [{}]?", nearest)));
      } else {
        read_section(name, std::get<TomlTable>(value.value));
      }
    }
  }

  const std::vector<std::string>& errors() const { return errors_; }

 private:
  void read_section(const std::string& section, const TomlTable& table) {
    for (const auto& [key, value] : table) {
      const std::string where = fmt::format("{}:{}: [{}]", file_, value.line, section);
      try {
        table_.set(section, key, option_value(value, key), where);
      } catch (const ConfigError& error) {
        const std::string text = error.what();
        errors_.push_back(text.starts_with(where) ? text : where + ": " + text);
      }
      if (section == "simulations" && key == "num_simulations")
        problem_.simulations.num_simulations_given = true;
    }
  }

  std::string file_;
  Problem& problem_;
  const OptionTable& table_;
  std::vector<std::string> errors_;
};

/// File names of the problem file start from its folder; "" stays "".
void start_from(const fs::path& folder, Problem& problem) {
  const auto put = [&](std::string& name) {
    if (!name.empty()) name = (folder / name).string();
  };
  for (std::string& name : problem.simulations.files) put(name);
  put(problem.simulations.campaign);
  put(problem.simulations.library);
  put(problem.simulations.scratch);
  put(problem.simulations.folder);
  put(problem.observation.file);
  if (!problem.parameters.from_samples.empty())
    problem.parameters.from_samples = folder / problem.parameters.from_samples;
}

}  // namespace

void apply(const OptionOverride& flag, const OptionTable& table) {
  try {
    // A list may come in several flags, each with commas.
    table.set_from_text(flag.section, flag.name, fmt::format("{}", fmt::join(flag.values, ",")), flag.where);
  } catch (const ConfigError& error) {
    throw UsageError(error.what());
  }
}

namespace {

/// The word of [training] settings, which comes before all other keys; wrong words are left to the reading of these.
std::string settings_word(const TomlValue& root, std::span<const OptionOverride> overrides) {
  std::string word;
  if (const TomlValue* section = root.find("training")) {
    const TomlValue* value = section->find("settings");
    if (const auto* text = value ? std::get_if<std::string>(&value->value) : nullptr) word = *text;
  }
  for (const OptionOverride& flag : overrides) {
    if (flag.section == "training" && flag.name == "settings") word = flag.values.back();
  }
  return word;
}

}  // namespace

Problem read_problem(const fs::path& path, std::span<const OptionOverride> overrides) {
  Problem problem;
  std::string settings;
  OptionTable table;
  describe(table, problem);
  describe_settings(table, settings);
  const TomlValue root = path.empty() ? TomlValue{TomlTable{}} : read_toml(path);
  if (settings_word(root, overrides) == "published")
    use_published_settings(problem.network, problem.training);
  std::vector<std::string> file_errors;
  if (!path.empty()) {
    problem.file = path;
    ProblemReader reader(path, problem, table);
    reader.read(root);
    file_errors = reader.errors();
    start_from(path.parent_path(), problem);
  }
  std::vector<std::string> flag_errors;
  for (const OptionOverride& flag : overrides) {
    try {
      apply(flag, table);
      if (flag.section == "simulations" && flag.name == "num_simulations")
        problem.simulations.num_simulations_given = true;
    } catch (const UsageError& error) {
      flag_errors.emplace_back(error.what());
    }
  }
  if (!flag_errors.empty()) throw UsageError(joined(flag_errors));
  if (!file_errors.empty()) throw ConfigError(joined(file_errors));
  return problem;
}

namespace {

/// What the rules of [simulations] and [parameters] say against a problem; `source_help` ends the message that a source
/// is missing.
std::vector<std::string> broken_rules(const Problem& problem, bool must_run, const std::string& source_help) {
  const std::string where = problem.file.empty() ? std::string("problem") : problem.file.string();
  const SimulationOptions& simulations = problem.simulations;
  const bool has_task = !simulations.task.empty();
  const bool has_parameters = !problem.parameters.terms.empty() || !problem.parameters.from_samples.empty();
  std::vector<std::string> sources;
  if (!simulations.files.empty()) sources.push_back("files");
  if (has_task) sources.push_back("task = " + toml_text(simulations.task));
  if (!simulations.command.empty()) sources.push_back("command");
  if (!simulations.library.empty()) sources.push_back("library");
  std::vector<std::string> errors;
  if (sources.empty() && (must_run || simulations.campaign.empty()))
    errors.push_back(where + ": [simulations] needs a source; give " + source_help);
  if (sources.size() > 1)
    errors.push_back(fmt::format("{}: [simulations] has {} sources, {}; keep one", where,
                                 sources.size() == 2 ? "two" : std::to_string(sources.size()),
                                 fmt::join(sources, " and ")));
  if (!simulations.files.empty() && !simulations.campaign.empty())
    errors.push_back(where +
                     ": [simulations] files hold their rows themselves, so campaign has no use; keep one");
  if (has_task && has_parameters)
    errors.push_back(where + ": [parameters] is given, but task = " + toml_text(simulations.task) +
                     " brings its own; remove one of them");
  if (!has_task && (!sources.empty() || !simulations.campaign.empty()) && !has_parameters)
    errors.push_back(where +
                     ": [parameters] is missing; list the columns of theta in order, each with the prior "
                     "that the simulations were drawn from");
  if (simulations.component_per_call && simulations.task != "gaussian_mixture")
    errors.push_back(where +
                     ": [simulations] component_per_call is for task = \"gaussian_mixture\" only; remove it");
  for (const std::string& sentence : broken_rules(problem.training))
    errors.push_back(where + ": [training] " + sentence);
  if (const std::string broken = broken_num_predicted(problem.check.num_predicted); !broken.empty())
    errors.push_back(where + ": [check] " + broken);
  return errors;
}

}  // namespace

void validate(const Problem& problem) {
  const std::vector<std::string> errors = broken_rules(
      problem, false,
      "files = [\"sims.npz\"] (with theta and x), command = \"./simulator {mass}\", or task = \"" +
          task_names().front() + "\"");
  if (!errors.empty()) throw ConfigError(joined(errors));
}

void validate_simulator(const Problem& problem) {
  std::vector<std::string> errors =
      broken_rules(problem, true,
                   "command = \"./simulator {mass}\", library = \"libsimulator.so\", or task = \"" +
                       task_names().front() + "\"");
  if (!problem.simulations.files.empty())
    errors.push_back(
        problem.file.string() +
        ": [simulations] files hold simulations already; name what makes them: command, library or task");
  if (!errors.empty()) throw ConfigError(joined(errors));
}

Prior problem_prior(const Problem& problem) {
  if (!problem.simulations.task.empty()) return make_task(problem.simulations.task)->prior();
  const ParameterOptions& parameters = problem.parameters;
  if (parameters.from_samples.empty()) {
    try {
      return Prior::from_terms(parameters.terms);
    } catch (const ConfigError& error) {
      throw ConfigError(problem.file.string() + ": [parameters]: " + error.what());
    }
  }
  const std::vector<std::string> wanted = {"theta", "samples"};
  SampleTable table = read_samples(parameters.from_samples, wanted);
  if (!parameters.names.empty() && !table.names.empty() && parameters.names != table.names)
    throw ConfigError(problem.file.string() + ": [parameters]: names differ from the header of " +
                      parameters.from_samples.string() + ", which names its columns itself; leave names out");
  std::vector<std::string> names = parameters.names.empty() ? table.names : parameters.names;
  for (std::size_t d = names.size();
       parameters.names.empty() && table.names.empty() && d < table.values.cols(); ++d)
    names.push_back(fmt::format("theta_{}", d + 1));
  return Prior::from_samples(std::move(names), std::move(table.values));
}

namespace {

std::string seen_from(const fs::path& folder, const std::string& name) {
  if (name.empty() || fs::path(name).is_absolute()) return name;
  return fs::proximate(fs::absolute(name), fs::absolute(folder)).generic_string();
}

}  // namespace

std::string problem_text(const Problem& problem, const fs::path& folder) {
  Problem shown = problem;
  for (std::string& name : shown.simulations.files) name = seen_from(folder, name);
  if (!shown.simulations.command.empty()) {
    fs::path start =
        shown.simulations.folder.empty() ? shown.file.parent_path() : fs::path(shown.simulations.folder);
    if (start.empty()) start = fs::current_path();
    shown.simulations.folder = fs::proximate(fs::absolute(start), fs::absolute(folder)).generic_string();
  }
  shown.simulations.library = seen_from(folder, shown.simulations.library);
  shown.simulations.scratch = seen_from(folder, shown.simulations.scratch);
  shown.simulations.campaign = seen_from(folder, shown.simulations.campaign);
  shown.observation.file = seen_from(folder, shown.observation.file);
  OptionTable table;
  describe(table, shown);
  std::string text;
  const bool has_task = !shown.simulations.task.empty();
  const bool makes_rows =
      has_task || !shown.simulations.command.empty() || !shown.simulations.library.empty();
  if (!has_task)
    text += parameters_text(shown.parameters, seen_from(folder, shown.parameters.from_samples.string()));
  std::string section;
  for (const OptionEntry& entry : table.entries()) {
    const OptionValue value = entry.current();
    const auto* word = std::get_if<std::string>(&value);
    const auto* list = std::get_if<std::vector<std::string>>(&value);
    if ((word && word->empty()) || (list && list->empty())) continue;
    if (entry.name == "num_simulations" && !makes_rows && !shown.simulations.num_simulations_given) continue;
    if (entry.section != section)
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section = entry.section);
    std::string value_text = word ? toml_text(*word) : option_value_text(value);
    if (list) {
      std::vector<std::string> quoted;
      for (const std::string& item : *list) quoted.push_back(toml_text(item));
      value_text = fmt::format("[{}]", fmt::join(quoted, ", "));
    }
    text += fmt::format("{} = {}\n", entry.name, value_text);
  }
  return text;
}

}  // namespace nrec
