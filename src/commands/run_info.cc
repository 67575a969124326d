#include "commands/run_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "commands/listing.h"
#include "nrec/commands/posterior_table.h"

namespace nrec {

namespace {

// In this order; what a run does not have is left out.
constexpr std::array kEntries = {"command_line",
                                 "created_at",
                                 "status",
                                 "message",
                                 "seed",
                                 "isa",
                                 "precision",
                                 "threads",
                                 "parameters",
                                 "prior",
                                 "inputs.files",
                                 "simulations.source",
                                 "simulations.num_rows",
                                 "simulations.num_failed",
                                 "simulations.dim_x",
                                 "training.status",
                                 "training.num_epochs",
                                 "training.best_epoch",
                                 "training.best_validation_loss",
                                 "training.seconds",
                                 "training.warnings",
                                 "sampling.status",
                                 "sampling.message",
                                 "sampling.seconds",
                                 "sampling.log_z",
                                 "observations.count",
                                 "observations.complete"};

template <class Value>
Value entry(const Record& record, std::string_view name) {
  const RecordValue* value = record.find(name);
  const Value* found = value ? std::get_if<Value>(value) : nullptr;
  return found ? *found : Value();
}

using Texts = std::vector<std::string>;
using Numbers = std::vector<double>;

bool is_empty(const RecordValue& value) {
  return std::visit(
      [](const auto& of) {
        if constexpr (requires { of.empty(); }) return of.empty();
        return false;
      },
      value);
}

void add_lines(const std::string& text, std::vector<std::string>& lines) {
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
}

void add_marginals(const Record& record, std::vector<std::string>& lines) {
  std::vector<MarginalSummary> marginals;
  for (const std::string& name : entry<Texts>(record, "marginals.name")) marginals.push_back({.name = name});
  const auto fill = [&](std::string_view name, double MarginalSummary::*member) {
    const auto values = entry<Numbers>(record, name);
    for (std::size_t i = 0; i < marginals.size(); ++i)
      marginals[i].*member = i < values.size() ? values[i] : std::numeric_limits<double>::quiet_NaN();
  };
  fill("marginals.mean", &MarginalSummary::mean);
  fill("marginals.sd", &MarginalSummary::sd);
  fill("marginals.quantile05", &MarginalSummary::quantile05);
  fill("marginals.quantile50", &MarginalSummary::quantile50);
  fill("marginals.quantile95", &MarginalSummary::quantile95);
  fill("marginals.ess", &MarginalSummary::ess);
  if (!marginals.empty()) add_lines("\n" + posterior_table(marginals), lines);
}

void add_verdict(const Record& record, std::vector<std::string>& lines) {
  SaidVerdict said{
      entry<std::string>(record, "check.verdict"), entry<std::string>(record, "check.sentence"), {}};
  if (said.verdict.empty()) return;
  const auto names = entry<Texts>(record, "check.items.name");
  const auto verdicts = entry<Texts>(record, "check.items.verdict");
  const auto sentences = entry<Texts>(record, "check.items.sentence");
  for (std::size_t i = 0; i < std::min({names.size(), verdicts.size(), sentences.size()}); ++i)
    said.items.push_back({names[i], verdicts[i], sentences[i]});
  add_lines("\n" + verdict_text(said), lines);
}

/// Whether an entry says something: no empty list or text, no best epoch of none.
bool says_something(const Record& record, std::string_view name, const RecordValue& value) {
  if (name.starts_with("training.best_") && entry<std::int64_t>(record, "training.best_epoch") < 1)
    return false;
  return !is_empty(value);
}

}  // namespace

bool is_run(const Record& record) {
  constexpr std::array<std::string_view, 4> kCommands = {"infer", "train", "sample", "check"};
  return std::ranges::count(kCommands, entry<std::string>(record, "command")) > 0;
}

std::vector<std::string> run_lines(const std::filesystem::path& path, const Record& record) {
  std::vector<std::string> lines = {info_line("record", path.string())};
  for (const char* name : kEntries) {
    const RecordValue* value = record.find(name);
    if (value && says_something(record, name, *value)) lines.push_back(info_line(name, *value));
  }
  add_marginals(record, lines);
  add_verdict(record, lines);
  lines.insert(lines.end(),
               {"", fmt::format("(--all shows all {} entries, --json as JSON)", record.entries().size())});
  return lines;
}

}  // namespace nrec
