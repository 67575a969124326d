#include "experiments/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "experiments/run_program.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"

namespace nrec {
namespace {

namespace fs = std::filesystem;

class Plot : public testing::Test {
 protected:
  Plot() : folder_(fs::path(testing::TempDir()) / "nrec_plot_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Plot() override { fs::remove_all(folder_); }

  static Figure figure() {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    Series curve{
        .label = "a \"b\" $c", .x = {1, 10, 100}, .y = {1.0, nan, 3.0}, .low = {0, 0, 0}, .high = {2, 2, 4}};
    Panel first{.title = "first", .x_label = "epoch", .y_label = "nats", .log_x = true};
    first.series.push_back(std::move(curve));
    Panel heat{.title = "heat"};
    heat.heat = {.x = {0, 1}, .y = {0, 1, 2}, .value = {{1, 2, 3}, {4, 5, 6}}, .label = "C2ST"};
    Panel empty{.title = "empty", .log_y = true};
    empty.series.push_back({.label = "negative on a logarithmic axis", .x = {1}, .y = {-1}});
    return {.title = "three panels", .columns = 2, .panels = {first, heat, empty}};
  }

  fs::path folder_;
};

std::string text_of_shape_error(const Figure& figure) {
  try {
    gnuplot_script(figure, "x");
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST_F(Plot, TheScriptHoldsItsDataAndKeepsTextFromBeingCode) {
  const std::string script = gnuplot_script(figure(), "fig0");
  EXPECT_NE(script.find("$p0s0 << EOD\n1 1 0 2\n10 NaN 0 2\n100 3 0 4\nEOD\n"), std::string::npos) << script;
  EXPECT_NE(script.find("title \"a \\\"b\\\" \\$c\""), std::string::npos);
  EXPECT_NE(script.find("$p1heat << EOD\n0 0 1\n0 1 2\n0 2 3\n\n1 0 4"), std::string::npos);
  EXPECT_NE(script.find("set output \"fig0.svg\""), std::string::npos);
  EXPECT_NE(script.find("set output \"fig0.png\""), std::string::npos);
  EXPECT_NE(script.find("nothing to draw"), std::string::npos) << "the third panel has no point on its axes";
}

TEST_F(Plot, RefusesSeriesAndHeatMapsWhoseLengthsDiffer) {
  Figure bad = figure();
  bad.panels[0].series[0].y.pop_back();
  EXPECT_NE(text_of_shape_error(bad).find("has 3 x, 2 y, 3 and 3 ends of its band"), std::string::npos);
  bad = figure();
  bad.panels[1].heat.value[1].pop_back();
  EXPECT_NE(text_of_shape_error(bad).find("heat map of panel \"heat\""), std::string::npos);
}

TEST_F(Plot, DrawsBothFilesOrSaysThatGnuplotIsMissing) {
  ThreadPool pool(1);
  const std::string problem = draw_figure(figure(), folder_, "fig0", {.pool = pool});
  ASSERT_TRUE(fs::exists(folder_ / "fig0.gp"));
  if (!problem.empty() && problem.find("is not installed") != std::string::npos)
    GTEST_SKIP() << "SKIPPED: " << problem;
  ASSERT_EQ(problem, "");
  EXPECT_EQ(read_file(folder_ / "fig0.png").substr(1, 3), "PNG");
  const std::string svg = read_file(folder_ / "fig0.svg");
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_NE(svg.find("three panels"), std::string::npos);
  EXPECT_NE(svg.find("a \"b\" $c"), std::string::npos) << "labels come out as they went in";
}

TEST_F(Plot, SaysWhatGnuplotSaidWhenItFails) {
  ThreadPool pool(1);
  fs::create_directory(folder_ / "fig0.svg");  // it cannot write there
  const std::string problem = draw_figure(figure(), folder_, "fig0", {.pool = pool});
  EXPECT_NE(problem.find("fig0.gp: is not drawn"), std::string::npos) << problem;
}

TEST_F(Plot, AProgramThatIsMissingOrSlowOrFailingIsAStatus) {
  EXPECT_FALSE(run_program({"no_such_program_anywhere"}, folder_, 1.0).started);
  const ProgramEnd failing = run_program({"sh", "-c", "echo why >&2; exit 7"}, folder_, 10.0);
  EXPECT_TRUE(failing.started);
  EXPECT_EQ(failing.exit_code, 7);
  EXPECT_EQ(failing.error_text, "why");
  const ProgramEnd slow = run_program({"sleep", "60"}, folder_, 0.05);
  EXPECT_TRUE(slow.timed_out);
  EXPECT_EQ(slow.exit_code, 128 + 9);
  const ProgramEnd there = run_program(
      {"sh", "-c", "test \"$(pwd -P)\" = \"$(cd \"$0\" && pwd -P)\"", folder_.string()}, folder_, 10.0);
  EXPECT_EQ(there.exit_code, 0) << "it runs in the folder";
}

}  // namespace
}  // namespace nrec
