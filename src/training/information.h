#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/networks/pair_step.h"
#include "nrec/training/ratio_estimator.h"
#include "training/running_moments.h"

namespace nrec {

/// Sums for the numbers on Z(x) of an EpochRecord over rows.
///
///   log Z = log mean_k exp h_k,   I0 = mean(h - log Z),   I1 = mean(h - Z + 1)
///
/// Source   [Miller2022, sec. 2.3]
struct InformationMoments {
  RunningMoments ratio, log_z, i0, i1;

  /// A row: the logit of its own theta, and those of contrastive ones.
  void add(float own, std::span<const float> others);
  /// A row whose log Z is known.
  void add(float own, double log_z_of_row);
  void fill(EpochRecord& record) const;
};

/// Puts nan for what a history does not measure in this epoch.
void leave_out_information(EpochRecord& record);

/// Whether the numbers on Z(x) are measured after this epoch, counted from 1: always for "all"; for "log" in the first 8, then
/// 8 per doubling, round(8 2^(k/8)), and in the last.
bool measures_information(std::string_view information_epochs, int epoch, int max_num_epochs);

/// The numbers on Z(x) from `thetas_per_row` thetas of other validation rows: row b meets the thetas of rows b + s for that many
/// distinct shifts s, fixed for the whole run. The rows are in random order, so a row's thetas are a draw without replacement.
class InformationSet {
 public:
  /// Pairs of a row at a time, so that their activations stay in cache, and rows at a time, which bounds the memory.
  static constexpr std::size_t kMostColumns = 128;
  static constexpr std::size_t kMostRows = 4096;

  /// Shapes   rows - 1 >= thetas_per_row >= 1
  InformationSet(std::size_t rows, std::size_t thetas_per_row, std::uint64_t seed);

  /// Shapes   theta [rows, D], x [rows, M]: row b of both belong together; own [rows]: logits of these pairs
  /// Numerics evaluation mode; equal bits for any number of threads
  /// Cost     rows x thetas_per_row pairs forward; no allocation after the first call; at most 8 bytes x 128 x 4096 of memory,
  ///          16 bytes per row, and that of the step
  void measure(PairNetworkStep& step, const PairNetwork& network, MatrixView<const float> theta,
               MatrixView<const float> x, std::span<const float> own, EpochRecord& record);

 private:
  /// Logits of rows first .. first + count - 1 with the thetas at shifts number first_shift ..., into the sums of the rows.
  void add_block(PairNetworkStep& step, const PairNetwork& network, MatrixView<const float> theta,
                 MatrixView<const float> x, std::size_t first, std::size_t first_shift, std::size_t columns);

  std::vector<std::uint32_t> shifts_;
  std::size_t columns_ = 0;  // shifts at a time
  std::vector<std::uint32_t> candidates_;
  std::vector<float> logits_;
  std::vector<double> top_, sum_;  // per row: largest logit so far, and the sum of exp(logit - top)
};

}  // namespace nrec
