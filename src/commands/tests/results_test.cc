#include "commands/results.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "commands/benchmark_cell.h"
#include "nrec/commands/info.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"

namespace nrec {
namespace {

namespace fs = std::filesystem;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Results : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "nrec_results_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

/// Two epochs, of which the better one is between those that measure Z(x), and one of an older version.
RatioEstimator estimator_with_gaps() {
  EpochRecord first;
  first.training_loss = 0.9;
  first.validation_loss = 0.8;
  first.i0 = 0.1;
  first.nre_a_loss = first.kld = first.mean_log_ratio = kNan;
  EpochRecord second = first;
  second.validation_loss = 0.7;
  second.mean_ratio = second.mean_log_z = second.sd_log_z = second.i0 = second.i1 = kNan;
  second.nre_a_loss = 0.6;
  second.kld = 3.5;
  second.mean_log_ratio = -0.25;
  return {.network = PairNetwork({.dim_theta = 1, .dim_x = 1, .hidden_features = 4, .num_blocks = 0}),
          .prior = Prior::from_terms({{{"theta"}, "normal", {{"mean", {0.0}}, {"sd", {1.0}}}}}),
          .theta_standardiser = {{0.0}, {1.0}},
          .x_standardiser = {{0.0}, {1.0}},
          .x_low = {-1.0},
          .x_high = {1.0},
          .settings = {},
          .history = {first, second},
          .best_epoch = 2};
}

TEST_F(Results, RecordOfAHistoryWithGapsIsWrittenAndRead) {
  const RatioEstimator estimator = estimator_with_gaps();
  TrainingSummary summary;
  summary.step_seconds = 2.5;
  summary.validation_seconds = 0.5;
  Record record;
  add_training(record, summary, &estimator);
  const Record again = record_from_json(record_to_json(record), "record");
  const auto number = [&](const char* name) { return std::get<double>(*again.find(name)); };
  EXPECT_TRUE(std::isnan(number("training.i0")));
  EXPECT_TRUE(std::isnan(number("training.mean_log_z")));
  EXPECT_EQ(number("training.nre_a_loss"), 0.6);
  EXPECT_EQ(number("training.kld"), 3.5);
  EXPECT_EQ(number("training.mean_log_ratio"), -0.25);
  EXPECT_EQ(number("training.step_seconds"), 2.5);
  EXPECT_EQ(number("training.validation_seconds"), 0.5);
  const auto& losses = std::get<std::vector<double>>(*again.find("training.history.nre_a_loss"));
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_TRUE(std::isnan(losses[0]));
  EXPECT_EQ(losses[1], 0.6);
}

TEST_F(Results, InfoShowsAnEpochWithoutZ) {
  save_estimator(estimator_with_gaps(), folder_ / "e.safetensors");
  const std::vector<std::string> lines = info(folder_ / "e.safetensors").lines;
  EXPECT_TRUE(std::ranges::any_of(lines, [](const std::string& line) {
    return line.starts_with("mean_ratio ") && line.ends_with(" nan");
  }));
}

TEST_F(Results, ACellOfBeforeAnOptionExistedCountsAsMadeWithItsDefault) {
  const fs::path path = folder_ / "cell.json";
  Record identity;
  identity.set("task", "two_moons");
  write_file(path, record_to_json(identity));
  identity.set("options.training.information_thetas", 0);
  identity.set("options.training.gradients", "reset");
  identity.set("options.training.standardise_from", "training");
  identity.set("component_per_call", false);
  EXPECT_TRUE(stored_cell(path, identity).has_value());
  identity.set("options.training.gradients", "accumulate");
  try {
    stored_cell(path, identity);
    ADD_FAILURE() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("this cell was made with options.training.gradients = \"reset\" but now "
                        "it is \"accumulate\""),
              std::string::npos)
        << error.what();
  }
}

TEST_F(Results, ARecordOfANewerProgramIsNoDamagedOne) {
  const fs::path path = folder_ / "cell.json";
  write_file(path, "{\"schema_version\": 1, ");
  EXPECT_FALSE(readable_record(path).has_value());
  write_file(path, "{\"schema_version\": 99}");
  EXPECT_THROW(readable_record(path), UnsupportedError);
  EXPECT_THROW(stored_cell(path, Record()), UnsupportedError);
}

}  // namespace
}  // namespace nrec
