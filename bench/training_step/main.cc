// Time of one training step (forward, loss, backward) per norm and size, against the peak of the machine; one JSON object a line.
// usage: training_step [--quick] [--threads N] [--repeats N] [--isa NAME] [--only H,R,K,B,NORM] [--dump FILE.npz]
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nrec/core/error.h"
#include "nrec/core/stop.h"
#include "nrec/kernels/dispatch.h"
#include "onednn_step.h"
#include "peak.h"
#include "problem.h"

namespace {

using namespace nrec;
using namespace nrec::bench;

struct Arguments {
  bool quick = false;
  int threads = 0, repeats = 0;
  std::string isa = "auto", dump;
  std::optional<std::pair<Setting, Norm>> only;
};

int whole(const std::string& flag, const std::string& text, int low) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low)
    throw UsageError(fmt::format("{}: \"{}\" must be a whole number >= {}", flag, text, low));
  return value;
}

std::pair<Setting, Norm> setting_of(const std::string& text) {
  std::vector<std::string> parts = {""};
  for (const char c : text) c == ',' ? parts.emplace_back() : parts.back() += c;
  if (parts.size() != 5)
    throw UsageError("--only: give hidden,blocks,num_classes,batch,norm: 128,3,99,1024,batch");
  std::size_t sizes[4];
  for (int i = 0; i < 4; ++i)
    sizes[i] = static_cast<std::size_t>(whole("--only", parts[static_cast<std::size_t>(i)], 1));
  return {{sizes[0], sizes[1], sizes[2], sizes[3]}, norm_kind(parts[4])};
}

Arguments arguments_of(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--quick") {
      arguments.quick = true;
      continue;
    }
    if (i + 1 == argc)
      throw UsageError(flag + ": is unknown, or its value is missing; the source says what there is");
    const std::string value = argv[++i];
    if (flag == "--threads")
      arguments.threads = whole(flag, value, 0);
    else if (flag == "--repeats")
      arguments.repeats = whole(flag, value, 1);
    else if (flag == "--isa")
      arguments.isa = value;
    else if (flag == "--dump")
      arguments.dump = value;
    else if (flag == "--only")
      arguments.only = setting_of(value);
    else
      throw UsageError(flag + ": is unknown; the source says what there is");
  }
  if (arguments.repeats == 0) arguments.repeats = arguments.quick ? 3 : 7;
  return arguments;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// A step that is timed in turn with others.
struct Contender {
  std::string name;
  std::string isa;  // whose peak it is compared with
  Setting setting;
  Norm norm;
  std::unique_ptr<StepProblem> problem;
  std::unique_ptr<PairNetworkStep> step;
  std::vector<float> gradient;
  int steps = 1;                // that are timed together
  std::vector<double> seconds;  // of a step
  std::vector<double> shares;   // of the peak beside each of them

  Contender(const std::string& who, const std::string& peak_isa, const Setting& size, Norm kind,
            ThreadPool& pool)
      : name(who),
        isa(peak_isa),
        setting(size),
        norm(kind),
        problem(std::make_unique<StepProblem>(size, kind)),
        step(make_contender(who, kind, pool)) {
    gradient.resize(problem->gradient_size());
  }
  double run() {
    return step->loss_and_gradient(problem->network, problem->batch(), problem->row_loss(), gradient);
  }
};

/// Short steps are timed together for so long: training takes one after the other.
constexpr double kSecondsAtOnce = 0.1, kMostSteps = 100;

/// Bursts of all instruction sets.
using Peaks = std::map<std::string, std::vector<double>>;

/// Times steps between two series of bursts; all bursts are added to `peaks`. One goes before that is not timed: caches and
/// clock are as bursts and other contenders left them.
void time_steps(Contender& contender, ThreadPool& pool, Peaks& peaks) {
  std::vector<double> around = peak_bursts_gflops(contender.isa, pool);
  contender.run();
  const Stopwatch watch;
  for (int i = 0; i < contender.steps; ++i) contender.run();
  const double seconds = watch.seconds() / contender.steps;
  const std::vector<double> after = peak_bursts_gflops(contender.isa, pool);
  around.insert(around.end(), after.begin(), after.end());
  std::vector<double>& all = peaks[contender.isa];
  all.insert(all.end(), around.begin(), around.end());
  contender.seconds.push_back(seconds);
  contender.shares.push_back(around.empty() ? 0.0
                                            : contender.setting.flops() / seconds * 1e-9 / median(around));
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::vector<Setting> settings(bool quick) {
  std::vector<Setting> list = {{50, 2, 9, 1024}, {128, 3, 9, 1024}};
  if (!quick) list.push_back({128, 3, 99, 1024});
  return list;
}

void report(const Contender& contender, const StepDifference& difference, const std::vector<double>& peaks,
            int threads) {
  const double peak = peaks.empty() ? 0.0 : *std::max_element(peaks.begin(), peaks.end());
  const double seconds = median(contender.seconds), gflops = contender.setting.flops() / seconds * 1e-9;
  const Setting& s = contender.setting;
  fmt::print(
      "{{\"variant\": \"{}-{}\", \"hidden\": {}, \"blocks\": {}, \"num_classes\": {}, \"batch\": {}, "
      "\"threads\": {}, \"steps\": {}, \"ms\": {:.3f}, \"min_ms\": {:.3f}, \"gflops\": {:.1f}, "
      "\"peak_gflops\": {:.1f}, "
      "\"share\": {:.3f}, \"share_of_moment\": {:.3f}, \"gradient_difference\": {:.2e}, \"loss_difference\": "
      "{:.2e}}}\n",
      contender.name, norm_name(contender.norm), s.hidden, s.blocks, s.num_classes, s.batch, threads,
      contender.steps, 1e3 * seconds,
      1e3 * *std::min_element(contender.seconds.begin(), contender.seconds.end()), gflops, peak,
      peak > 0 ? gflops / peak : 0.0, median(contender.shares), difference.gradient, difference.loss);
  std::fflush(stdout);
}

void run(const Arguments& arguments) {
  ThreadPool pool(arguments.threads);
  const std::string isa = resolve_isa(arguments.isa);
  std::vector<std::pair<Setting, Norm>> all;
  if (arguments.only)
    all.push_back(*arguments.only);
  else
    for (const Setting& setting : settings(arguments.quick))
      for (const Norm norm : {Norm::none, Norm::layer, Norm::batch}) all.emplace_back(setting, norm);
  fmt::print(
      "{{\"processor\": \"{}\", \"compiler\": \"{}\", \"isa\": \"{}\", \"threads\": {}, \"repeats\": {}}}\n",
      processor(), __VERSION__, isa, pool.num_threads(), arguments.repeats);
  std::vector<Contender> contenders;
  for (const auto& [setting, norm] : all) {
    contenders.emplace_back(isa, isa, setting, norm, pool);
    if (arguments.isa == "auto" && isa_status("amx").available)
      contenders.emplace_back("amx", "amx", setting, norm, pool);
    if (has_onednn() && can_compose(setting.hidden, norm))
      contenders.emplace_back("onednn", isa, setting, norm, pool);
  }
  // The first step takes memory; its result is the one to compare.
  for (Contender& contender : contenders) {
    PairNetwork before = contender.problem->network;  // batch norm's running statistics change
    const double loss = contender.run();
    contender.problem->network = before;
    const Stopwatch watch;
    contender.run();
    contender.steps = 1 + static_cast<int>(std::min(kMostSteps, kSecondsAtOnce / watch.seconds()));
    contender.problem->network = before;
    if (!arguments.dump.empty() && contender.name == isa)
      contender.problem->dump(arguments.dump, loss, contender.gradient);
  }
  Peaks peaks;
  for (int i = 0; i < arguments.repeats; ++i) {  // in turn, so that a slow moment hits all
    for (Contender& contender : contenders) time_steps(contender, pool, peaks);
  }
  for (const Contender& contender : contenders)
    report(contender, difference_from_ref(contender.name, contender.setting, contender.norm, pool),
           peaks[contender.isa], pool.num_threads());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(arguments_of(argc, argv));
    return 0;
  } catch (const UsageError& error) {
    fmt::print(stderr, "training_step: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "training_step: {}\n", error.what());
    return 1;
  }
}
