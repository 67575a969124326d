// What a run says about its posterior besides draws: evidence, normalised density, mode; fixed parameters; importance.
#include <cmath>

#include "nrec/io/json.h"
#include "nrec/io/npz.h"
#include "nrec/io/tables.h"
#include "toy_problem.h"

namespace nrec::cli {
namespace {

class PosteriorFacts : public ToyTest {
 protected:
  void SetUp() override {
    ToyTest::SetUp();
    ASSERT_EQ(infer(whole_).code, 0);
  }
  /// nrec sample with the estimator of that run, into the folder `out`.
  Outcome sample(const std::string& out, const Words& more, const char* num_samples = "200") const {
    Words words = {"sample", "--model", "p_run",         "--observation", "x_o.csv",
                   "--out",  out,       "--num-samples", num_samples};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  Record record(const std::string& folder) const {
    return record_from_json(content(folder + "/record.json"), "record");
  }
  static double number(const Record& record, const char* name) {
    const RecordValue* value = record.find(name);
    if (!value) return std::nan("");
    if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
    return std::get<double>(*value);
  }
  static std::vector<double> numbers(const Record& record, const char* name) {
    return std::get<std::vector<double>>(*record.find(name));
  }
};

TEST_F(PosteriorFacts, EveryRunHasEvidenceDensityAndMode) {
  const Record run = record("p_run");
  EXPECT_LT(std::fabs(number(run, "sampling.log_z")), 1.0);  // 0 for an exact ratio
  EXPECT_GT(number(run, "sampling.log_z_se"), 0.0);
  EXPECT_LT(number(run, "sampling.log_z_k_hat"), 0.7);
  EXPECT_EQ(number(run, "sampling.log_z_draws"), 20000);
  const std::vector<std::string> names = {"log_ratio", "log_density"};
  const NamedArrays arrays = read_npz(folder_ / "p_run/draws.npz", names);
  ASSERT_EQ(arrays[1].second.values.size(), 200u);
  double best = -1e300;
  for (std::size_t i = 0; i < 200; ++i) {
    best = std::max(best, arrays[1].second.values[i]);
    EXPECT_NEAR(arrays[1].second.values[i],
                arrays[0].second.values[i] - std::log(25.0) - number(run, "sampling.log_z"), 1e-12);
  }
  EXPECT_GE(number(run, "map.log_density"), best);
  EXPECT_LT(number(run, "map.log_density"), best + 1.0);
  const std::vector<double> theta = numbers(run, "map.theta");
  ASSERT_EQ(theta.size(), 2u);
  EXPECT_NEAR(theta[0], 2.0, 1.0);
  EXPECT_NEAR(theta[1], 3.0, 1.0);
  EXPECT_GT(number(run, "map.agreement"), 0.0);
  ASSERT_EQ(sample("plain", {"--map=false"}).code, 0);
  EXPECT_EQ(record("plain").find("map.theta"), nullptr);
}

TEST_F(PosteriorFacts, FixHoldsParameters) {
  for (const char* method : {"auto", "importance", "slice"}) {
    const std::string out = std::string("fixed_") + method;
    const Outcome outcome = sample(out, {"--fix", "mass=2.25", "--method", method});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const SampleTable draws = read_samples(folder_ / out / "draws.csv");
    ASSERT_EQ(draws.values.rows(), 200u);
    double rate = 0.0;
    for (std::size_t i = 0; i < 200; ++i) {
      ASSERT_EQ(draws.values(i, 0), 2.25);
      rate += draws.values(i, 1) / 200;
    }
    EXPECT_NEAR(rate, 3.0, 0.7);
    EXPECT_NE(draws.values(0, 1), draws.values(199, 1));
    EXPECT_EQ(numbers(record(out), "map.theta")[0], 2.25);
    EXPECT_TRUE(std::isnan(numbers(record(out), "marginals.ess")[0]));
    expect_in(outcome.out, "mass  2.25");
  }
}

TEST_F(PosteriorFacts, FixRefusesBeforeAnythingIsWritten) {
  const auto refused = [&](const std::string& fix, const std::string& text) {
    const Outcome outcome = sample("refused", {"--fix", fix});
    EXPECT_EQ(outcome.code, 3);
    expect_in(outcome.err, text);
    EXPECT_FALSE(exists("refused"));
  };
  refused("mas=2", "fix: unknown parameter \"mas\"; the parameters are mass, rate; did you mean \"mass\"?");
  refused("mass=7", "fix: mass = 7 must be inside the support of its prior, (0, 5)");
  refused("mass=heavy", "fix: mass = \"heavy\" must be a finite number");
  refused("mass=1,rate=2", "fix: all parameters (mass, rate) are fixed; leave at least one free");
  const std::string before = content("p_run/record.json");
  const Outcome again = infer(whole_ + "fix = [\"rate=9\"]\n", {"--overwrite"});
  EXPECT_EQ(again.code, 3);
  expect_in(again.err, "fix: rate = 9 must be inside the support");
  EXPECT_EQ(content("p_run/record.json"), before);
}

TEST_F(PosteriorFacts, ResumeDrawsAgainWhenOtherParametersAreFixed) {
  const Outcome fixed = infer(whole_ + "fix = [\"rate=3\"]\n", {"--resume"});
  ASSERT_EQ(fixed.code, 0) << fixed.err;
  EXPECT_EQ(read_samples(folder_ / "p_run/draws.csv").values(7, 1), 3.0);
  expect_in(content("p_run/config.toml"), "fix = [\"rate=3\"]");
  const double log_density = number(record("p_run"), "map.log_density");
  const Outcome same = infer(whole_ + "fix = [\"rate=3\"]\n", {"--resume"});
  expect_in(same.err, "taking over the draws");
  EXPECT_EQ(number(record("p_run"), "map.log_density"), log_density);
}

TEST_F(PosteriorFacts, UnreliableWeightsAreAPartialResultAndNotTrusted) {
  const Outcome outcome = sample("few", {"--method", "importance", "--max-evaluations", "500"}, "100000");
  EXPECT_EQ(outcome.code, 5);
  expect_in(outcome.err, "the weights are unreliable: the effective sample size is below a tenth");
  const Record run = record("few");
  EXPECT_EQ(std::get<std::string>(*run.find("sampling.status")), "weights unreliable");
  EXPECT_EQ(std::get<std::string>(*run.find("check.verdict")), "not trusted");
  EXPECT_EQ(number(run, "sampling.log_z_draws"), 500);
}

}  // namespace
}  // namespace nrec::cli
