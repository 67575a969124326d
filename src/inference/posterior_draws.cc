#include "nrec/inference/posterior_draws.h"

#include <array>
#include <limits>

namespace nrec {

PosteriorDraws with_fixed_columns(PosteriorDraws draws, const ConditionedPrior& conditioned) {
  draws.theta = conditioned.all_columns(draws.theta);
  draws.names = conditioned.names;
  for (const char* name : std::array{"r_hat", "ess_bulk", "ess_tail"}) {
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
