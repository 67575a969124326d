// Data that cannot be used, or only with a warning: where, what, the rule, the remedy.
#include <cmath>
#include <limits>

#include "nrec/io/json.h"
#include "nrec/io/npz.h"
#include "toy_problem.h"

namespace nrec::cli {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class BadInput : public ToyTest {
 protected:
  void refuse(const Outcome& outcome, const std::string& text) const {
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    expect_in(outcome.err, text);
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(exists("p_run")) << "nothing may be left behind";
  }
};

TEST_F(BadInput, ShapesThatDoNotFit) {
  refuse(infer("[parameters]\nmass = { prior = \"uniform\", low = 0, high = 5 }\n" + kSimulations +
               kObservation),
         "theta has 2 columns but the prior has 1 parameters");
  Toy toy = toy_simulations(100);
  write_npz(folder_ / "sims.npz",
            {{"theta", to_array(toy.theta)}, {"x", to_array(toy.x.view().middle_rows(0, 99))}});
  refuse(infer(whole_), "theta has 100 rows but x has 99");
  write_npz(folder_ / "sims.npz", {{"theta", to_array(toy.theta)}, {"y", to_array(toy.x)}});
  refuse(infer(whole_), "x");
}

TEST_F(BadInput, ValuesThatAreNotFinite) {
  for (const double bad : {kNan, kInfinity}) {
    Toy toy = toy_simulations(100);
    toy.theta(3, 1) = bad;
    refuse(infer_on(toy), "theta[3, 1] (rate) = " + std::string(std::isnan(bad) ? "nan" : "inf"));
    toy = toy_simulations(100);
    toy.x(5, 2) = bad;
    const Outcome outcome = infer_on(toy);
    refuse(outcome, "1 of 100 simulations failed");
    expect_in(outcome.err, "Leaving failed rows out biases the posterior");
    expect_in(outcome.err, "--failures model learns the chance of success");
  }
  write_simulations(toy_simulations(100));
  write("x_o.csv", "2.0,nan,0.1\n");
  refuse(infer(whole_), "x_o[1] = nan; every number of an observation must be finite");
}

TEST_F(BadInput, ObservationsOfAnotherShape) {
  write("x_o.csv", "2.0,3.0\n");
  refuse(infer(whole_), "x_o has 2 numbers; the simulations have 3 columns of x");
  write("x_o.csv", "2.0,3.0,0.1\n1.0,1.0,0.1\n");
  const Outcome outcome = infer(whole_);
  refuse(outcome, "holds 2 rows of 3 numbers, but one observation is wanted");
  expect_in(outcome.err, "--row");
  refuse(infer(whole_, {"--row", "2"}), "row = 2 is not there; the file has rows 0 to 1");
  EXPECT_EQ(infer(whole_, {"--row", "1"}).code, 0);
}

TEST_F(BadInput, AnObservationFarOutsideIsWarnedAbout) {
  write("x_o.csv", "2.0,3.0,50\n");
  const Outcome outcome = infer(whole_);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err,
            "warning: the observation is outside the range of all simulations in 1 column: x_o[2] = 50");
}

TEST_F(BadInput, ConstantColumnsOfDataAreWarnedAbout) {
  for (const double constant : {3.0, -0.087}) {
    Toy toy = toy_simulations(300);
    for (std::size_t i = 0; i < 300; ++i) toy.x(i, 2) = constant;
    write("x_o.csv", "2.0,3.0," + std::to_string(constant) + "\n");
    const Outcome outcome = infer_on(toy, {"--overwrite"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    expect_in(outcome.err, "warning: constant in all simulations, so it carries no information: x[2]");
  }
}

TEST_F(BadInput, AConstantParameterIsRefused) {
  Toy toy = toy_simulations(100);
  for (std::size_t i = 0; i < 100; ++i) toy.theta(i, 1) = 2.5;
  refuse(infer_on(toy), "theta column 1 (rate) is constant");
}

TEST_F(BadInput, ThetaOutsideThePriorIsRefused) {
  Toy toy = toy_simulations(100);
  toy.theta(7, 0) = 5.5;
  refuse(infer_on(toy), "train: theta[7, 0] (mass) = 5.5 is outside the prior, ");
}

TEST_F(BadInput, FewSimulationsAreRefusedInWordsOrUsed) {
  const auto with = [&](std::size_t rows, const char* num_classes) {
    return infer_on(toy_simulations(rows),
                    {"--training-batch-size", "128", "--num-classes", num_classes, "--overwrite"});
  };
  for (const std::size_t rows : {1, 2}) {
    const Outcome outcome = with(rows, "9");
    EXPECT_EQ(outcome.code, 3) << rows;
    expect_in(outcome.err, "simulate more");
  }
  const Outcome ten = with(10, "9");
  EXPECT_EQ(ten.code, 3);
  expect_in(ten.err,
            "num_classes = 9 needs a batch of at least 10 rows but only 9 of the 10 simulations are training "
            "rows; simulate more or lower num_classes to at most 8");
  EXPECT_EQ(with(10, "5").code, 0);
  const Outcome sixty = with(60, "9");
  EXPECT_EQ(sixty.code, 0) << sixty.err;
  expect_in(sixty.err, "warning: only 6 validation rows");
}

TEST_F(BadInput, MoreClassesThanTheBatchAreRefused) {
  refuse(infer(whole_, {"--num-classes", "64"}),
         "num_classes = 64 needs a batch of at least 65 rows but training_batch_size = 64; raise it or lower "
         "num_classes to at most 63");
}

TEST_F(BadInput, ARefusalLeavesAnEarlierRunAlone) {
  ASSERT_EQ(infer(whole_).code, 0);
  const std::string estimator = content("p_run/estimator.safetensors");
  const std::string record = content("p_run/record.json");
  EXPECT_EQ(infer(whole_, {"--overwrite", "--num-classes", "64"}).code, 3);
  EXPECT_EQ(infer(whole_, {"--resume", "--gamma", "2"}).code, 3)
      << "the checkpoint belongs to other settings";
  EXPECT_EQ(content("p_run/estimator.safetensors"), estimator);
  EXPECT_EQ(content("p_run/record.json"), record);
}

TEST_F(BadInput, HugeOffsetsLoseNothing) {
  // Values on a grid of 1/1024, so that the offset itself adds no rounding.
  Toy toy = toy_simulations(400);
  for (double& value : toy.x.values()) value = std::round(value * 1024) / 1024;
  ASSERT_EQ(infer_on(toy, {"--out", "small"}).code, 0);
  for (double& value : toy.x.values()) value += 2460000.5;
  write("x_o.csv", "2460002.5,2460003.5,2460000.6\n");
  const Outcome outcome = infer_on(toy, {"--out", "huge"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto loss = [&](const char* folder) {
    const Record record = record_from_json(content(std::string(folder) + "/record.json"), "record");
    return std::get<double>(*record.find("training.best_validation_loss"));
  };
  EXPECT_NEAR(loss("huge"), loss("small"), 1e-4);
  // In float32 the offset alone would swallow the data (steps of 0.25) and change the loss by more than that.
  for (double& value : toy.x.values()) value = static_cast<float>(value);
  ASSERT_EQ(infer_on(toy, {"--out", "cast"}).code, 0);
  EXPECT_GT(std::fabs(loss("cast") - loss("small")), 1e-3);
}

TEST_F(BadInput, NewSimulationsForEveryMiniBatchNeedATask) {
  const Outcome refused = infer(whole_, {"--regime", "joint"});
  EXPECT_EQ(refused.code, 3) << refused.err;
  expect_in(refused.err,
            "regime = \"joint\" makes new simulations for every mini-batch and needs a simulator");
  EXPECT_FALSE(exists("p_run"));
  write("two.csv", "0.1,0.2\n");
  const Outcome done = run({"infer",     "--task",
                            "two_moons", "-n",
                            "500",       "--observation",
                            "two.csv",   "--regime",
                            "joint",     "--steps-per-epoch",
                            "3",         "--K",
                            "9",         "--batch-size",
                            "64",        "--norm",
                            "layer",     "--hidden-features",
                            "16",        "--num-blocks",
                            "1",         "--max-num-epochs",
                            "2",         "--num-samples",
                            "20",        "--out",
                            "joint"});
  EXPECT_EQ(done.code, 0) << done.err;
  expect_in(content("joint/record.json"),
            "\"training.num_training_rows\": 384");  // 2 epochs of 3 batches of 64
}

}  // namespace
}  // namespace nrec::cli
