#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "nrec/commands/infer.h"

namespace nrec {

/// Version of this build, "0.1.0".
std::string_view nrec_version();

/// What every record starts with: schema version, command, version, seed, instruction set, time.
Record started_record(std::string_view command, const OutputOptions& output, const RunContext& run);

/// Every option of `table` as "options.<section>.<name>".
void add_options(Record& record, const OptionTable& table);
void add_training(Record& record, const TrainingSummary& summary, const RatioEstimator* estimator);
/// mean, sd, quantile05, ..., a list over the parameters each.
Record marginals_record(const std::vector<MarginalSummary>& marginals);
/// The same as "marginals.*", with the names.
void add_marginals(Record& record, const std::vector<MarginalSummary>& marginals);
void add_check(Record& record, const CheckReport& report);

/// The record with "?" for every byte that is not part of valid UTF-8: file names may hold any bytes, JSON may not.
Record with_valid_text(const Record& record);
/// Writes record.json; text that is not UTF-8 gets "?" for its bad bytes.
void write_record(const Record& record, const OutputFolder& folder);
/// The record in a file, or nullopt when there is none that can be read: it is then made again.
/// Errors   UnsupportedError: one of a newer program, which must not be replaced
std::optional<Record> readable_record(const std::filesystem::path& path);
/// The record of an earlier run, or nullopt when there is none that can be read.
std::optional<Record> earlier_record(const OutputFolder& folder);

}  // namespace nrec
