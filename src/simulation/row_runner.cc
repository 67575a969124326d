#include "nrec/simulation/row_runner.h"

#include <algorithm>
#include <cmath>

#include "nrec/core/options.h"
#include "nrec/core/random.h"

namespace nrec {

std::uint32_t row_seed(std::uint64_t seed, std::uint64_t row) {
  return RandomStream(seed, Stream::row_seed, row).bits32() >> 1;
}

std::string non_finite_reason(std::span<const double> x) {
  const auto bad = std::ranges::find_if(x, [](double value) { return !std::isfinite(value); });
  if (bad == x.end()) return "";
  return "x[" + std::to_string(bad - x.begin()) + "] = " + number_text(*bad);
}

}  // namespace nrec
