#include "catalogue.h"

#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"
#include "nrec/core/suggest.h"

namespace nrec {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Task> (*make)(const TaskOptions&);
};

// The order of docs/methods/tasks.md. A new task joins here.
constexpr Entry kCatalogue[] = {
    {"gaussian_linear", tasks::make_gaussian_linear},
    {"gaussian_linear_uniform", tasks::make_gaussian_linear_uniform},
    {"gaussian_mixture", tasks::make_gaussian_mixture},
    {"two_moons", tasks::make_two_moons},
    {"slcp", tasks::make_slcp},
    {"slcp_distractors", tasks::make_slcp_distractors},
    {"bernoulli_glm", tasks::make_bernoulli_glm},
    {"bernoulli_glm_raw", tasks::make_bernoulli_glm_raw},
    {"sir", tasks::make_sir},
    {"lotka_volterra", tasks::make_lotka_volterra},
};

}  // namespace

std::unique_ptr<Task> make_task(std::string_view name, const TaskOptions& options) {
  for (const Entry& entry : kCatalogue) {
    if (name != entry.name) continue;
    if (options.component_per_call && name != "gaussian_mixture") {
      throw ConfigError(
          "task " + std::string(name) +
          ": component_per_call = true is a switch of gaussian_mixture alone; leave it out for this task");
    }
    return entry.make(options);
  }
  std::string text = "task = " + quoted_text(name) + " is not a known task; ";
  const std::string nearest = nearest_word(name, task_names());
  if (!nearest.empty()) text += "did you mean " + nearest + "? ";
  text += "Known tasks:";
  for (const std::string& known : task_names()) text += " " + known;
  throw ConfigError(text);
}

const std::vector<std::string>& task_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Entry& entry : kCatalogue) list.emplace_back(entry.name);
    return list;
  }();
  return names;
}

namespace tasks {

std::vector<std::string> numbered_parameters(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t d = 1; d <= count; ++d) names.push_back("parameter_" + std::to_string(d));
  return names;
}

Prior uniform_box(std::size_t count, double low, double high, const std::string& transform) {
  std::vector<PriorTerm> terms;
  for (const std::string& name : numbered_parameters(count)) {
    terms.push_back({{name}, "uniform", {{"low", {low}}, {"high", {high}}}, transform});
  }
  return Prior::from_terms(std::move(terms));
}

}  // namespace tasks
}  // namespace nrec
