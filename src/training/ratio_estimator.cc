#include "nrec/training/ratio_estimator.h"

#include <cmath>

#include "nrec/core/error.h"
#include "nrec/core/options.h"

namespace nrec {

void RatioEstimator::encode_theta(MatrixView<const double> theta, MatrixView<float> out) const {
  if (theta.cols != prior.dim()) {
    throw ShapeError("estimator: theta has " + std::to_string(theta.cols) + " columns; it was trained on " +
                     std::to_string(prior.dim()) + " parameters");
  }
  Matrix<double> unbounded(theta.rows, theta.cols);
  prior.to_unbounded(theta, unbounded);
  theta_standardiser.apply(unbounded, out);
}

std::vector<float> RatioEstimator::encode_x(std::span<const double> x_o) const {
  if (x_o.size() != x_standardiser.dim()) {
    throw ShapeError("observation: x_o has " + std::to_string(x_o.size()) +
                     " numbers; the simulations have " + std::to_string(x_standardiser.dim()) +
                     " columns of x; give one observation in the same order and units");
  }
  for (std::size_t j = 0; j < x_o.size(); ++j) {
    if (!std::isfinite(x_o[j]))
      throw DomainError("observation: x_o[" + std::to_string(j) + "] = " + number_text(x_o[j]) +
                        "; every number of an observation must be finite");
  }
  std::vector<float> out(x_o.size());
  x_standardiser.apply({x_o.data(), 1, x_o.size()}, {out.data(), 1, out.size()});
  return out;
}

}  // namespace nrec
