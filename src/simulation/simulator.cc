#include "nrec/simulation/simulator.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>

#include "nrec/core/error.h"
#include "nrec/core/stop.h"

namespace nrec {
namespace {

// Rows one thread takes at a time: many when rows are cheap to count, few when there are few rows.
constexpr std::size_t kMostRowsPerTask = 256;
constexpr std::size_t kTasksPerThread = 8;
constexpr double kSecondsBetweenProgress = 0.25;

// The error text of the failed row with the lowest number, whichever thread met it.
class FirstFailure {
 public:
  void note(std::uint64_t row, const char* text) {
    const std::lock_guard lock(mutex_);
    if (row >= row_) return;
    row_ = row;
    text_ = text;
  }
  const std::string& text() const { return text_; }

 private:
  std::mutex mutex_;
  std::uint64_t row_ = std::numeric_limits<std::uint64_t>::max();
  std::string text_;
};

RowStatus simulate_row(const Simulator& simulator, std::uint64_t seed, std::uint64_t row,
                       std::span<const double> theta, std::span<double> x, FirstFailure& failure) {
  try {
    RandomStream random(seed, Stream::simulator, row);
    simulator.simulate(theta, random, x);
    return std::all_of(x.begin(), x.end(), [](double value) { return std::isfinite(value); })
               ? RowStatus::ok
               : RowStatus::non_finite;
  } catch (const std::exception& error) {
    failure.note(row, error.what());
  } catch (...) {
    failure.note(row, "an exception that is not a std::exception");
  }
  // What a failed simulation left half written is not data.
  std::fill(x.begin(), x.end(), std::numeric_limits<double>::quiet_NaN());
  return RowStatus::failed;
}

// Calls body(first, count) for pieces of 0 .. num_rows - 1 on all threads.
template <class Body>
void for_each_piece(std::size_t num_rows, ThreadPool& pool, Body&& body) {
  const std::size_t wanted_tasks = static_cast<std::size_t>(pool.num_threads()) * kTasksPerThread;
  const std::size_t piece = std::clamp<std::size_t>(num_rows / wanted_tasks, 1, kMostRowsPerTask);
  pool.run((num_rows + piece - 1) / piece, [&](std::size_t task, int) {
    const std::size_t first = task * piece;
    body(first, std::min(piece, num_rows - first));
  });
}

void require_shape(bool ok, const std::string& name, const char* what, std::size_t value,
                   const char* wanted_what, std::size_t wanted) {
  if (ok) return;
  throw ShapeError("simulate: " + std::string(what) + " = " + std::to_string(value) + " but " + wanted_what +
                   " = " + std::to_string(wanted) + " (simulator " + name +
                   "); give arrays of matching size");
}

void warn_of_failures(const SimulationSet& simulations, const FirstFailure& failure, LogSink& log) {
  const auto bad = std::count_if(simulations.status.begin(), simulations.status.end(),
                                 [](RowStatus s) { return s != RowStatus::ok; });
  if (bad == 0) return;
  std::string text = "simulate: " + std::to_string(bad) + " of " + std::to_string(simulations.num_rows()) +
                     " simulations failed; they are kept with a status, and failures = stop | model | drop "
                     "says what training "
                     "does with them";
  if (!failure.text().empty()) text += ". First error: " + failure.text();
  log.warning(text);
}

}  // namespace

FunctionSimulator::FunctionSimulator(std::string name, std::size_t dim_theta, std::size_t dim_x,
                                     Function function)
    : name_(std::move(name)), dim_theta_(dim_theta), dim_x_(dim_x), function_(std::move(function)) {
  if (dim_theta_ == 0)
    throw ShapeError("simulator " + name_ + ": dim_theta = 0; a simulator needs at least one parameter");
  if (dim_x_ == 0)
    throw ShapeError("simulator " + name_ + ": dim_x = 0; a simulator needs at least one datum");
  if (!function_) throw ConfigError("simulator " + name_ + ": the function is empty; give a callable");
}

void FunctionSimulator::simulate(std::span<const double> theta, RandomStream& random,
                                 std::span<double> x) const {
  function_(theta, random, x);
}

void simulate_rows(const Simulator& simulator, std::uint64_t seed, std::uint64_t first_row,
                   MatrixView<const double> theta, MatrixView<double> x, std::span<RowStatus> status,
                   ThreadPool& pool) {
  const std::string name = simulator.name();
  require_shape(theta.cols == simulator.dim_theta(), name, "theta.cols", theta.cols, "dim_theta",
                simulator.dim_theta());
  require_shape(x.cols == simulator.dim_x(), name, "x.cols", x.cols, "dim_x", simulator.dim_x());
  require_shape(x.rows == theta.rows, name, "x.rows", x.rows, "theta.rows", theta.rows);
  require_shape(status.size() == theta.rows, name, "status.size", status.size(), "theta.rows", theta.rows);
  FirstFailure failure;
  for_each_piece(theta.rows, pool, [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      status[i] = simulate_row(simulator, seed, first_row + i, theta.row(i), x.row(i), failure);
    }
  });
}

SimulationSet simulate_from_prior(const Prior& prior, const Simulator& simulator, std::size_t num_simulations,
                                  std::uint64_t seed, ThreadPool& pool, LogSink& log) {
  require_shape(prior.dim() == simulator.dim_theta(), simulator.name(), "prior.dim", prior.dim(), "dim_theta",
                simulator.dim_theta());
  if (num_simulations == 0)
    throw DomainError("simulate: num_simulations = 0; at least one simulation is needed");

  SimulationSet simulations;
  simulations.theta = Matrix<double>(num_simulations, prior.dim());
  simulations.x = Matrix<double>(num_simulations, simulator.dim_x());
  simulations.status.resize(num_simulations);
  simulations.parameter_names = prior.names();
  simulations.source = "simulator " + simulator.name() + ", seed " + std::to_string(seed);

  FirstFailure failure;
  const Stopwatch watch;
  double last_report = 0.0;
  // Blocks, growing while they are over quickly, only so that progress can be told from this thread; the rows do not
  // depend on them.
  std::size_t block = 2 * kTasksPerThread * static_cast<std::size_t>(pool.num_threads());
  std::size_t rows = 0;
  for (std::size_t start = 0; start < num_simulations; start += rows) {
    rows = std::min(block, num_simulations - start);
    for_each_piece(rows, pool, [&](std::size_t first, std::size_t count) {
      first += start;
      prior.sample(seed, Stream::prior, first, simulations.theta.view().middle_rows(first, count));
      for (std::size_t i = first; i < first + count; ++i) {
        simulations.status[i] = simulate_row(simulator, seed, i, std::as_const(simulations.theta).row(i),
                                             simulations.x.row(i), failure);
      }
    });
    const double seconds = watch.seconds();
    const std::size_t done = start + rows;
    if (seconds - last_report < kSecondsBetweenProgress) {
      block *= 2;
    } else {
      last_report = seconds;
      const auto total = static_cast<double>(num_simulations);
      log.progress({.stage = "simulation",
                    .done = static_cast<double>(done),
                    .total = total,
                    .unit = "simulation",
                    .seconds_left = seconds * (total - static_cast<double>(done)) / static_cast<double>(done),
                    .detail = ""});
    }
  }
  warn_of_failures(simulations, failure, log);
  return simulations;
}

}  // namespace nrec
