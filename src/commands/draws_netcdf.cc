#include "commands/draws_netcdf.h"

#include <string>

namespace nrec {

namespace {

using Reals = std::vector<double>;
using Texts = std::vector<std::string>;

std::vector<NetcdfDimension> chain_and_draw(const PosteriorDraws& draws) {
  return {{"chain", draws.num_chains}, {"draw", draws.size() / draws.num_chains}};
}

/// What every group says about where it comes from.
NetcdfAttributes provenance(const Record& record) {
  NetcdfAttributes attributes;
  const auto copy = [&](const char* name, const char* from) {
    const RecordValue* value = record.find(from);
    if (const auto* text = value ? std::get_if<std::string>(value) : nullptr)
      attributes.emplace_back(name, Texts{*text});
    if (const auto* whole = value ? std::get_if<std::int64_t>(value) : nullptr)
      attributes.emplace_back(name, std::vector<std::int64_t>{*whole});
  };
  copy("created_at", "created_at");
  attributes.emplace_back("creation_library", Texts{"nrec"});
  copy("creation_library_version", "nrec_version");
  attributes.emplace_back("creation_library_language", Texts{"C++"});
  attributes.emplace_back("inference_library", Texts{"nrec"});
  copy("inference_library_version", "nrec_version");
  copy("seed", "seed");
  copy("command_line", "command_line");
  copy("estimator_hash", "estimator_hash");
  return attributes;
}

NetcdfGroup with_samples(std::string name, const PosteriorDraws& draws, NetcdfAttributes attributes) {
  NetcdfGroup group = {.name = std::move(name), .dimensions = chain_and_draw(draws), .variables = {}};
  group.attributes = std::move(attributes);
  group.attributes.emplace_back("sample_dims", Texts{"chain", "draw"});
  return group;
}

NetcdfGroup posterior_group(const PosteriorDraws& draws, NetcdfAttributes attributes) {
  NetcdfGroup group = with_samples("posterior", draws, std::move(attributes));
  Texts taken = {"chain", "draw"};
  for (std::size_t d = 0; d < draws.theta.cols(); ++d) {
    Reals column(draws.size());
    for (std::size_t s = 0; s < draws.size(); ++s) column[s] = draws.theta(s, d);
    const std::string& name = d < draws.names.size() ? draws.names[d] : "theta_" + std::to_string(d + 1);
    taken.push_back(netcdf_name(name, taken));
    group.variables.push_back(
        {.name = taken.back(), .dimensions = {"chain", "draw"}, .values = std::move(column)});
    if (taken.back() != name) group.variables.back().attributes.emplace_back("long_name", Texts{name});
  }
  return group;
}

NetcdfGroup statistics_group(const PosteriorDraws& draws, const Prior& prior, NetcdfAttributes attributes) {
  NetcdfGroup group = with_samples("sample_stats", draws, std::move(attributes));
  group.attributes.emplace_back("sampler", Texts{draws.method});
  group.variables.push_back(
      {.name = "log_ratio", .dimensions = {"chain", "draw"}, .values = draws.log_ratio});
  if (prior.has_density()) {
    Reals density(draws.size());
    prior.log_prob(draws.theta, density);
    for (std::size_t s = 0; s < density.size(); ++s) density[s] += draws.log_ratio[s];
    group.variables.push_back({.name = "lp", .dimensions = {"chain", "draw"}, .values = std::move(density)});
  }
  for (const auto& [name, values] : draws.per_draw) {
    NetcdfValues shown = values;
    if (name == "diverging") {  // a truth value in the schema of ArviZ
      std::vector<bool> truths;
      for (const double value : values) truths.push_back(value != 0.0);
      shown = std::move(truths);
    }
    group.variables.push_back({.name = name, .dimensions = {"chain", "draw"}, .values = std::move(shown)});
  }
  return group;
}

}  // namespace

std::vector<NetcdfGroup> draws_groups(const PosteriorDraws& draws, const Prior& prior,
                                      std::span<const double> x_o, const Record& record) {
  const NetcdfAttributes attributes = provenance(record);
  NetcdfGroup observed = {.name = "observed_data", .dimensions = {{"x_dim_0", x_o.size()}}, .variables = {}};
  observed.variables.push_back(
      {.name = "x", .dimensions = {"x_dim_0"}, .values = Reals(x_o.begin(), x_o.end())});
  observed.attributes = attributes;
  return {posterior_group(draws, attributes), statistics_group(draws, prior, attributes),
          std::move(observed)};
}

}  // namespace nrec
