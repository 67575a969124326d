#include "experiments/experiment_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "commands/flag_lists.h"
#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/core/suggest.h"
#include "nrec/tasks/benchmark_files.h"
#include "nrec/tasks/task.h"

namespace nrec {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kGridRows = 22'528;  // 22 mini-batches of 1024: 20 for training, 2 for validation
constexpr std::int64_t kQuickRows = kGridRows / 4;
constexpr double kGridValidation = 2.0 / 22.0;
constexpr int kGridBatch = 1024;
constexpr int kFaithfulSteps = 21;  // of NRE-C in the regime joint
constexpr int kQuickEpochs = 20, kMediumEpochs = 300, kFullEpochs = 1000;
constexpr int kQuickDraws = 1000;

const std::vector<std::string> kRegimeNames = {"fixed", "prior", "joint"};
const std::vector<std::string> kArchitectures = {"small", "large"};
const std::vector<std::string> kSizes = {"quick", "medium", "full"};
const std::vector<std::string> kGridTasks = {"slcp", "two_moons", "gaussian_mixture"};
const std::vector<double> kAllGammas = {1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0};
const std::vector<double> kSomeGammas = {1e-3, 1.0, 100.0};
const std::vector<int> kAllCounts = {2, 10, 25, 50, 75, 100, 150, 200};
const std::vector<int> kSomeCounts = {2, 10, 25, 100};
const std::vector<int> kQuickCounts = {2, 10, 25};

/// A grid of networks: every combination.
struct Block {
  std::vector<std::string> tasks = {"slcp"}, regimes = {"fixed"}, architectures = {"large"};
  std::vector<double> gammas;
  std::vector<int> counts;
  bool with_nre_b = true;
  bool is_measured = false;
};

Block slcp_grid(std::string_view size) {
  Block block;
  block.gammas = size == "full" ? kAllGammas : kSomeGammas;
  block.counts = size == "full" ? kAllCounts : size == "medium" ? kSomeCounts : kQuickCounts;
  if (size == "quick") block.architectures = {"small"};
  return block;
}

std::vector<Block> c2st_blocks(std::string_view size) {
  Block slcp = slcp_grid(size);
  slcp.is_measured = true;
  if (size == "full") {
    slcp.tasks = kGridTasks;
    slcp.regimes = kRegimeNames;
    slcp.architectures = kArchitectures;
    return {slcp};
  }
  Block moons = {.tasks = {"two_moons"}, .regimes = kRegimeNames, .gammas = {1.0}, .counts = {2, 10, 100}};
  moons.with_nre_b = false;
  moons.is_measured = true;
  if (size == "medium") return {slcp, moons};
  moons.architectures = {"small"};
  moons.counts = {2, 10};
  return {moons};
}

std::vector<Block> loss_blocks(std::string_view size, const char* regime) {
  Block block = slcp_grid(size);
  block.regimes = {regime};
  block.with_nre_b = false;
  if (size == "full") {
    block.tasks = kGridTasks;
    block.architectures = kArchitectures;
  } else if (size == "medium") {
    block.tasks = {"slcp", "two_moons"};
    block.counts = {2, 25};
  } else {
    block.counts = {2, 10};
  }
  return {block};
}

std::vector<Block> blocks_of(const std::string& name, std::string_view size) {
  Block grid = slcp_grid(size);
  if (name == "fig1" || name == "fig13") {
    grid.is_measured = true;
    grid.with_nre_b = name == "fig1";
    return {grid};
  }
  if (name == "fig4" || name == "fig6") return c2st_blocks(size);
  if (name == "fig5") {
    grid.gammas = kSomeGammas;
    if (size != "quick") grid.counts = {2, 25, size == "full" ? 200 : 100};
    return {grid};
  }
  if (name == "fig7") return loss_blocks(size, "joint");
  if (name == "fig8") return loss_blocks(size, "prior");
  if (name == "fig9") return loss_blocks(size, "fixed");
  if (name == "fig10" || name == "fig11") grid.with_nre_b = false;
  if (name == "convergence") {
    grid.gammas = {1.0};
    grid.counts = {size == "quick" ? 10 : size == "medium" ? 25 : 100};
  }
  return {grid};  // fig10, fig11, fig12, fig14, convergence
}

/// What the user asked for instead of the experiment's own lists.
void narrow(Block& block, const ExperimentOptions& options) {
  if (!options.tasks.empty()) block.tasks = task_list(options.tasks);
  if (!options.regimes.empty()) block.regimes = known_words("--regimes", options.regimes, kRegimeNames);
  if (!options.architectures.empty())
    block.architectures = known_words("--architectures", options.architectures, kArchitectures);
  if (!options.gammas.empty()) block.gammas = positive_numbers("--gammas", options.gammas);
  if (!options.counts.empty()) {
    block.counts.clear();
    for (const std::int64_t count : whole_numbers("--counts", options.counts, 2, 1e6))
      block.counts.push_back(static_cast<int>(count));
  }
}

bool is_table_of_networks(const std::string& name) { return name.starts_with("table") || name == "verdicts"; }

/// Settings that an experiment holds or varies itself.
bool is_decided(const std::string& name, const OptionOverride& flag) {
  if (flag.name == "loss" || flag.name == "fix" || flag.name == "regime") return true;
  if (is_table_of_networks(name)) return false;
  if (flag.name == "num_classes" || flag.name == "gamma" || flag.name == "hidden_features" ||
      flag.name == "num_blocks")
    return true;
  return (name == "convergence" && flag.name == "gradients") ||
         (name == "fig11" && flag.name == "select_epoch");
}

/// Stores the user's settings in a network's options.
void apply_settings(const ExperimentOptions& experiment, BenchmarkOptions& options) {
  OptionTable table;
  describe(table, options.network);
  describe(table, options.training);
  describe(table, options.sampling);
  for (const OptionOverride& flag : experiment.settings) {
    if (is_decided(experiment.name, flag))
      throw UsageError(
          fmt::format("{}: is what an experiment varies or holds; narrow its grid by --gammas, "
                      "--counts, --architectures, --regimes instead",
                      flag.where));
    apply(flag, table);
  }
}

/// Builds the cells of one experiment.
class Planner {
 public:
  explicit Planner(const ExperimentOptions& options) : options_(options) {
    for (const std::int64_t seed : experiment_seeds(options))
      seeds_.push_back(static_cast<std::uint64_t>(seed));
  }

  ExperimentPlan grid() {
    for (Block& block : blocks_of(options_.name, options_.size)) {
      narrow(block, options_);
      add(block);
    }
    return std::move(plan_);
  }

  /// Networks of the tables and of the verdicts: one per task, budget and seed, all measured.
  ExperimentPlan benchmark_cells() {
    const bool is_quick = options_.size == "quick";
    const std::vector<std::string> tasks = !options_.tasks.empty() ? task_list(options_.tasks)
                                           : is_quick
                                               ? std::vector<std::string>{"two_moons", "gaussian_linear"}
                                               : task_names();
    std::vector<std::string> budgets = options_.budgets;
    if (budgets.empty())
      budgets = is_quick                    ? std::vector<std::string>{"500"}
                : options_.size == "medium" ? std::vector<std::string>{"1000", "10000"}
                                            : std::vector<std::string>{"1000", "10000", "100000"};
    for (const std::int64_t budget : whole_numbers("--budgets", budgets, 10, 1e9)) {
      for (const std::string& task : tasks) {
        for (const std::uint64_t seed : seeds_) add_benchmark_cell(task, budget, seed);
      }
    }
    return std::move(plan_);
  }

 private:
  void add(const Block& block) {
    for (const std::string& task : block.tasks) {
      for (const std::string& regime : block.regimes) {
        for (const std::string& architecture : block.architectures) {
          for (const std::uint64_t seed : seeds_) {
            for (const int count : block.counts) {
              for (const double gamma : block.gammas)
                add_cell(block, task, regime, architecture, seed, gamma, count);
              if (block.with_nre_b) add_cell(block, task, regime, architecture, seed, kInfinity, count);
            }
          }
        }
      }
    }
  }

  void add_cell(const Block& block, const std::string& task, const std::string& regime,
                const std::string& architecture, std::uint64_t seed, double gamma, int count) {
    const bool is_b = std::isinf(gamma);
    ExperimentCell cell;
    cell.cell = {task, is_b ? "nre-b" : "nre-c", options_.size == "quick" ? kQuickRows : kGridRows, seed};
    cell.regime = regime;
    cell.architecture = architecture;
    cell.gamma = gamma;
    cell.count = count;
    cell.is_measured = block.is_measured;
    BenchmarkOptions& options = cell.options;
    options.settings = "published";
    use_settings(options);
    options.network = {.hidden_features = architecture == "small" ? 50 : 128,
                       .num_blocks = architecture == "small" ? 2 : 3,
                       .norm = "batch"};
    TrainingOptions& training = options.training;
    training.regime = regime;
    training.num_classes = is_b ? count : count - 1;
    training.gamma = is_b ? 1.0 : gamma;
    training.training_batch_size = kGridBatch;
    training.validation_fraction = kGridValidation;
    training.max_num_epochs = options_.size == "quick"    ? kQuickEpochs
                              : options_.size == "medium" ? kMediumEpochs
                                                          : kFullEpochs;
    training.stop_after_epochs = 0;
    const std::size_t held_out =
        validation_rows(static_cast<std::size_t>(cell.cell.budget), kGridValidation, 0).size();
    training.information_thetas = static_cast<int>(std::min<std::size_t>(held_out, kGridBatch)) - 1;
    training.information_epochs = "log";
    if (options_.name == "fig11") training.select_epoch = "nre-a";
    if (options_.size == "quick") options.sampling.num_samples = kQuickDraws;
    const bool both_ways = options_.name == "convergence" && !is_b;
    finish(cell, options_.faithful && !both_ways);
    if (!both_ways) return;
    cell.options.training.gradients = "accumulate";
    finish(cell, false);
  }

  void add_benchmark_cell(const std::string& task, std::int64_t budget, std::uint64_t seed) {
    ExperimentCell cell;
    cell.cell = {task, "nre-c", budget, seed};
    cell.regime = "fixed";
    cell.architecture = "large";
    cell.is_measured = true;
    const bool is_table = options_.name != "verdicts";
    if (is_table || options_.faithful) cell.options.settings = "published";
    use_settings(cell.options);
    if (is_table && options_.size == "full") {
      cell.options.training.max_num_epochs = kFullEpochs;
      cell.options.training.stop_after_epochs = 0;
    }
    if (options_.size == "quick") {
      cell.architecture = "small";
      cell.options.network = {.hidden_features = 50, .num_blocks = 2, .norm = "layer"};
      cell.options.training.num_classes = 9;
      cell.options.training.max_num_epochs = kQuickEpochs;
      cell.options.sampling.num_samples = kQuickDraws;
    }
    cell.count = cell.options.training.num_classes + 1;
    finish(cell, options_.faithful);
  }

  void finish(ExperimentCell cell, bool is_faithful) {
    TrainingOptions& training = cell.options.training;
    if (is_faithful) {
      cell.options.component_per_call = true;
      training.contrast = "independent";
      if (!cell.is_nre_b()) {
        training.gradients = "accumulate";
        training.standardise_from = "first_batch";
        if (training.regime == "joint") training.steps_per_epoch = kFaithfulSteps;
      }
    }
    apply_settings(options_, cell.options);
    cell.options.training.loss = cell.cell.algorithm;
    cell.count = cell.options.training.num_classes + (cell.is_nre_b() ? 0 : 1);
    cell.options.sbibm = options_.sbibm;
    plan_.cells.push_back(std::move(cell));
  }

  const ExperimentOptions& options_;
  std::vector<std::uint64_t> seeds_;
  ExperimentPlan plan_;
};

/// A flag that an experiment has no use for would otherwise be taken without effect.
void refuse_idle_flags(const ExperimentOptions& options) {
  const std::string& name = options.name;
  const bool is_table = is_table_of_networks(name), is_toy = name == "fig3";
  const bool has_networks = !options.benchmark.empty();
  const auto refuse = [&](bool is_idle, const std::vector<std::string>& words, const char* flag) {
    if (is_idle && !words.empty())
      throw UsageError(fmt::format("{}: has no effect on {}{}; leave it out", flag, name,
                                   has_networks ? " with --benchmark" : ""));
  };
  const auto word = [](const std::string& text) {
    return text.empty() ? std::vector<std::string>() : std::vector<std::string>{text};
  };
  refuse(is_toy || has_networks, options.tasks, "--tasks");
  refuse(is_toy || is_table, options.regimes, "--regimes");
  refuse(is_toy || is_table, options.architectures, "--architectures");
  refuse(is_toy || is_table, options.gammas, "--gammas");
  refuse(is_toy || is_table, options.counts, "--counts");
  refuse(!is_table || has_networks, options.budgets, "--budgets");
  refuse(is_toy || has_networks, options.observations, "--observations");
  refuse(is_toy || has_networks, word(options.sbibm), "--sbibm");
  refuse(has_networks, options.seeds, "--seeds");
  const bool holds_regime = name == "fig7" || name == "fig8" || name == "fig9";
  refuse(holds_regime, options.regimes, "--regimes");
  for (const OptionOverride& flag : options.settings) {
    if (has_networks || (is_toy && flag.section == "sampling"))
      refuse(true, {flag.where}, flag.where.c_str());
  }
}

}  // namespace

std::vector<std::int64_t> experiment_seeds(const ExperimentOptions& options) {
  return whole_numbers("--seeds", options.seeds.empty() ? std::vector<std::string>{"1"} : options.seeds, 0,
                       9e15);
}

std::string ExperimentCell::text() const {
  std::string text = fmt::format("{} {} {} {}", cell.task, regime, architecture, cell.algorithm);
  if (!is_nre_b()) text += fmt::format(" gamma {}", gamma);
  text += fmt::format(" count {} simulations {}", count, cell.budget);
  if (options.training.gradients != "reset") text += " " + options.training.gradients;
  return text + fmt::format(" seed {}", cell.seed);
}

std::string ExperimentCell::family() const {
  return is_nre_b() ? std::string("NRE-B") : fmt::format("gamma {}", gamma);
}

ExperimentPlan experiment_plan(const ExperimentOptions& options) {
  const auto& known = experiments();
  if (std::none_of(known.begin(), known.end(), [&](const auto& one) { return one.name == options.name; })) {
    std::vector<std::string> names;
    for (const ExperimentInfo& one : known) names.push_back(one.name);
    const std::string nearest = nearest_word(options.name, names);
    throw UsageError(fmt::format("experiment \"{}\" is unknown; nrec experiment list names them all{}",
                                 options.name,
                                 nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest)));
  }
  refuse_idle_flags(options);
  ExperimentPlan plan;
  if (options.name != "fig3") {  // it has networks of its own
    Planner planner(options);
    plan = is_table_of_networks(options.name) ? planner.benchmark_cells() : planner.grid();
  }
  plan.name = options.name;
  plan.is_quick = options.size == "quick";
  std::vector<std::string> numbers = options.observations;
  if (numbers.empty()) numbers = {plan.is_quick ? "1-2" : "1-10"};
  for (const std::int64_t number :
       whole_numbers("--observations", numbers, 1, options.sbibm.empty() ? 1e6 : kNumBenchmarkObservations))
    plan.observations.push_back(static_cast<int>(number));
  return plan;
}

}  // namespace nrec
