#include "commands/draws_netcdf.h"

#include <algorithm>
#include <limits>
#include <string>

namespace nrec {

namespace {

using Reals = std::vector<double>;
using Texts = std::vector<std::string>;

/// Axes of the draws: chain and draw, and observation where there is a batch. Chains of a batch are kept apart when all
/// observations have equally many of equal length; else each is one chain, with nan behind a shorter one.
class Axes {
 public:
  Axes(const std::vector<PosteriorDraws>& all, bool is_batch) : all_(all), is_batch_(is_batch) {
    const PosteriorDraws& first = all[0];
    bool are_alike = true;
    std::size_t most = 0;
    for (const PosteriorDraws& draws : all) {
      are_alike = are_alike && draws.num_chains == first.num_chains && draws.size() == first.size();
      most = std::max(most, draws.size());
    }
    chains_ = are_alike ? first.num_chains : 1;
    length_ = most / chains_;
  }

  Texts names() const { return is_batch_ ? Texts{"chain", "draw", "observation"} : Texts{"chain", "draw"}; }
  std::vector<NetcdfDimension> dimensions() const {
    std::vector<NetcdfDimension> axes = {{"chain", chains_}, {"draw", length_}};
    if (is_batch_) axes.push_back({"observation", all_.size()});
    return axes;
  }
  /// Values [chain, draw(, observation)] of what `value_of(draws)` lists for each draw.
  template <typename ValueOf>
  Reals values(ValueOf value_of) const {
    Reals values(chains_ * length_ * all_.size(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t o = 0; o < all_.size(); ++o) {
      const Reals of_draws = value_of(all_[o]);
      for (std::size_t s = 0; s < of_draws.size(); ++s) values[s * all_.size() + o] = of_draws[s];
    }
    return values;
  }

 private:
  const std::vector<PosteriorDraws>& all_;
  bool is_batch_;
  std::size_t chains_ = 1, length_ = 0;
};

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

NetcdfGroup with_samples(std::string name, const Axes& axes, NetcdfAttributes attributes) {
  NetcdfGroup group = {.name = std::move(name), .dimensions = axes.dimensions(), .variables = {}};
  group.attributes = std::move(attributes);
  group.attributes.emplace_back("sample_dims", Texts{"chain", "draw"});
  return group;
}

NetcdfGroup posterior_group(const std::vector<PosteriorDraws>& all, const Axes& axes,
                            NetcdfAttributes attributes) {
  NetcdfGroup group = with_samples("posterior", axes, std::move(attributes));
  Texts taken = axes.names();
  const Texts& names = all[0].names;
  for (std::size_t d = 0; d < all[0].theta.cols(); ++d) {
    const std::string& name = d < names.size() ? names[d] : "theta_" + std::to_string(d + 1);
    taken.push_back(netcdf_name(name, taken));
    group.variables.push_back({.name = taken.back(),
                               .dimensions = axes.names(),
                               .values = axes.values([d](const PosteriorDraws& draws) {
                                 Reals column(draws.size());
                                 for (std::size_t s = 0; s < column.size(); ++s)
                                   column[s] = draws.theta(s, d);
                                 return column;
                               })});
    if (taken.back() != name) group.variables.back().attributes.emplace_back("long_name", Texts{name});
  }
  return group;
}

Reals unnormalised_density(const PosteriorDraws& draws, const Prior& prior) {
  Reals density(draws.size());
  prior.log_prob(draws.theta, density);
  for (std::size_t s = 0; s < density.size(); ++s) density[s] += draws.log_ratio[s];
  return density;
}

NetcdfGroup statistics_group(const std::vector<PosteriorDraws>& all, const Axes& axes, const Prior& prior,
                             NetcdfAttributes attributes) {
  NetcdfGroup group = with_samples("sample_stats", axes, std::move(attributes));
  if (all.size() == 1) group.attributes.emplace_back("sampler", Texts{all[0].method});
  const auto add = [&](const std::string& name, NetcdfValues values) {
    group.variables.push_back({.name = name, .dimensions = axes.names(), .values = std::move(values)});
  };
  add("log_ratio", axes.values([](const PosteriorDraws& draws) { return draws.log_ratio; }));
  if (prior.has_density())
    add("lp", axes.values([&](const PosteriorDraws& draws) { return unnormalised_density(draws, prior); }));
  if (all.size() > 1) return group;
  for (const auto& [name, values] : all[0].per_draw) {
    if (name == "diverging") {  // a truth value in the schema of ArviZ
      std::vector<bool> truths;
      for (const double value : values) truths.push_back(value != 0.0);
      add(name, std::move(truths));
    } else {
      add(name, values);
    }
  }
  return group;
}

NetcdfGroup observed_group(const Observation& observation, NetcdfAttributes attributes) {
  const Matrix<double>& x = observation.x_o;
  NetcdfGroup group = {.name = "observed_data", .dimensions = {{"x_dim_0", x.cols()}}, .variables = {}};
  group.attributes = std::move(attributes);
  Texts axes = {"x_dim_0"};
  if (observation.rows != ObservationRows::one) {
    const std::string rows = observation.rows == ObservationRows::batch ? "observation" : "row";
    group.dimensions.insert(group.dimensions.begin(), {rows, x.rows()});
    axes.insert(axes.begin(), rows);
  }
  group.variables.push_back({.name = "x", .dimensions = std::move(axes), .values = x.values()});
  return group;
}

}  // namespace

std::vector<NetcdfGroup> draws_groups(const std::vector<PosteriorDraws>& all, const Prior& prior,
                                      const Observation& observation, const Record& record) {
  const NetcdfAttributes attributes = provenance(record);
  const Axes axes(all, observation.rows == ObservationRows::batch);
  return {posterior_group(all, axes, attributes), statistics_group(all, axes, prior, attributes),
          observed_group(observation, attributes)};
}

}  // namespace nrec
