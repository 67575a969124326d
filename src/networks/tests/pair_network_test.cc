#include "nrec/networks/pair_network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nrec/core/error.h"

namespace nrec {
namespace {

const PairNetworkShape kShape = {
    .dim_theta = 2, .dim_x = 3, .hidden_features = 10, .num_blocks = 2, .norm = Norm::batch};

TEST(PairNetwork, CountsItsParametersWithoutPadding) {
  // 5 x 10 + 10 input, per block 2 (10 x 10 + 10) + 4 x 10 norm, 10 + 1 output.
  EXPECT_EQ(PairNetwork(kShape).num_parameters(), 60u + 2 * (220 + 40) + 11);
  PairNetworkShape plain = kShape;
  plain.norm = Norm::none;
  EXPECT_EQ(PairNetwork(plain).num_parameters(), 60u + 2 * 220 + 11);
}

TEST(PairNetwork, StartsWithTheStatedBoundsAndZeroPadding) {
  const PairNetwork network = PairNetwork::initialised(kShape, 3);
  for (const NetworkTensor& tensor : network.tensors()) {
    double bound = 1 / std::sqrt(10.0);
    if (tensor.name.starts_with("input")) bound = 1 / std::sqrt(5.0);
    if (tensor.name.find("linear2") != std::string::npos) bound = 1e-3;
    if (tensor.name.find("norm") != std::string::npos) bound = 1.0;
    float largest = 0;
    for (const float value : tensor.values) largest = std::max(largest, std::fabs(value));
    EXPECT_LE(largest, bound) << tensor.name;
    if (tensor.values.size() >= 20) {
      EXPECT_GT(largest, 0.8 * bound) << tensor.name;
    }
  }
  const auto weights = network.weights();
  for (std::size_t i = 0; i < 10; ++i) {
    for (std::size_t c = 10; c < network.width(); ++c)
      EXPECT_EQ(weights[network.block(0).w1 + i * network.width() + c], 0.0f);
  }
}

TEST(PairNetwork, TensorsRoundTrip) {
  const PairNetwork network = PairNetwork::initialised(kShape, 3);
  PairNetwork copy(kShape);
  copy.set_tensors(network.tensors());
  EXPECT_TRUE(std::equal(network.weights().begin(), network.weights().end(), copy.weights().begin()));
  EXPECT_TRUE(
      std::equal(network.statistics().begin(), network.statistics().end(), copy.statistics().begin()));
}

TEST(PairNetwork, IsAPureFunctionOfTheSeed) {
  const PairNetwork a = PairNetwork::initialised(kShape, 3), b = PairNetwork::initialised(kShape, 3),
                    c = PairNetwork::initialised(kShape, 4);
  EXPECT_TRUE(std::equal(a.weights().begin(), a.weights().end(), b.weights().begin()));
  EXPECT_FALSE(std::equal(a.weights().begin(), a.weights().end(), c.weights().begin()));
}

TEST(PairNetwork, RefusesDamagedTensors) {
  PairNetwork network(kShape);
  auto tensors = network.tensors();
  tensors[0].values[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(network.set_tensors(tensors), IoError);
  tensors = network.tensors();
  tensors.pop_back();
  EXPECT_THROW(network.set_tensors(tensors), IoError);
  tensors = network.tensors();
  tensors[0].shape[0] = 11;
  EXPECT_THROW(network.set_tensors(tensors), IoError);
  tensors = network.tensors();
  tensors[0].name = "input.theta.weights";
  try {
    network.set_tensors(tensors);
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("nearest known one is \"input.theta.weight\""),
              std::string::npos);
  }
  EXPECT_THROW(PairNetwork({.dim_theta = 0, .dim_x = 1}), DomainError);
  EXPECT_THROW(PairNetwork({.dim_theta = 1, .dim_x = 1, .hidden_features = 4097}), DomainError);
  EXPECT_THROW(norm_kind("group"), ConfigError);
}

}  // namespace
}  // namespace nrec
