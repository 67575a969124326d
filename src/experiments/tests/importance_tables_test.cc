#include "nrec/experiments/importance_tables.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <sstream>

#include "nrec/core/error.h"
#include "nrec/io/csv.h"
#include "nrec/io/file.h"

namespace nrec {
namespace {

/// A result with numbers that are easy to find again.
ImportanceDiagnosticResult made_result(const std::string& ratio, std::uint64_t seed) {
  ImportanceDiagnosticResult result;
  result.ratio = ratio;
  result.seed = seed;
  result.num_classes = 9;
  result.gamma = 1.0;
  result.training = DiagnosticTraining{.status = "epochs done", .best_epoch = 7, .seconds = 12.5};
  result.posterior.x_o = 1.125;
  result.posterior.draws = {.low = -1.0, .high = 1.0, .density = {0.25, 0.75}};
  result.posterior.exact = {0.375, 0.625};
  result.likelihoods.push_back({.theta = 0.5,
                                .simulated = {.low = 0.0, .high = 2.0, .density = {0.5, 0.5}},
                                .weighted = {.low = 0.0, .high = 2.0, .density = {0.25, 0.75}},
                                .exact = {0.5, 0.375},
                                .effective_sample_size = 64.0});
  RocComparison roc{.weights = "weighted", .roc = {.auc = 0.625, .standard_error = 0.125}, .message = ""};
  roc.roc.true_positive = {0.0, 0.75, 1.0};
  result.rocs.push_back(roc);
  result.normalisation = {.x = {-1.0, 1.0}, .log_z = {0.5, -0.5}};
  result.information.num_rows = 10;
  result.information.i0 = 2.25;
  result.exact_information = 2.1782;
  return result;
}

std::vector<std::string> cells(const std::string& csv, std::size_t row) {
  std::istringstream lines(csv);
  std::string text;
  for (std::size_t i = 0; i <= row; ++i) std::getline(lines, text);
  std::vector<std::string> result;
  std::istringstream of_line(text + ",");
  for (std::string word; std::getline(of_line, word, ',');) result.push_back(word);
  return result;
}

std::string summary_cell(const ImportanceTables& tables, std::size_t row, const std::string& column) {
  const std::vector<std::string> header = cells(tables.summary, 0), values = cells(tables.summary, row);
  EXPECT_EQ(header.size(), values.size());
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] == column) return values[i];
  }
  return "no column " + column;
}

TEST(ImportanceTables, AreTidyWithOneRowForEveryPoint) {
  const std::vector<ImportanceDiagnosticResult> results = {made_result("nre-c", 1), made_result("nre-b", 2)};
  const ImportanceTables tables = importance_tables(results);
  EXPECT_EQ(tables.posterior,
            "ratio,seed,theta,density,exact_density\n"
            "nre-c,1,-0.5,0.25,0.375\nnre-c,1,0.5,0.75,0.625\n"
            "nre-b,2,-0.5,0.25,0.375\nnre-b,2,0.5,0.75,0.625\n");
  EXPECT_EQ(cells(tables.likelihood, 0),
            (std::vector<std::string>{"ratio", "seed", "theta", "x", "simulated_density", "weighted_density",
                                      "exact_density"}));
  EXPECT_EQ(cells(tables.likelihood, 2),
            (std::vector<std::string>{"nre-c", "1", "0.5", "1.5", "0.5", "0.75", "0.375"}));
  EXPECT_EQ(cells(tables.roc, 2), (std::vector<std::string>{"nre-c", "1", "weighted", "0.5", "0.75"}));
  EXPECT_EQ(cells(tables.normalisation, 4), (std::vector<std::string>{"nre-b", "2", "1", "-0.5"}));
}

TEST(ImportanceTables, SummaryHasARowForEveryResultAndEmptyCellsForNan) {
  const std::vector<ImportanceDiagnosticResult> results = {made_result("nre-c", 1), made_result("nre-b", 2)};
  const ImportanceTables tables = importance_tables(results);
  EXPECT_EQ(summary_cell(tables, 1, "ratio"), "nre-c");
  EXPECT_EQ(summary_cell(tables, 2, "ratio"), "nre-b");
  EXPECT_EQ(summary_cell(tables, 2, "seed"), "2");
  EXPECT_EQ(summary_cell(tables, 1, "auc_weighted"), "0.625");
  EXPECT_EQ(summary_cell(tables, 1, "auc_unweighted"), "");
  EXPECT_EQ(summary_cell(tables, 1, "i0"), "2.25");
  EXPECT_EQ(summary_cell(tables, 1, "exact_information"), "2.1782");
  EXPECT_EQ(summary_cell(tables, 1, "x_o"), "1.125");
  EXPECT_EQ(summary_cell(tables, 1, "c2st"), "");
  EXPECT_EQ(summary_cell(tables, 1, "likelihood_low_effective_sample_size"), "64");
  EXPECT_EQ(summary_cell(tables, 1, "training_seconds"), "12.5");
  EXPECT_EQ(summary_cell(tables, 1, "training_was_resumed"), "0");
  EXPECT_EQ(summary_cell(tables, 1, "best_epoch"), "7");
}

TEST(ImportanceTables, AnUnfinishedResultKeepsItsRowAndQuotesItsMessage) {
  ImportanceDiagnosticResult result;
  result.ratio = "nre-b";
  result.seed = 3;
  result.status = ExperimentStatus::failed;
  result.message = "no epoch, \"none\"";
  const ImportanceTables tables = importance_tables({&result, 1});
  EXPECT_NE(tables.summary.find("nre-b,3,failed,\"no epoch, \"\"none\"\"\","), std::string::npos)
      << tables.summary;
  EXPECT_EQ(tables.posterior, "ratio,seed,theta,density,exact_density\n");
  EXPECT_EQ(tables.roc, "ratio,seed,weights,false_positive,true_positive\n");
  // No result at all: headers only.
  const ImportanceTables none = importance_tables({});
  EXPECT_EQ(cells(none.summary, 0), cells(tables.summary, 0));
  EXPECT_EQ(cells(none.summary, 1).size(), 1u);
}

TEST(ImportanceTables, AreWrittenWholeOrRefused) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("nrec_importance_tables" + std::to_string(::getpid()));
  const ImportanceTables tables = importance_tables(std::vector{made_result("nre-c", 1)});
  EXPECT_THROW(write_importance_tables(tables, folder), IoError);
  std::filesystem::create_directories(folder);
  write_importance_tables(tables, folder);
  EXPECT_EQ(read_file(folder / "summary.csv"), tables.summary);
  EXPECT_EQ(read_file(folder / "posterior.csv"), tables.posterior);
  EXPECT_EQ(read_file(folder / "likelihood.csv"), tables.likelihood);
  EXPECT_EQ(read_file(folder / "roc.csv"), tables.roc);
  EXPECT_EQ(read_file(folder / "normalisation.csv"), tables.normalisation);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace nrec
