#include "inference/evaluation_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "inference/tests/exact_posteriors.h"
#include "nrec/core/stop.h"
#include "nrec/inference/sample.h"

namespace nrec {
namespace {

class Warnings : public LogSink {
 public:
  void warning(std::string_view text) override { texts.emplace_back(text); }
  std::vector<std::string> texts;
};

class EvaluationLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(::testing::TempDir()) / "evaluation_log_test.bin";
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  /// theta ~ N(0, 1)^2, log ratio -50 |theta - (1, 0.3)|^2, counted by rows; asks for a stop after `most` of them.
  Posterior narrow(std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    return testing::exact(
        testing::normal_prior(0, 1, 2),
        [this, most](MatrixView<const double> theta, std::span<double> r, MatrixView<double> d) {
          asked_ += static_cast<std::int64_t>(theta.rows);
          if (asked_ >= most) stop_->request(1);
          for (std::size_t i = 0; i < theta.rows; ++i) {
            const double a = theta(i, 0) - 1.0, b = theta(i, 1) - 0.3;
            r[i] = -50.0 * (a * a + b * b);
            if (!d.data) continue;
            d(i, 0) = -100.0 * a;
            d(i, 1) = -100.0 * b;
          }
        });
  }
  std::shared_ptr<EvaluationLog> open(bool resume, const std::string& key = "key") {
    return std::make_shared<EvaluationLog>(path_, key, resume, warnings_);
  }
  PosteriorDraws drawn(const Posterior& posterior, const std::string& method) {
    SamplingOptions options;
    options.method = method;
    options.num_samples = 2000;
    return sample(posterior, options, {.pool = pool_, .seed = 4, .stop = stop_.get()});
  }

  ThreadPool pool_{2};
  std::filesystem::path path_;
  Warnings warnings_;
  std::unique_ptr<StopRequest> stop_ = std::make_unique<StopRequest>();
  std::int64_t asked_ = 0;
};

TEST_F(EvaluationLogTest, EverySamplerGoesOnFromWhereItWasStopped) {
  for (const std::string method : {"rejection", "importance", "slice", "nuts", "auto"}) {
    stop_ = std::make_unique<StopRequest>();
    asked_ = 0;
    const PosteriorDraws unbroken = drawn(narrow(), method);
    ASSERT_EQ(unbroken.status, SamplingStatus::complete) << method << ": " << unbroken.message;
    const std::int64_t all = asked_;
    asked_ = 0;
    {
      const PosteriorDraws broken = drawn(recorded(narrow(all / 2), open(false)), method);
      ASSERT_EQ(broken.status, SamplingStatus::stopped) << method;
    }
    const std::int64_t before = asked_;
    stop_ = std::make_unique<StopRequest>();
    asked_ = 0;
    const auto log = open(true);
    const PosteriorDraws resumed = drawn(recorded(narrow(), log), method);
    EXPECT_EQ(resumed.status, SamplingStatus::complete);
    EXPECT_EQ(resumed.theta.values(), unbroken.theta.values()) << method;
    EXPECT_EQ(resumed.message, unbroken.message);
    // What the stopped run evaluated beyond the unbroken one, to describe its partial draws, is dropped.
    EXPECT_GE(asked_, all - before);
    EXPECT_LE(asked_, all - all / 2 + 70000) << method;  // a batch of candidates at most is asked again
    EXPECT_EQ(log->num_replayed() + static_cast<std::uint64_t>(asked_), static_cast<std::uint64_t>(all));
    EXPECT_TRUE(warnings_.texts.empty());
  }
}

TEST_F(EvaluationLogTest, GivesBackEveryKindOfValue) {
  const Matrix<double> theta(4, 1, {0.1, 0.2, 0.3, 0.4});
  const std::vector<double> values = {1.0 / 3.0, -std::numeric_limits<double>::infinity(), std::nan(""),
                                      -0.0};
  const Matrix<double> gradients(4, 1, {1e-300, 2, 3, 4});
  {
    const auto log = open(false);
    log->append(theta, values, {});
    log->append(theta, std::vector<double>{1, 2.5, -3, 1e30f}, gradients);
  }
  const auto log = open(true);
  std::vector<double> back(4);
  Matrix<double> d(4, 1);
  ASSERT_TRUE(log->replay(theta, back, {}));
  EXPECT_EQ(back[0], values[0]);
  EXPECT_EQ(back[1], values[1]);
  EXPECT_TRUE(std::isnan(back[2]));
  EXPECT_TRUE(std::signbit(back[3]));
  ASSERT_TRUE(log->replay(theta, back, d));
  EXPECT_EQ(back, (std::vector<double>{1, 2.5, -3, 1e30f}));
  EXPECT_EQ(d.values(), gradients.values());
  EXPECT_FALSE(log->replay(theta, back, {}));
  EXPECT_EQ(log->num_replayed(), 8u);
}

TEST_F(EvaluationLogTest, AnotherQuestionAnotherKeyOrDamageEndsTheReplay) {
  const Matrix<double> theta(2, 1, {0.1, 0.2}), other(2, 1, {0.1, 0.3});
  const std::vector<double> values = {1.5, 2.5};
  const auto fill = [&] {
    const auto log = open(false);
    for (int i = 0; i < 3; ++i) log->append(theta, values, {});
  };
  std::vector<double> back(2);
  fill();
  {
    const auto log = open(true);
    EXPECT_TRUE(log->replay(theta, back, {}));
    EXPECT_FALSE(log->replay(other, back, {}));
    EXPECT_FALSE(log->replay(theta, back, {}));  // the rest is dropped for good
    log->append(other, values, {});
  }
  {
    const auto log = open(true);
    EXPECT_TRUE(log->replay(theta, back, {}));
    EXPECT_TRUE(log->replay(other, back, {}));
    EXPECT_FALSE(log->replay(theta, back, {}));
  }
  fill();
  EXPECT_FALSE(open(true, "another")->replay(theta, back, {}));
  fill();
  EXPECT_FALSE(open(false)->replay(theta, back, {}));
  fill();
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 3);
  {
    const auto log = open(true);
    EXPECT_TRUE(log->replay(theta, back, {}));
    EXPECT_TRUE(log->replay(theta, back, {}));
    EXPECT_FALSE(log->replay(theta, back, {}));
  }
  fill();
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(16 + 17);  // a value of the first block
    file.put('\x7f');
  }
  EXPECT_FALSE(open(true)->replay(theta, back, {}));
}

TEST_F(EvaluationLogTest, ADiskThatIsFullEndsTheLogAndNothingElse) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "SKIPPED: no /dev/full";
  std::filesystem::create_symlink("/dev/full", path_);
  const PosteriorDraws draws = drawn(recorded(narrow(), open(false)), "slice");
  EXPECT_EQ(draws.status, SamplingStatus::complete);
  ASSERT_EQ(warnings_.texts.size(), 1u);
  EXPECT_NE(
      warnings_.texts[0].find("cannot be written (No space left on device), so that sampling will start "
                              "over if it is cut off; nothing else is affected"),
      std::string::npos)
      << warnings_.texts[0];
}

}  // namespace
}  // namespace nrec
