#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace nrec {

/// Who draws: the second word of every random key, so that no two users of one seed share a number.
/// Values are part of the file format of results: add at the end, never renumber.
enum class Stream : std::uint32_t {
  prior = 1,       // theta of simulation i
  simulator = 2,   // noise of simulation i
  split = 3,       // training/validation split
  minibatch = 4,   // order of rows in an epoch
  contrast = 5,    // contrastive sets of training
  validation = 6,  // fixed contrastive sets of validation
  initial_weights = 7,
  sampler = 8,       // proposals of a sampler
  acceptance = 9,    // accept/reject decisions
  check = 10,        // draws made by diagnostics
  observation = 11,  // observations made by a task
  reference = 12,    // reference posterior draws
  resampling = 13,
  chain = 14,
  row_seed = 15,  // integer seed of an external simulation
  success = 16,   // seed of everything random in learning P(ok | theta)
  batch = 17,     // seed of the draws for one observation of a batch
  contrast_theta = 18,    // contrastive thetas drawn from the prior, for training
  validation_theta = 19,  // and for validation
};

/// A sequence of random numbers that is a pure function of (seed, stream, row): Philox 4x32-10.
///
///   block(n) = philox4x32(counter = (n, row low, row high, stream), key = (seed low, seed high))
///
/// Numerics deterministic on every machine; period 2^33 uniforms per (seed, stream, row)
/// Cost     about 10 ns per uniform; no allocation; an object belongs to one thread, copies are independent
/// Source   [Salmon2011]
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, Stream stream, std::uint64_t row = 0);

  /// Next 32 random bits.
  std::uint32_t bits32();
  /// Next 64 random bits.
  std::uint64_t bits64();
  /// Uniform in the open interval (0, 1), 52 bits: never 0, never 1.
  double uniform();
  /// Uniform in (low, high).
  double uniform(double low, double high);
  /// Standard normal (Box-Muller; the second number of a pair is kept for the next call).
  double normal();
  /// Uniform integer in 0 .. bound - 1, exactly; bound >= 1.
  std::uint64_t integer(std::uint64_t bound);
  /// Fisher-Yates shuffle of `values`, in place.
  void shuffle(std::span<std::uint32_t> values);

 private:
  void refill();

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
  bool has_spare_normal_ = false;
  double spare_normal_ = 0.0;
};

}  // namespace nrec
