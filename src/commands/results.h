#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "nrec/commands/infer.h"
#include "nrec/inference/posterior_draws.h"

namespace nrec {

/// Version of this build, "0.1.0".
std::string_view nrec_version();

/// What every record starts with: schema version, command, version, seed, instruction set, time.
Record started_record(std::string_view command, const OutputOptions& output, const RunContext& run);

/// Every option of `table` as "options.<section>.<name>".
void add_options(Record& record, const OptionTable& table);
void add_training(Record& record, const TrainingSummary& summary, const RatioEstimator* estimator);
void add_sampling(Record& record, const PosteriorDraws& draws);
void add_marginals(Record& record, const std::vector<MarginalSummary>& marginals);
void add_check(Record& record, const CheckReport& report);

/// The record with "?" for every byte that is not part of valid UTF-8: file names may hold any bytes, JSON may not.
Record with_valid_text(const Record& record);
/// Writes record.json; text that is not UTF-8 gets "?" for its bad bytes.
void write_record(const Record& record, const OutputFolder& folder);
/// The record of an earlier run, or nullopt when there is none that can be read.
std::optional<Record> earlier_record(const OutputFolder& folder);

/// draws.npz (theta, log_ratio, log_density) and draws.csv (one column per parameter). Nothing when there are no draws.
void write_draws(const PosteriorDraws& draws, const OutputFolder& folder);
/// The draws of an earlier run if its record says that they are complete and were made from `key`.
std::optional<PosteriorDraws> earlier_draws(const OutputFolder& folder, const std::optional<Record>& record,
                                            const std::string& key, const std::vector<std::string>& names);

/// Draws from the posterior, looks for its mode, checks, writes all, and fills status, message, marginals and check of the
/// result. `held_out` may be empty. `estimator_hash` names the estimator in the key under which draws are
/// taken over.
struct SamplingStage {
  const RatioEstimator& estimator;
  const std::string& estimator_hash;
  const std::vector<double>& x_o;
  const SamplingOptions& sampling;
  const CheckOptions& check;
  MatrixView<const double> held_out_theta, held_out_x;
  const OutputFolder& folder;
  bool resume = false;

  void run(const RunContext& context, CommandResult& result) const;
};

}  // namespace nrec
