#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nrec/core/stop.h"
#include "nrec/experiments/importance_diagnostic.h"
#include "nrec/simulation/simulation_set.h"

namespace nrec {

/// Thrown where a run must end early; never leaves the room.
struct CutShort {
  ExperimentStatus status;
};

/// A log ratio with the run that it is asked in: it checks what it is given, and ends the run when that must end.
class AskedRatio {
 public:
  AskedRatio(const PairLogRatio& log_ratio, const RunContext& run) : log_ratio_(log_ratio), run_(run) {}

  /// Shapes   theta, x [n]; returns [n].  Errors DomainError: nan or plus infinity; CutShort
  std::vector<double> operator()(std::span<const double> theta, std::span<const double> x) const;
  std::vector<double> operator()(double theta, std::span<const double> x) const;
  /// Errors   CutShort: a stop was requested, or the time limit is over
  void go_on() const;
  void say(const char* what) const;
  /// The run with what is left of its time.
  RunContext rest() const;
  std::uint64_t seed() const { return run_.seed; }
  ThreadPool& pool() const { return run_.pool; }
  LogSink& log() const { return run_.log; }
  const StopRequest* stop() const { return run_.stop; }

 private:
  const PairLogRatio& log_ratio_;
  const RunContext& run_;
  Stopwatch watch_;
};

/// Who draws which rows of Stream::check: block b has 2^40 of them, far behind those of the samplers.
enum class RowBlock : std::uint64_t {
  classifier_ones,
  classifier_zeros,
  roc_ones,
  roc_zeros,
  classifier_weights,
  information,
  first_likelihood,  // and the five behind it
};
std::uint64_t first_row(RowBlock block, std::uint64_t behind = 0);

/// Histogram of weighted values; its densities are nan where no weight is in the range.
/// Shapes   values, weights [n]; no weights: all equal
DensityHistogram density_histogram(std::span<const double> values, std::span<const double> weights,
                                   double low, double high, int bins);
/// (sum w)^2 / sum w^2; 0 where all are 0.
double effective_sample_size(std::span<const double> weights);

PosteriorComparison compare_posterior(const AskedRatio& ratio, const ImportanceDiagnosticOptions& options);
std::vector<LikelihoodComparison> compare_likelihoods(const AskedRatio& ratio,
                                                      const ImportanceDiagnosticOptions& options);
/// Pairs that no network was trained on.
struct HeldOutPairs {
  std::vector<double> theta, x;

  /// The validation rows of a training with these options and this seed, as many as asked for.
  HeldOutPairs(const SimulationSet& simulations, const ImportanceDiagnosticOptions& options,
               std::uint64_t seed);
};
NormalisationCurve normalisation_curve(const AskedRatio& ratio, const HeldOutPairs& held_out);
/// I0, I1 and log Z with `num_draws` prior draws of each pair's own.
RatioInformation held_out_information(const AskedRatio& ratio, const HeldOutPairs& held_out,
                                      std::size_t num_draws);
/// Classifiers and ROC curves at theta = 1.
std::vector<RocComparison> compare_rocs(const AskedRatio& ratio, const NormalisationCurve& normalisation,
                                        const ImportanceDiagnosticOptions& options);

}  // namespace nrec
