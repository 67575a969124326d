#pragma once

#include <cmath>

#include "nrec/core/random.h"

namespace nrec {

/// Logarithm of a Gamma(shape, rate 1) number.
///
/// The logarithm, because a small shape puts real mass below the smallest double: G(shape) = G(shape + 1)
/// U^(1/shape). Cost     1.05 normals and 1.05 uniforms on average; the count depends on the stream Source
/// [MarsagliaTsang2000]
inline double draw_log_gamma(RandomStream& random, double shape) {
  const double boosted = shape < 1.0 ? shape + 1.0 : shape;
  const double d = boosted - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double z = random.normal();
    const double root = 1.0 + c * z;
    if (root <= 0.0) continue;
    const double log_v = 3.0 * std::log(root);
    const double v = root * root * root;
    const double log_u = std::log(random.uniform());
    if (log_u >= 0.5 * z * z + d - d * v + d * log_v) continue;
    const double log_gamma = std::log(d) + log_v;
    return shape < 1.0 ? log_gamma + std::log(random.uniform()) / shape : log_gamma;
  }
}

}  // namespace nrec
