#include "nrec/diagnostics/visible_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "nrec/core/error.h"
#include "nrec/core/options.h"
#include "nrec/diagnostics/uniformity.h"

namespace nrec {

namespace {
constexpr double kPower = 0.9;
}

VisibleErrors visible_errors(std::size_t n, double level, double chance_share) {
  if (!(level > 0.0 && level < 1.0))
    throw DomainError("visible_errors: level = " + number_text(level) + " must be in (0, 1)");
  if (!(chance_share >= 0.0 && chance_share <= 1.0))
    throw DomainError("visible_errors: chance_share = " + number_text(chance_share) + " must be in [0, 1]");
  const double rows = static_cast<double>(n) * (1.0 - chance_share) * (1.0 - chance_share);
  if (!(rows > 0.0)) return {std::numeric_limits<double>::infinity(), 0.0};
  const double errors = normal_quantile(1.0 - 0.5 * level) + normal_quantile(kPower);
  VisibleErrors visible;
  visible.shift = std::numbers::sqrt2 * normal_quantile(std::min(1.0, 0.5 + errors / std::sqrt(12.0 * rows)));
  UniformityTest narrow;
  narrow.spread = 1.0 + 12.0 * errors / std::sqrt(180.0 * rows);
  visible.narrow = narrow.width();
  return visible;
}

}  // namespace nrec
