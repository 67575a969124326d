#include "nrec/commands/posterior_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace nrec {
namespace {

TEST(PosteriorTable, ShowsThreeDigitsOfTheSd) {
  const std::vector<MarginalSummary> marginals = {{.name = "mass",
                                                   .mean = 123.456789,
                                                   .sd = 0.0123456,
                                                   .quantile05 = 123.43,
                                                   .quantile50 = 123.4567,
                                                   .quantile95 = 123.48,
                                                   .ess = 9876.6},
                                                  {.name = "größe",
                                                   .mean = -12345.678,
                                                   .sd = 456.789,
                                                   .quantile05 = -13000,
                                                   .quantile50 = -12300,
                                                   .quantile95 = -11600,
                                                   .ess = 10000}};
  EXPECT_EQ(posterior_table(marginals),
            "           mean      sd        5%       50%       95%    ESS\n"
            "mass   123.4568  0.0123  123.4300  123.4567  123.4800   9877\n"
            "größe    -12346     457    -13000    -12300    -11600  10000\n");
}

TEST(PosteriorTable, UnusualNumbersStayReadable) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<MarginalSummary> marginals = {{.name = "one_draw",
                                                   .mean = 2.0,
                                                   .sd = nan,
                                                   .quantile05 = 2.0,
                                                   .quantile50 = 2.0,
                                                   .quantile95 = 2.0,
                                                   .ess = 1},
                                                  {.name = "tiny",
                                                   .mean = 1.5e-12,
                                                   .sd = 2e-13,
                                                   .quantile05 = 1e-12,
                                                   .quantile50 = 1.5e-12,
                                                   .quantile95 = 2e-12,
                                                   .ess = 5}};
  const std::string table = posterior_table(marginals);
  EXPECT_NE(table.find("nan"), std::string::npos);
  EXPECT_NE(table.find("1.5e-12"), std::string::npos);
  EXPECT_NE(table.find("2.00"), std::string::npos);
}

TEST(VerdictText, SaysTheDecidingItemOnce) {
  const SaidVerdict said{
      "not trusted",
      "ranks: too narrow; simulate more",
      {{"ranks", "not trusted", "too narrow; simulate more"}, {"tarp", "trusted", "nothing to see"}}};
  EXPECT_EQ(verdict_text(said),
            "verdict: not trusted\n  ranks: too narrow; simulate more\n  tarp: trusted: nothing to see\n");
  EXPECT_EQ(verdict_text({"trusted", "", {}}), "verdict: trusted\n");
}

TEST(PosteriorTable, HasALinePerParameterWhateverItsName) {
  const MarginalSummary marginal{.name = "a\n\x1b[2J"};
  const std::string table = posterior_table(std::span(&marginal, 1));
  EXPECT_NE(table.find("\na\\x0a\\x1b[2J  "), std::string::npos) << table;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2);
}

}  // namespace
}  // namespace nrec
