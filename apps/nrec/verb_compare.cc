#include <fmt/format.h>

#include <filesystem>

#include "nrec/commands/compare.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"
#include "nrec/io/json.h"
#include "progress_sink.h"
#include "verbs.h"

namespace nrec::app {

namespace {

void print_metrics(const Record& record) {
  const auto real = [&](const char* name) { return std::get<double>(*record.find(name)); };
  const auto on_off = [&](const char* name) { return std::get<bool>(*record.find(name)) ? "on" : "off"; };
  if (record.find("c2st")) {
    const auto& folds = std::get<std::vector<double>>(*record.find("c2st_folds"));
    const auto& epochs = std::get<std::vector<std::int64_t>>(*record.find("epochs"));
    fmt::print(
        "{:<10} {:<12.6f} {:.4g} = cannot be told apart; folds {:.4f}; epochs {}; z-score {}; {:.2f} s\n",
        "c2st", real("c2st"), real("c2st_chance"), fmt::join(folds, " "), fmt::join(epochs, " "),
        on_off("c2st_z_score"), real("c2st_seconds"));
  }
  if (record.find("c2st_regularised")) {
    const auto& epochs = std::get<std::vector<std::int64_t>>(*record.find("c2st_regularised_epochs"));
    fmt::print(
        "{:<10} {:<12.6f} {:.4g} = cannot be told apart; regularised, not to be compared with c2st; epochs "
        "{}; "
        "{:.2f} s\n",
        "c2st_reg", real("c2st_regularised"), real("c2st_regularised_chance"), fmt::join(epochs, " "),
        real("c2st_regularised_seconds"));
  }
  if (record.find("mmd2")) {
    fmt::print("{:<10} {:<12.6g} 0 = same distribution; bandwidth {:.6g}; z-score {}; {:.2f} s\n", "mmd2",
               real("mmd2"), real("bandwidth"), on_off("mmd_z_score"), real("mmd_seconds"));
  }
  if (record.find("mean_error")) {
    fmt::print("{:<10} {:<12.6g} mean over columns of |mean difference|, in sds of the reference\n",
               "mean_error", real("mean_error"));
    fmt::print("{:<10} {:<12.6g} mean over columns of |sd ratio - 1|\n", "sd_error", real("sd_error"));
  }
  if (record.find("gaussian_kl")) {
    fmt::print("{:<10} {:<12.6g} nats between normal distributions with the same means and covariances\n",
               "kl", real("gaussian_kl"));
  }
}

class CompareVerb final : public Verb {
 public:
  CompareVerb() {
    syntax_.name = "compare";
    syntax_.summary = "distance between two sets of samples";
    syntax_.arguments = {
        {"REFERENCE", "file of the set that scales and sets the bandwidth: .csv, .csv.bz2, .npy, .npz, .h5"},
        {"SAMPLES", "file of the set that is judged"}};
    OptionTable& table = syntax_.options;
    nrec::describe(table, options_);
    table.add("", "out", &out_, {}, "a file for the record, as JSON");
    describe(table, program_, false);
    // No time limit here: nothing could be handed back before the end.
    table.add("", "seed", &run_.seed, {.high = 4294967295.0}, "seed of the classifier");
    table.add("", "threads", &run_.threads, {.low = 0, .high = 1024},
              "threads; 0: one per core; results do not depend on it");
  }

  int run(const ParsedLine& line, const std::vector<std::string>& /*words*/) override {
    for (const OptionOverride& flag : line.flags) apply(flag, syntax_.options);
    options_.reference = line.arguments[0];
    options_.samples = line.arguments[1];
    for (const std::string& input : line.arguments) {
      std::error_code code;
      if (!out_.empty() && std::filesystem::equivalent(out_, input, code) && !code)
        throw UsageError("--out: " + out_ +
                         " is an input, and the record would replace it; choose another file");
    }
    ThreadPool pool(run_.threads);
    ProgressSink sink(program_.quiet);
    const RunContext context = {.pool = pool, .seed = run_.seed, .log = sink};
    const CompareResult result = compare(options_, context);
    if (!out_.empty()) write_file(out_, record_to_json(result.record) + "\n");
    if (program_.json) {
      print_json(result.record);
    } else {
      print_metrics(result.record);
    }
    if (!program_.quiet)
      sink.line(out_.empty() ? std::string("nrec compare: done") : "nrec compare: done; record in " + out_);
    return 0;
  }

 private:
  CompareOptions options_;
  RunOptions run_;
  std::string out_;
  ProgramOptions program_;
};

}  // namespace

std::unique_ptr<Verb> make_compare_verb() { return std::make_unique<CompareVerb>(); }

}  // namespace nrec::app
