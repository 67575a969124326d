#include "nrec/commands/sample_command.h"

#include <array>

#include "commands/inputs.h"
#include "commands/results.h"
#include "commands/sampling_stage.h"
#include "nrec/io/file.h"

namespace nrec {

namespace {

namespace fs = std::filesystem;

constexpr std::array kSampleFiles = {files::kDrawsNpz, files::kDrawsCsv, files::kDrawsNetcdf,
                                     files::kEvaluations, files::kRecord};

fs::path model_file(const std::string& model) {
  if (model.empty())
    throw ConfigError("sample: no model is given; name an estimator by --model estimator.safetensors");
  std::error_code code;
  return fs::is_directory(model, code) ? fs::path(model) / files::kEstimator : fs::path(model);
}

}  // namespace

CommandResult sample_command(const SampleCommandOptions& options, const OutputOptions& output,
                             const RunContext& context) {
  const Stopwatch watch;
  const fs::path model = model_file(options.model);
  if (options.check.level == "full")
    throw UnsupportedError(
        "sample: check = \"full\" needs held-out simulations; use \"quick\" here, and nrec check --model M "
        "--simulations HELD_OUT for the rest");
  const Observation observation = read_observation(options.observation);
  const RatioEstimator estimator = load_estimator(model);
  check_observation_columns(observation, estimator.x_low.size());
  const std::string outside =
      outside_warning(columns_outside(estimator, observation.x_o), observation.x_o.rows());
  condition(estimator.prior, read_fixed_parameters(options.sampling.fix));  // and what cannot be fixed
  require_method(options.sampling, estimator.prior);
  if (!outside.empty()) context.log.warning(outside);
  const fs::path out = output.out.empty()
                           ? fs::path(fs::path(options.observation.file).stem().string() + "_draws")
                           : fs::path(output.out);
  const OutputFolder folder(out, kSampleFiles, output);
  const std::vector<std::string> inputs = {model.string(), options.observation.file};
  folder.refuse_inputs(inputs);
  folder.clear();

  CommandResult result;
  result.folder = out;
  result.record = started_record("sample", output, context);
  SampleCommandOptions shown = options;
  OptionTable table;
  describe(table, shown.observation);
  describe(table, shown.sampling);
  describe(table, shown.check);
  add_options(result.record, table);
  const std::string estimator_hash = file_hash(model);
  result.record.set("parameters", RecordValue(estimator.prior.names()));
  result.record.set("inputs.files",
                    RecordValue(std::vector<std::string>{model.string(), options.observation.file}));
  result.record.set("inputs.hashes", RecordValue(std::vector<std::string>{
                                         estimator_hash, file_hash(options.observation.file)}));
  result.record.set("estimator_hash", estimator_hash);
  const SamplingStage stage{estimator,
                            estimator_hash,
                            observation,
                            options.sampling,
                            options.check,
                            {nullptr, 0, estimator.prior.dim()},
                            {nullptr, 0, observation.x_o.cols()},
                            folder,
                            output.resume};
  stage.run(context, result);
  result.record.set("status", command_status_name(result.status));
  result.record.set("message", result.message);
  result.record.set("seconds", watch.seconds());
  write_record(result.record, folder);
  return result;
}

}  // namespace nrec
