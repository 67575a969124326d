#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/experiment_cells.h"
#include "experiments/plot.h"
#include "nrec/experiments/experiment.h"

namespace nrec {

/// A file of comma-separated values: NAME<suffix>.csv.
struct TableFile {
  std::string suffix, csv;
};

/// A table with one observation per row.
class TidyTable {
 public:
  /// `suffix` of the file: "" -> NAME.csv, "_summary" -> NAME_summary.csv.
  TidyTable(std::string suffix, std::vector<std::string> columns)
      : suffix_(std::move(suffix)), columns_(std::move(columns)) {}

  /// Errors   ShapeError: another number of cells than columns
  void add(std::vector<std::string> row);
  std::string csv() const;
  TableFile file() const { return {suffix_, csv()}; }

 private:
  std::string suffix_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Cell of a table: shortest text of a number; empty for nan.
std::string cell_text(double value);

/// What an experiment found.
struct Findings {
  std::vector<TableFile> tables;
  Figure figure;  // no panels: none
  std::vector<Claim> claims;
};

/// Rows of a file of published numbers.
class AnchorRows {
 public:
  /// The file `name` of a folder; no rows when the folder is empty or has no such file.
  /// Errors   IoError: it cannot be read or parsed
  AnchorRows(const std::string& folder, std::string_view name);

  /// The number in `column` of the only row where every column of `where` has that value; numbers are compared as numbers. nan:
  /// no such row or column.
  double number(const std::map<std::string, std::string>& where, std::string_view column) const;
  bool empty() const { return rows_.empty(); }

 private:
  std::vector<std::map<std::string, std::string>> rows_;
};

/// A claim that holds or not. With nothing to test it on (nan), it is not tested.
Claim claim(std::string text, bool holds, bool is_tested, std::string found, std::string anchor = "");

/// Takes the decision from every claim: what was run is too small for it.
void leave_untested(Findings& findings);

double mean_of(const std::vector<double>& values);  // of the finite ones; nan: none
double sd_of(const std::vector<double>& values);    // nan: fewer than two
/// Correlation of ranks, ties sharing their mean rank. nan: fewer than three pairs, or one side constant.
double spearman(const std::vector<double>& x, const std::vector<double>& y);
double pearson(const std::vector<double>& x, const std::vector<double>& y);
/// Ends of the 95 % interval of the mean by resampling, a pure function of the values.
std::pair<double, double> bootstrap_interval(const std::vector<double>& values);

Findings c2st_map(const CellResults& results,
                  const std::string& anchors);  // fig1
Findings c2st_against_count(const ExperimentPlan& plan, const CellResults& results,
                            const std::string& anchors);  // fig4, fig6
Findings information_against_c2st(const CellResults& results,
                                  const std::string& anchors);                 // fig13
Findings information_curves(const CellResults& results);                       // fig5, fig12
Findings partition_curves(const CellResults& results);                         // fig14
Findings loss_curves(const ExperimentPlan& plan, const CellResults& results);  // fig7 to fig11
Findings convergence_curves(const CellResults& results);                       // convergence
Findings benchmark_tables(const ExperimentPlan& plan, const CellResults& results,
                          const std::string& anchors);  // table1 to table4

}  // namespace nrec
