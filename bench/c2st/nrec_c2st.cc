// Times nrec's C2ST on two .npy files: nrec_c2st REFERENCE.npy SAMPLES.npy [--threads N] [--target
// best|ref|avx2]
// [--no-z-score] [--max-iterations N] [--seed N]. Prints one JSON object.

#include <cstdio>
#include <ctime>
#include <exception>
#include <string>

#include "npy_input.h"
#include "nrec/core/stop.h"
#include "nrec/diagnostics/c2st.h"

namespace {

template <class T>
std::string list(const std::vector<T>& values, const char* format) {
  std::string text = "[";
  for (const T value : values) {
    char number[64];
    std::snprintf(number, sizeof number, format, value);
    text += (text.size() > 1 ? ", " : "") + std::string(number);
  }
  return text + "]";
}

double process_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int run(int argc, char** argv) {
  nrec::C2stOptions options;
  int threads = 1;
  for (int i = 3; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&]() -> std::string {
      return i + 1 < argc ? argv[++i] : throw std::runtime_error(flag + " needs a value");
    };
    if (flag == "--threads")
      threads = std::stoi(value());
    else if (flag == "--no-z-score")
      options.z_score = false;
    else if (flag == "--max-iterations")
      options.max_iterations = std::stoi(value());
    else if (flag == "--seed")
      options.seed = static_cast<std::uint32_t>(std::stoul(value()));
    else if (flag == "--target") {
      const std::string name = value();
      options.target = name == "ref"    ? nrec::SmallMlpTarget::ref
                       : name == "avx2" ? nrec::SmallMlpTarget::avx2
                                        : nrec::SmallMlpTarget::best;
    } else
      throw std::runtime_error("unknown flag " + flag);
  }
  if (argc < 3) throw std::runtime_error("usage: nrec_c2st REFERENCE.npy SAMPLES.npy [flags]");
  const nrec::Matrix<double> reference = read_npy(argv[1]);
  const nrec::Matrix<double> samples = read_npy(argv[2]);
  nrec::ThreadPool pool(threads);
  const double cpu = process_seconds();
  const nrec::Stopwatch clock;
  const nrec::C2stSummary summary = nrec::c2st(reference, samples, options, pool, nrec::silent_sink());
  std::printf(
      "{\"contender\": \"nrec\", \"threads\": %d, \"seconds\": %.4f, \"cpu_seconds\": %.4f, \"c2st\": %.6f, "
      "\"auc\": %.6f, "
      "\"fold_accuracy\": %s, \"epochs\": %s, \"final_loss\": %s}\n",
      threads, clock.seconds(), process_seconds() - cpu, summary.accuracy, summary.auc,
      list(summary.fold_accuracy, "%.6f").c_str(), list(summary.epochs, "%d").c_str(),
      list(summary.final_loss, "%.6f").c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
