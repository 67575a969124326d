#include <gtest/gtest.h>

#include <functional>

#include "simulation/tests/campaign_examples.h"

namespace nrec::simulation {
namespace {

using Sentences = std::vector<std::string>;

// What is said when one thing of the example is changed.
Sentences after(const std::function<void(CampaignIdentity&)>& change) {
  CampaignIdentity wanted = example_identity();
  change(wanted);
  return differences(example_identity(), wanted);
}

TEST(CampaignIdentity, CountsTheNumbersOfX) {
  CampaignIdentity identity = example_identity();
  EXPECT_EQ(identity.dim_theta(), 2u);
  identity.x_shape = {3, 4, 5};
  EXPECT_EQ(identity.dim_x(), 60u);
  identity.x_shape = {3, 0};
  EXPECT_EQ(identity.dim_x(), 0u);
}

TEST(CampaignIdentity, RefusesAShapeBeyondMemory) {
  CampaignIdentity identity = example_identity();
  identity.x_shape = {std::size_t{1} << 40, std::size_t{1} << 30};
  EXPECT_EQ(
      message_of<ShapeError>([&] { identity.dim_x(); }),
      "campaign: x of a row has shape [1099511627776, 1073741824]; that is more than a computer can hold");
}

TEST(Differences, AreNoneBetweenEqualIdentities) {
  EXPECT_EQ(after([](CampaignIdentity&) {}), Sentences());
}

TEST(Differences, AreOneSentencePerFieldWithBothValues) {
  EXPECT_EQ(after([](auto& identity) { identity.seed = 8; }), Sentences{"the seed was 7 and is now 8"});
  EXPECT_EQ(after([](auto& identity) {
              identity.parameter_names = {"rate", "mass"};
            }),
            Sentences{"the list of parameters was \"mass\", \"rate\" and is now \"rate\", \"mass\""});
  EXPECT_EQ(after([](auto& identity) { identity.prior = {}; }),
            Sentences{"the prior was \"mass ~ uniform(0, 1)\", \"rate ~ normal(0, 2)\" and is now nothing"});
  EXPECT_EQ(after([](auto& identity) { identity.simulator = "./other"; }),
            Sentences{"the simulator was \"./decay --mass {mass}\" and is now \"./other\""});
  EXPECT_EQ(
      after([](auto& identity) { identity.simulator_hash = "fnv1a64:2"; }),
      Sentences{
          "the fingerprint of the simulator's files was fnv1a64:0000000000000001 and is now fnv1a64:2"});
  EXPECT_EQ(after([](auto& identity) {
              identity.x_shape = {2, 3};
            }),
            Sentences{"the shape of x was [3] and is now [2, 3]"});
}

TEST(Differences, AreAllTold) {
  EXPECT_EQ(after([](auto& identity) { identity = {.seed = 1, .parameter_names = {"a"}}; }).size(), 6u);
}

}  // namespace
}  // namespace nrec::simulation
