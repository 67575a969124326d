// What draws and log ratios cost, on an estimator file. Each call prints one JSON object or a table:
//   sampling_cost observations TASK COUNT SEED                      x_o of COUNT simulations at prior draws, as CSV
//   sampling_cost draws ESTIMATOR X_O.csv METHOD THREADS SEED COUNT  draws for the first row
//   sampling_cost ratios ESTIMATOR X_O.csv THREADS SEED COUNT [THETA.npy LOG_RATIO.npy]
//                                                                   log ratios of COUNT prior draws
//   sampling_cost many ESTIMATOR X_O.csv METHOD THREADS SEED COUNT  COUNT draws for every row in one call
//   sampling_cost both ...                                          the same, and in a single call for every row
// Times leave out the start of the program and reading of files.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "nrec/inference/sample_many.h"
#include "nrec/inference/summarise.h"
#include "nrec/io/csv.h"
#include "nrec/io/npy.h"
#include "nrec/kernels/dispatch.h"
#include "nrec/tasks/task.h"

namespace {

using namespace nrec;

/// Wall and processor time since it was made.
class Timer {
 public:
  double seconds() const { return watch_.seconds(); }
  double cpu_seconds() const { return process_seconds() - start_; }

 private:
  static double process_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  double start_ = process_seconds();
  Stopwatch watch_;
};

std::string list(const std::vector<double>& values) {
  std::string text = "[";
  for (const double value : values) {
    char number[40];
    std::snprintf(number, sizeof number, "%s%.9g", text.size() > 1 ? ", " : "", value);
    text += number;
  }
  return text + "]";
}

struct Input {
  RatioEstimator estimator;
  Matrix<double> x_o;

  Input(const char* estimator_file, const char* x_o_file)
      : estimator(load_estimator(estimator_file)), x_o(read_csv(x_o_file).values) {}
};

/// As the program: the environment variable NREC_ISA, or what is fastest in float32.
std::string wanted_isa() {
  const char* isa = std::getenv("NREC_ISA");
  return isa && *isa ? isa : "auto";
}

void print_observations(const std::string& task_name, std::size_t count, std::uint64_t seed) {
  const auto task = make_task(task_name);
  Matrix<double> theta(count, task->dim_theta()), x(count, task->dim_x());
  task->prior().sample(seed, Stream::observation, 0, theta);
  for (std::size_t i = 0; i < count; ++i) {
    RandomStream random(seed, Stream::observation, count + i);
    task->simulator().simulate(theta.row(i), random, x.row(i));
  }
  std::fputs(csv_text({}, x).c_str(), stdout);
}

void time_draws(const Input& input, const SamplingOptions& options, int threads, std::uint64_t seed) {
  ThreadPool pool(threads);
  const RunContext run{.pool = pool, .seed = seed, .isa = wanted_isa()};
  const Timer timer;
  const PosteriorDraws draws =
      sample(Posterior::from_estimator(input.estimator, input.x_o.row(0), run), options, run);
  const double seconds = timer.seconds(), cpu_seconds = timer.cpu_seconds();
  std::vector<double> mean, sd, ess;
  for (const MarginalSummary& row : summarise(draws)) {
    mean.push_back(row.mean);
    sd.push_back(row.sd);
    ess.push_back(row.ess);
  }
  std::printf(
      "{\"contender\": \"nrec\", \"isa\": \"%s\", \"method\": \"%s\", \"used\": \"%s\", \"threads\": %d, "
      "\"seconds\": %.6f, "
      "\"cpu_seconds\": %.6f, \"draws\": %zu, \"status\": \"%s\", \"evaluations\": %.0f, \"least_ess\": "
      "%.1f, "
      "\"mean\": %s, \"sd\": %s, \"ess\": %s}\n",
      resolve_isa(run.isa).c_str(), options.method.c_str(), draws.method.c_str(), threads, seconds,
      cpu_seconds, draws.size(), std::string(sampling_status_name(draws.status)).c_str(),
      std::get<double>(*draws.statistics.find("evaluations")), *std::min_element(ess.begin(), ess.end()),
      list(mean).c_str(), list(sd).c_str(), list(ess).c_str());
}

/// The thetas are drawn before, the network is ready: what is timed is theta -> log ratio.
void time_ratios(const Input& input, int threads, std::uint64_t seed, std::size_t count, char** files) {
  ThreadPool pool(threads);
  const RunContext run{.pool = pool, .seed = seed, .isa = wanted_isa()};
  const Posterior posterior = Posterior::from_estimator(input.estimator, input.x_o.row(0), run);
  Matrix<double> theta(count, posterior.prior().dim());
  Matrix<double> log_ratio(count, 1);
  posterior.prior().sample(seed, Stream::check, 0, theta);
  const Timer timer;
  posterior.log_ratio(theta, log_ratio.values());
  const double seconds = timer.seconds(), cpu_seconds = timer.cpu_seconds();
  if (files) {
    write_npy(files[0], theta);
    write_npy(files[1], log_ratio);
  }
  std::printf(
      "{\"contender\": \"nrec\", \"isa\": \"%s\", \"method\": \"ratios\", \"threads\": %d, \"seconds\": "
      "%.6f, "
      "\"cpu_seconds\": %.6f, \"evaluations\": %zu}\n",
      resolve_isa(run.isa).c_str(), threads, seconds, cpu_seconds, count);
}

std::size_t count_complete(const std::vector<PosteriorDraws>& all) {
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const PosteriorDraws& draws) {
    return draws.status == SamplingStatus::complete;
  }));
}

/// Wall and processor seconds of single calls that share all threads; other draws than in `all` are an error.
std::pair<double, double> single_calls(const Input& input, const SamplingOptions& options, ThreadPool& pool,
                                       std::uint64_t seed, const std::vector<PosteriorDraws>& all) {
  const Timer timer;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const RunContext run{.pool = pool, .seed = observation_seed(seed, i), .isa = wanted_isa()};
    const PosteriorDraws draws =
        sample(Posterior::from_estimator(input.estimator, input.x_o.row(i), run), options, run);
    if (draws.theta.values() != all[i].theta.values())
      throw std::runtime_error("observation " + std::to_string(i) + " has other draws alone");
  }
  return {timer.seconds(), timer.cpu_seconds()};
}

void time_many(const Input& input, const SamplingOptions& options, int threads, std::uint64_t seed,
               bool with_single_calls) {
  ThreadPool pool(threads);
  const RunContext run{.pool = pool, .seed = seed, .isa = wanted_isa()};
  const Timer timer;
  const std::vector<PosteriorDraws> all = sample_many(input.estimator, input.x_o, options, run);
  const double seconds = timer.seconds(), cpu_seconds = timer.cpu_seconds();
  double evaluations = 0.0;
  for (const PosteriorDraws& draws : all)
    evaluations += std::get<double>(*draws.statistics.find("evaluations"));
  std::printf(
      "{\"contender\": \"nrec\", \"isa\": \"%s\", \"method\": \"%s\", \"threads\": %d, \"observations\": "
      "%zu, "
      "\"draws\": %zu, \"complete\": %zu, \"evaluations\": %.0f, \"seconds\": %.4f, \"cpu_seconds\": %.4f",
      resolve_isa(run.isa).c_str(), options.method.c_str(), threads, all.size(), all[0].size(),
      count_complete(all), evaluations, seconds, cpu_seconds);
  if (with_single_calls) {
    const auto [apart, apart_cpu] = single_calls(input, options, pool, seed, all);
    std::printf(", \"single_calls_seconds\": %.4f, \"single_calls_cpu_seconds\": %.4f", apart, apart_cpu);
  }
  std::printf("}\n");
}

int usage() {
  std::fprintf(stderr,
               "usage: sampling_cost observations TASK COUNT SEED\n"
               "       sampling_cost draws ESTIMATOR X_O.csv METHOD THREADS SEED COUNT\n"
               "       sampling_cost ratios ESTIMATOR X_O.csv THREADS SEED COUNT [THETA.npy LOG_RATIO.npy]\n"
               "       sampling_cost many|both ESTIMATOR X_O.csv METHOD THREADS SEED COUNT\n");
  return 2;
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "observations" && argc == 5) {
    print_observations(argv[2], std::stoul(argv[3]), std::stoul(argv[4]));
  } else if (what == "ratios" && (argc == 7 || argc == 9)) {
    time_ratios(Input(argv[2], argv[3]), std::stoi(argv[4]), std::stoul(argv[5]), std::stoul(argv[6]),
                argc == 9 ? argv + 7 : nullptr);
  } else if ((what == "draws" || what == "many" || what == "both") && argc == 8) {
    SamplingOptions options;
    options.method = argv[4];
    options.num_samples = std::stol(argv[7]);
    // The cost of all draws is asked for, however long they take.
    options.max_evaluations = std::int64_t{1} << 40;
    options.max_seconds = std::numeric_limits<double>::infinity();
    const Input input(argv[2], argv[3]);
    const int threads = std::stoi(argv[5]);
    const std::uint64_t seed = std::stoul(argv[6]);
    if (what == "draws")
      time_draws(input, options, threads, seed);
    else
      time_many(input, options, threads, seed, what == "both");
  } else {
    return usage();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sampling_cost: %s\n", error.what());
    return 3;
  }
}
