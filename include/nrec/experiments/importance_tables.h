#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "nrec/core/record.h"
#include "nrec/experiments/importance_diagnostic.h"

namespace nrec {

/// Every single number of a result, in the order of the columns of summary.csv; nan where there is none.
Record importance_record(const ImportanceDiagnosticResult& result);

/// Tidy tables of several results, each the text of a .csv file whose rows start with ratio and seed.
///
/// Numbers are the shortest that read back as the same bits; what is nan is an empty cell. Results that did not get done have
/// a row in the summary, and rows elsewhere as far as they came.
struct ImportanceTables {
  std::string summary;        // one row each: importance_record()
  std::string posterior;      // theta, density, exact_density
  std::string likelihood;     // theta, x, simulated_density, weighted_density, exact_density
  std::string roc;            // weights, false_positive, true_positive: 101 points a curve
  std::string normalisation;  // x, log_z
};
ImportanceTables importance_tables(std::span<const ImportanceDiagnosticResult> results);

/// Writes summary.csv, posterior.csv, likelihood.csv, roc.csv and normalisation.csv; each is replaced as a whole.
/// Errors   IoError: no such folder, or it cannot be written
void write_importance_tables(const ImportanceTables& tables, const std::filesystem::path& folder);

}  // namespace nrec
