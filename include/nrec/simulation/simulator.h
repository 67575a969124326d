#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "nrec/core/array.h"
#include "nrec/core/log_sink.h"
#include "nrec/core/random.h"
#include "nrec/core/thread_pool.h"
#include "nrec/priors/prior.h"
#include "nrec/simulation/row_runner.h"
#include "nrec/simulation/simulation_set.h"

namespace nrec {

/// Turns parameters into data. Implementations are thread-safe and keep no state between rows.
class Simulator {
 public:
  virtual ~Simulator() = default;
  virtual std::string name() const = 0;
  virtual std::size_t dim_theta() const = 0;
  virtual std::size_t dim_x() const = 0;
  /// Simulates one row; all randomness comes from `random`, so the row is a pure function of its key.
  /// A simulation that fails throws any std::exception, or leaves nan in x: the caller makes it a row status.
  ///
  /// Shapes   theta [D] in; x [M] out
  virtual void simulate(std::span<const double> theta, RandomStream& random, std::span<double> x) const = 0;
};

/// A simulator made from a callable: the way into the library for users' own C++ functions.
class FunctionSimulator final : public Simulator {
 public:
  using Function =
      std::function<void(std::span<const double> theta, RandomStream& random, std::span<double> x)>;
  /// Errors: ShapeError: dim_theta or dim_x is 0; ConfigError: empty function.
  FunctionSimulator(std::string name, std::size_t dim_theta, std::size_t dim_x, Function function);
  std::string name() const override { return name_; }
  std::size_t dim_theta() const override { return dim_theta_; }
  std::size_t dim_x() const override { return dim_x_; }
  void simulate(std::span<const double> theta, RandomStream& random, std::span<double> x) const override;

 private:
  std::string name_;
  std::size_t dim_theta_;
  std::size_t dim_x_;
  Function function_;
};

/// Simulates rows first_row .. first_row + theta.rows - 1 on all threads of `pool`; noise of row i is the stream
/// (seed, Stream::simulator, i). Failures become statuses.
///
/// Shapes   theta [n, D] in; x [n, M] out; status [n] out
void simulate_rows(const Simulator& simulator, std::uint64_t seed, std::uint64_t first_row,
                   MatrixView<const double> theta, MatrixView<double> x, std::span<RowStatus> status,
                   ThreadPool& pool);

/// Draws `num_simulations` thetas from the prior and simulates each. Row i is a pure function of (seed, i).
/// Errors   ShapeError: prior.dim() != simulator.dim_theta(); DomainError: num_simulations = 0
SimulationSet simulate_from_prior(const Prior& prior, const Simulator& simulator, std::size_t num_simulations,
                                  std::uint64_t seed, ThreadPool& pool, LogSink& log = silent_sink());

/// A worker of a campaign that calls `simulator`, which must outlive it, in this process: for built-in tasks and trusted
/// functions. Rows are those of simulate_from_prior with the same seed.
std::unique_ptr<RowRunner> make_row_runner(const Simulator& simulator, std::uint64_t seed);

}  // namespace nrec
