#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "nrec/core/error.h"
#include "nrec/simulation/campaign_store.h"

namespace nrec {
namespace {

// "[3, 4]"
std::string shape_text(const std::vector<std::size_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// "\"a\", \"b\""
std::string list_text(const std::vector<std::string>& items) {
  if (items.empty()) return "nothing";
  return fmt::format("\"{}\"", fmt::join(items, "\", \""));
}

std::string sentence(std::string_view field, const std::string& stored, const std::string& wanted) {
  return fmt::format("{} was {} and is now {}", field, stored, wanted);
}

}  // namespace

std::size_t CampaignIdentity::dim_x() const {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / sizeof(double);
  std::size_t product = 1;
  for (const std::size_t extent : x_shape) {
    if (extent != 0 && product > kMost / extent) {
      throw ShapeError(fmt::format("campaign: x of a row has shape {}; that is more than a computer can hold",
                                   shape_text(x_shape)));
    }
    product *= extent;
  }
  return product;
}

std::vector<std::string> differences(const CampaignIdentity& stored, const CampaignIdentity& wanted) {
  std::vector<std::string> found;
  if (stored.seed != wanted.seed) {
    found.push_back(sentence("the seed", std::to_string(stored.seed), std::to_string(wanted.seed)));
  }
  if (stored.parameter_names != wanted.parameter_names) {
    found.push_back(sentence("the list of parameters", list_text(stored.parameter_names),
                             list_text(wanted.parameter_names)));
  }
  if (stored.prior != wanted.prior) {
    found.push_back(sentence("the prior", list_text(stored.prior), list_text(wanted.prior)));
  }
  if (stored.simulator != wanted.simulator) {
    found.push_back(sentence("the simulator", '"' + stored.simulator + '"', '"' + wanted.simulator + '"'));
  }
  if (stored.simulator_hash != wanted.simulator_hash) {
    found.push_back(
        sentence("the fingerprint of the simulator's files", stored.simulator_hash, wanted.simulator_hash));
  }
  if (stored.x_shape != wanted.x_shape) {
    found.push_back(sentence("the shape of x", shape_text(stored.x_shape), shape_text(wanted.x_shape)));
  }
  return found;
}

}  // namespace nrec
