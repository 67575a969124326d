#include "nrec/commands/problem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "nrec/core/error.h"
#include "nrec/io/file.h"

namespace nrec {
namespace {

namespace fs = std::filesystem;

class ProblemFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "nrec_problem_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    file_ = folder_ / "p.toml";
  }
  void TearDown() override { fs::remove_all(folder_); }
  Problem read(const std::string& text, std::span<const OptionOverride> overrides = {}) const {
    write_file(file_, text);
    return read_problem(file_, overrides);
  }
  template <class E>
  std::string refusal(const std::string& text, std::span<const OptionOverride> overrides = {}) const {
    try {
      validate(read(text, overrides));
    } catch (const E& error) {
      return error.what();
    }
    return "no error of that type";
  }
  std::string at(int line, const std::string& text) const {
    return file_.string() + ":" + std::to_string(line) + ": " + text;
  }
  fs::path folder_, file_;
};

TEST_F(ProblemFile, KeepsTheOrderOfParametersAndReadsEveryKindOfTerm) {
  const Problem problem = read(
      "[parameters]\n"
      "z = { prior = \"uniform\", low = -1, high = 1.5 }\n"
      "pair = { names = [\"b\", \"a\"], prior = \"multivariate_normal\", mean = [0, 1], covariance = [[1, "
      "0.5], [0.5, 2]] }\n"
      "\"h_0 / km\" = { prior = \"normal\", mean = 70, sd = 5, transform = \"identity\" }\n");
  const std::vector<PriorTerm> expected = {
      {{"z"}, "uniform", {{"low", {-1}}, {"high", {1.5}}}, "auto"},
      {{"b", "a"}, "multivariate_normal", {{"mean", {0, 1}}, {"covariance", {1, 0.5, 0.5, 2}}}, "auto"},
      {{"h_0 / km"}, "normal", {{"mean", {70}}, {"sd", {5}}}, "identity"}};
  EXPECT_EQ(problem.parameters.terms, expected);
  EXPECT_EQ(problem_prior(problem).names(), (std::vector<std::string>{"z", "b", "a", "h_0 / km"}));
}

TEST_F(ProblemFile, RefusesTrainingOptionsThatContradictEachOther) {
  EXPECT_EQ(refusal<ConfigError>("[simulations]\ntask = \"two_moons\"\n"
                                 "[training]\nselect_epoch = \"i0\"\ninformation_epochs = \"log\"\n"),
            file_.string() +
                ": [training] select_epoch = \"i0\" compares I0 of all epochs, but information_epochs = "
                "\"log\" measures it in a few; take information_epochs = \"all\", or another select_epoch");
}

TEST_F(ProblemFile, KeysStandOnTopOfTheSettingsWhereverTheyStand) {
  const std::string text =
      "[parameters]\na = { prior = \"normal\", mean = 0, sd = 1 }\n"
      "[training]\nnum_classes = 5\nsettings = \"published\"\n[network]\nhidden_features = 20\n";
  const Problem published = read(text);
  EXPECT_EQ(published.training.num_classes, 5);
  EXPECT_EQ(published.network.hidden_features, 20);
  EXPECT_EQ(published.network.norm, "batch");
  EXPECT_EQ(published.training.training_batch_size, 1024);
  EXPECT_EQ(published.training.learning_rate, 5e-4);
  EXPECT_EQ(published.training.learning_rate_schedule, "constant");
  EXPECT_EQ(published.training.max_num_epochs, 1000);
  EXPECT_EQ(published.training.stop_after_epochs, 0);
  // What a run leaves behind names every value, so that the word says no more there.
  write_file(folder_ / "again.toml", problem_text(published, folder_));
  EXPECT_EQ(problem_text(published, folder_).find("settings"), std::string::npos);
  EXPECT_EQ(problem_text(read_problem(folder_ / "again.toml"), folder_), problem_text(published, folder_));

  const std::vector<OptionOverride> flags = {{"training", "settings", {"default"}, "--settings"},
                                             {"network", "norm", {"none"}, "--norm"}};
  const Problem own = read(text, flags);
  EXPECT_EQ(own.network.norm, "none");
  EXPECT_EQ(own.training.num_classes, 5);
  EXPECT_EQ(own.training.learning_rate_schedule, TrainingOptions{}.learning_rate_schedule);
  EXPECT_NE(refusal<ConfigError>("[training]\nsettings = \"paper\"\n").find("settings"), std::string::npos);
  const std::vector<OptionOverride> wrong = {{"training", "settings", {"paper"}, "--settings"}};
  EXPECT_NE(refusal<UsageError>(text, wrong).find("--settings"), std::string::npos);
}

TEST_F(ProblemFile, FileNamesStartFromTheFolderOfTheFileAndThoseOfFlagsDoNot) {
  const std::string text =
      "[simulations]\nfiles = [\"a.npz\", \"/data/b.npz\"]\n[observation]\nfile = \"x.csv\"\n";
  const Problem problem = read(text);
  EXPECT_EQ(problem.simulations.files, (std::vector<std::string>{folder_ / "a.npz", "/data/b.npz"}));
  EXPECT_EQ(problem.observation.file, folder_ / "x.csv");
  const std::vector<OptionOverride> flags = {{"observation", "file", {"y.csv"}, "--observation"},
                                             {"simulations", "files", {"c.npz", "d.npz"}, "--files"}};
  const Problem changed = read(text, flags);
  EXPECT_EQ(changed.observation.file, "y.csv");
  EXPECT_EQ(changed.simulations.files, (std::vector<std::string>{"c.npz", "d.npz"}));
}

TEST_F(ProblemFile, TextOfAProblemReadsBackAsTheSameProblem) {
  const Problem problem = read(
      "[parameters]\n\"m 1\" = { prior = \"truncated_normal\", mean = 0.1, sd = 1e-30, low = -inf, high = 3 "
      "}\n"
      "joint_2 = { prior = \"normal\", mean = 0, sd = 1 }\n"
      "both = { names = [\"joint_1\", \"ü\"], prior = \"multivariate_normal\", mean = [1, 2], precision = "
      "[[1, 0], "
      "[0, 4]] }\n"
      "[simulations]\nfiles = [\"a \\\"quoted\\\".npz\"]\nnum_simulations = 50\n[observation]\nfile = "
      "\"x.csv\"\n"
      "[training]\ngamma = inf\nlearning_rate = 0.1\n[run]\nseed = 12\n");
  fs::create_directory(folder_ / "out");
  const std::string text = problem_text(problem, folder_ / "out");
  write_file(folder_ / "out/config.toml", text);
  const Problem again = read_problem(folder_ / "out/config.toml");
  EXPECT_EQ(again.parameters.terms, problem.parameters.terms);
  EXPECT_TRUE(fs::equivalent(fs::path(again.observation.file).parent_path(), folder_));
  EXPECT_EQ(fs::path(again.simulations.files.at(0)).filename(), "a \"quoted\".npz");
  EXPECT_TRUE(again.simulations.num_simulations_given);
  EXPECT_EQ(again.simulations.num_simulations, 50);
  EXPECT_TRUE(std::isinf(again.training.gamma));
  EXPECT_EQ(again.training.learning_rate, 0.1);
  EXPECT_EQ(again.run.seed, 12u);
  EXPECT_EQ(problem_text(again, folder_ / "out"), text);
}

TEST_F(ProblemFile, EveryBrokenRuleIsNamedWithItsLine) {
  const std::string text = refusal<ConfigError>(
      "loose = 1\n"
      "[parameters]\n"
      "a = { prior = \"uniform\", low = 0 }\n"
      "b = { low = 0, high = 1 }\n"
      "c = { prior = \"uniform\", low = \"0\", high = 1 }\n"
      "d = { prior = \"normal\", mean = 0, sd = 1, transform = \"log\" }\n"
      "[network]\n"
      "norm = 3\n"
      "hidden_features = [16]\n"
      "[nework]\n");
  EXPECT_NE(text.find(at(1, "\"loose\" stands outside a section")), std::string::npos) << text;
  EXPECT_NE(text.find(at(3, "[parameters] a: prior of 'a': uniform: keyword high is missing")),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(at(4, "[parameters] b: prior is missing; give one of uniform | ")), std::string::npos)
      << text;
  EXPECT_NE(text.find(at(5, "[parameters] c: low = \"0\" must be a number, a list of numbers")),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(at(6, "[parameters] d: transform = \"log\" must be one of auto | identity")),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(at(8, "[network]: norm = 3 must be one of batch | layer | none")), std::string::npos)
      << text;
  EXPECT_NE(text.find(at(9, "[network]: hidden_features must be a list of texts")), std::string::npos)
      << text;
  EXPECT_NE(text.find(at(10, "unknown section [nework]; did you mean [network]?")), std::string::npos)
      << text;
}

TEST_F(ProblemFile, ManyErrorsAreCutAfterTen) {
  std::string text = "[training]\n";
  for (int i = 0; i < 15; ++i) text += "unknown_" + std::to_string(i) + " = 1\n";
  const std::string message = refusal<ConfigError>(text);
  EXPECT_NE(message.find("unknown_9"), std::string::npos);
  EXPECT_EQ(message.find("unknown_10"), std::string::npos);
  EXPECT_NE(message.find("and 5 more"), std::string::npos);
}

TEST_F(ProblemFile, ErrorsOfFlagsAreUsageErrorsAndComeFirst) {
  const std::vector<OptionOverride> flags = {{"training", "gamma", {"0"}, "--gamma"},
                                             {"training", "num_classes", {"0"}, "--num-classes"}};
  const std::string text = refusal<UsageError>("[training]\ngama = 1\n", flags);
  EXPECT_NE(text.find("--gamma: gamma = 0 must be a number > 0\n--num-classes: num_classes = 0"),
            std::string::npos)
      << text;
}

TEST_F(ProblemFile, CovariancesMustBeRowsOfOneLength) {
  const std::string text = refusal<ConfigError>(
      "[parameters]\nb = { names = [\"a\", \"b\"], prior = \"multivariate_normal\", mean = [0, 0], "
      "covariance = [[1, 0], [1]] }\n");
  EXPECT_NE(
      text.find("covariance = (a list) must be a number, a list of numbers, or a list of rows of one length"),
      std::string::npos)
      << text;
}

TEST_F(ProblemFile, NamesMayBeGivenOnlyOnce) {
  const Problem problem = read(
      "[parameters]\na = { prior = \"uniform\", low = 0, high = 1 }\nj = { names = [\"a\", \"b\"], prior = "
      "\"multivariate_normal\", mean = [0, 0], covariance = [[1, 0], [0, 1]] }\n");
  EXPECT_THROW(problem_prior(problem), ConfigError);
}

TEST_F(ProblemFile, PriorsFromSamplesTakeNamesFromTheFileOrTheKey) {
  write_file(folder_ / "named.csv", "a,b\n1,2\n3,4\n");
  write_file(folder_ / "plain.csv", "1,2\n3,4\n");
  EXPECT_EQ(problem_prior(read("[parameters]\nfrom_samples = \"named.csv\"\n")).names(),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(problem_prior(read("[parameters]\nfrom_samples = \"plain.csv\"\n")).names(),
            (std::vector<std::string>{"theta_1", "theta_2"}));
  EXPECT_EQ(
      problem_prior(read("[parameters]\nfrom_samples = \"plain.csv\"\nnames = [\"u\", \"v\"]\n")).names(),
      (std::vector<std::string>{"u", "v"}));
  EXPECT_THROW(problem_prior(read("[parameters]\nfrom_samples = \"plain.csv\"\nnames = [\"u\"]\n")),
               ShapeError);
}

}  // namespace
}  // namespace nrec
