#include "nrec/inference/posterior_draws.h"

#include <array>
#include <limits>

namespace nrec {

std::string_view sampling_status_name(SamplingStatus status) {
  switch (status) {
    case SamplingStatus::complete:
      return "complete";
    case SamplingStatus::budget_spent:
      return "budget spent";
    case SamplingStatus::stopped:
      return "stopped";
    case SamplingStatus::chains_disagree:
      return "chains disagree";
    case SamplingStatus::no_support:
      return "no support";
    case SamplingStatus::weights_unreliable:
      break;
  }
  return "weights unreliable";
}

std::optional<SamplingStatus> sampling_status(std::string_view name) {
  using enum SamplingStatus;
  for (const SamplingStatus status :
       {complete, budget_spent, stopped, chains_disagree, no_support, weights_unreliable}) {
    if (sampling_status_name(status) == name) return status;
  }
  return std::nullopt;
}

bool is_final(SamplingStatus status) {
  using enum SamplingStatus;
  return status == complete || status == chains_disagree || status == no_support;
}

PosteriorDraws with_fixed_columns(PosteriorDraws draws, const ConditionedPrior& conditioned) {
  draws.theta = conditioned.all_columns(draws.theta);
  draws.names = conditioned.names;
  for (const char* name : std::array{"r_hat", "ess_bulk", "ess_tail", "mcse_mean", "mcse_sd"}) {
    const RecordValue* value = draws.statistics.find(name);
    const auto* free = value ? std::get_if<std::vector<double>>(value) : nullptr;
    if (!free || free->size() != conditioned.free_columns.size()) continue;
    std::vector<double> all(conditioned.names.size(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t j = 0; j < free->size(); ++j) all[conditioned.free_columns[j]] = (*free)[j];
    draws.statistics.set(name, all);
  }
  return draws;
}

}  // namespace nrec
