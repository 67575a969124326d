#pragma once
// Rows, candidates and networks that the tests of this room share.

#include "nrec/core/random.h"
#include "nrec/networks/pair_network.h"
#include "nrec/networks/pair_step.h"

namespace nrec::testing {

/// Random rows and candidate lists, kept alive with the view on them.
struct Problem {
  Matrix<float> theta, x;
  Matrix<std::uint32_t> candidates;
  PairBatch batch;

  Problem(std::size_t rows, std::size_t dim_theta, std::size_t dim_x, std::size_t columns)
      : theta(rows, dim_theta), x(rows, dim_x), candidates(rows, columns) {
    RandomStream random(2, Stream::check, rows * 1000 + columns);
    for (float& v : theta.values()) v = static_cast<float>(random.normal());
    for (float& v : x.values()) v = static_cast<float>(random.normal());
    for (std::size_t b = 0; b < rows; ++b) {
      candidates(b, 0) = static_cast<std::uint32_t>(b);
      for (std::size_t c = 1; c < columns; ++c)
        candidates(b, c) = static_cast<std::uint32_t>((b + 3 * c) % rows);
    }
    batch = {theta, x, candidates};
  }
};

/// A network whose every weight is far from zero, so that no branch of the code is silent.
inline PairNetwork busy_network(const PairNetworkShape& shape) {
  PairNetwork network = PairNetwork::initialised(shape, 1);
  auto tensors = network.tensors();
  RandomStream random(9, Stream::check);
  for (NetworkTensor& tensor : tensors) {
    for (float& value : tensor.values) {
      if (tensor.name.ends_with("running_variance")) {
        value = static_cast<float>(random.uniform(0.5, 2.0));
      } else if (tensor.name.ends_with(".gain")) {
        value = static_cast<float>(random.uniform(0.5, 1.5));
      } else {
        value += static_cast<float>(0.2 * random.normal());
      }
    }
  }
  network.set_tensors(tensors);
  return network;
}

}  // namespace nrec::testing
