#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/core/options.h"

namespace nrec {

/// Where a command leaves its files.
struct OutputOptions {
  std::string out;           // folder; empty: a name made from the problem, in the current folder
  bool overwrite = false;    // replace the files of an earlier run
  bool resume = false;       // go on with an earlier run
  std::string command_line;  // for the record
  bool can_resume = true;    // whether the command knows --resume
};

/// Flags --out, --overwrite and, unless `can_resume` is false, --resume.
void describe(OptionTable& table, OutputOptions& options, bool can_resume);

/// Names of the files that commands write.
namespace files {
inline constexpr std::string_view kEstimator = "estimator.safetensors";
inline constexpr std::string_view kCheckpoint = "checkpoint.safetensors";
inline constexpr std::string_view kDrawsNpz = "draws.npz";
inline constexpr std::string_view kDrawsCsv = "draws.csv";
inline constexpr std::string_view kDrawsNetcdf = "draws.nc";
inline constexpr std::string_view kEvaluations = "evaluations.bin";  // of sampling that was cut off
inline constexpr std::string_view kRecord = "record.json";
inline constexpr std::string_view kConfig = "config.toml";
inline constexpr std::string_view kPredictive =
    "predictive.npz";  // of the user's simulator at posterior draws
}  // namespace files

/// The folder of a run, open for writing. It removes itself in the destructor when it is new and still empty.
class OutputFolder {
 public:
  /// Makes the folder (and those above it) and proves that a file can be written there.
  ///
  /// Errors   ConfigError: it holds one of `owned` and neither overwrite nor resume is given, or both are;
  ///          another process has it open; IoError: it cannot be made or written
  OutputFolder(const std::filesystem::path& folder, std::span<const std::string_view> owned,
               const OutputOptions& options);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path file(std::string_view name) const { return folder_ / name; }
  /// Errors   ConfigError: one of `inputs` is a file that the command will write
  void refuse_inputs(std::span<const std::string> inputs) const;
  /// With overwrite: removes the owned files of the earlier run. Called when the inputs of the new one have
  /// been accepted.
  void clear() const;

 private:
  std::filesystem::path folder_;
  std::vector<std::string> owned_;
  bool overwrite_;
  int lock_ = -1;                     // descriptor of the folder, locked
  std::filesystem::path first_made_;  // topmost folder that was made here; empty if none
};

}  // namespace nrec
