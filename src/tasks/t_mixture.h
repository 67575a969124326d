#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/core/random.h"

// A mixture of multivariate Student t distributions with four degrees of freedom: what candidates are drawn from where a
// posterior is only known up to its normaliser.
namespace nrec::tasks {

class TMixture {
 public:
  // Fits `num_components` normal distributions to points by expectation maximisation and takes their means and
  // covariances for the t distributions. Covariances are drawn towards that of all points, so that a component that
  // gathers few of them stays proper. A pure function of its arguments. Cost O(points x components x dim^2).
  static TMixture fit(MatrixView<const double> points, std::size_t num_components, std::uint64_t seed);

  void draw(RandomStream& random, std::span<double> point) const;
  // Natural log of the normalised density. Needs dim numbers of scratch.
  double log_density(std::span<const double> point, std::span<double> scratch) const;
  std::size_t num_components() const { return components_.size(); }

 private:
  struct Component {
    double weight;
    double log_constant;  // of log_weight + log density, without the part that depends on the point
    std::vector<double> mean;
    Matrix<double> factor;  // lower Cholesky factor of the scale matrix
  };
  std::vector<Component> components_;
};

}  // namespace nrec::tasks
