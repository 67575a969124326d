#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "networks/tile_pass.h"
#include "nrec/networks/pair_step.h"

namespace nrec {

/// The pair network step on one table of kernels.
///
/// The x rows of a batch are cut into groups (about kGroupPairs pairs each), groups
/// into kNumLanes contiguous lanes. Layer norm and none: forward, loss and backward of a group run while its
/// activations are in cache, with a RoundedLayer part by part. Batch norm: one stage for all groups, then the sums over all
/// pairs, then the next stage.
class PairEngine final : public PairNetworkStep {
 public:
  static constexpr std::size_t kNumLanes = 16;  // fixed: sums must not depend on the machine
  /// At most, of more than one row: about ten float buffers of this many rows fit a 512 KB cache.
  static constexpr std::size_t kGroupPairs = 96;
  /// Pairs that kernels take at once: groups of several rows are multiples of it where they can be.
  static constexpr std::size_t kRowBlock = 8;
  /// Tiles of rounded layers have so many rows: two rows of x share a group of at most so many pairs where that saves tiles. Processors
  /// that multiply tiles have second caches of 2 MB.
  static constexpr std::size_t kTileRows = 32, kMostRoundedPairs = 208;
  /// Exact batch norm cuts rows of more than twice kGroupPairs candidates into pieces of this many.
  static constexpr std::size_t kPiecePairs = 128;

  PairEngine(std::string_view isa, ThreadPool& pool);

  double loss_and_gradient(PairNetwork& network, const PairBatch& batch, const RowLoss& loss,
                           std::span<float> gradient) override;
  void logits(const PairNetwork& network, const PairBatch& batch, MatrixView<float> logits) override;
  std::string_view isa() const override { return kernels_.name; }

 private:
  /// Some rows of x and their candidates: all of them, or (exact batch norm) a piece of those of one row.
  struct Group {
    std::size_t first_row, num_rows;
    std::size_t first_column, num_columns;
    std::size_t pairs() const { return num_rows * num_columns; }
  };
  struct Lane {
    AlignedVector<float> gradient;  // laid out like the weights, without the x input layer
    std::vector<double> sums;       // 2 x width: batch-norm sums
    double loss = 0.0;
  };
  struct Scratch {  // one per thread
    AlignedVector<float> memory, theta_rows;
    AlignedVector<std::uint32_t> masks;
    std::vector<float> logits, d_logits, row_norms;
    tile::Buffers buffers;
  };

  void prepare(const PairNetwork& network, const PairBatch& batch, bool backward);
  std::size_t rows_per_group() const;
  void cut_into_groups(std::size_t rows, bool may_cut_rows);
  class Memory;
  void resize_scratch(const PairNetwork& network, bool backward);
  void take_buffers(const PairNetwork& network, bool backward, Scratch& scratch, Memory& memory) const;
  /// Those of a RoundedLayer: num_kept of its rounded inputs for the way back, all or with exact batch norm one at a time.
  void take_operands(std::size_t part, std::size_t num_kept, Norm norm, Scratch& scratch,
                     Memory& memory) const;
  void input_rows(const PairNetwork& network, const PairBatch& batch);
  /// body(group, lane number, worker), in order within a lane.
  template <class Body>
  void for_groups(const Body& body) {
    pool_.run(kNumLanes, [&](std::size_t lane, int worker) {
      const tile::RoundedSession session(kernels_);
      for (std::size_t g = lane_first_[lane]; g < lane_first_[lane + 1]; ++g)
        body(groups_[g], lane, static_cast<std::size_t>(worker));
    });
  }

  /// Of a part of the group's pairs; z and dz have its rows.
  void forward_input(const PairBatch& batch, const Group& group, const tile::Part& part, float* z) const;
  void input_backward(const PairNetwork& network, const PairBatch& batch, const Group& group,
                      const tile::Part& part, const float* dz, Scratch& scratch, Lane& lane);
  /// Of `count` rows from `first` on.
  double row_losses(std::size_t first, std::size_t count, const RowLoss& loss, const float* logits,
                    float* d_logits, float scale) const;

  void fused_step(const PairNetwork& network, const PairBatch& batch, const RowLoss& loss);

  // Exact batch norm: batch_norm_step.cc.
  struct WholeStep;
  struct Tile {  // a group on its way through one pass
    const Group& group;
    std::size_t rows;  // pairs
    const tile::Buffers& buffers;
    Lane& lane;
    Scratch& scratch;
  };
  void batch_norm_step(PairNetwork& network, const PairBatch& batch, const RowLoss& loss);
  void batch_norm_forward(const WholeStep& step);
  void batch_norm_turn(const WholeStep& step);
  void batch_norm_backward(const WholeStep& step);
  // Of the rows of a part:
  void back_from_logits(const WholeStep& step, const Tile& tile, const tile::Part& part);
  void back_to_block(const WholeStep& step, std::size_t i, const Tile& tile, const tile::Part& part);
  void block_input(const WholeStep& step, std::size_t i, const Tile& tile, const tile::Part& part) const;
  void inner_layer(const WholeStep& step, std::size_t i, const Tile& tile, const tile::Part& part) const;
  void second_activations(const WholeStep& step, std::size_t i, const Tile& tile,
                          const tile::Part& part) const;
  void residual_stream(const WholeStep& step, std::size_t i, const Tile& tile, const tile::Part& part) const;
  void linear_backward(const WholeStep& step, std::size_t i, int which, const Tile& tile,
                       const tile::Part& part) const;
  void add_moments(const WholeStep& step, std::size_t i, int which, const Tile& tile,
                   const tile::Part& part) const;
  void add_norm_sums(const WholeStep& step, std::size_t i, int which, const Tile& tile,
                     const tile::Part& part) const;
  void norm_backward(const WholeStep& step, std::size_t i, int which, const Tile& tile,
                     const tile::Part& part) const;
  /// When all parts were there.
  void weights_backward(const WholeStep& step, std::size_t i, int which, const Tile& tile) const;
  /// Parts of the step's memory that a pass works on; null: none.
  using Parts = std::array<const AlignedVector<float>*, Ahead::kMost>;
  Tile tile_of(const Group& group, Lane& lane, Scratch& scratch);
  /// What becomes of t[i] where it is made again: rows of a part, or all of a tile.
  enum class RowsOfT { part, tile };
  /// Those of a pass that fetch what the next tile reads: one for each part of a tile, or one for all.
  struct Products {
    int of_part, of_tile;
  };
  /// stages(tile) for every group; while its `products` are computed, `parts` of the next come from memory.
  template <class Stages>
  void pass_over_groups(const Parts& parts, const Products& products, RowsOfT rows_of_t,
                        const Stages& stages);
  /// Those of the residual stream in front of block i; z[0] is not kept, and that behind the last block neither.
  const AlignedVector<float>* kept_z(std::size_t i) const {
    return i == 0 || i > step_z_.size() ? nullptr : &step_z_[i - 1];
  }
  const AlignedVector<float>* kept_t(std::size_t i) const {
    return i < step_t_.size() ? &step_t_[i] : nullptr;
  }
  Parts parts_of_stream(std::size_t i) const;
  /// Rounded products of AMX take less time than what they compute takes to come from memory: then the output of a block's first
  /// layer is made again where it is wanted. Those in software do the same, so that it is tested on any machine.
  bool keeps_t() const { return kernels_.rounded == nullptr; }
  void resize_whole_step(std::size_t blocks, std::size_t pairs);
  /// Where the group's pairs begin in an array of the whole step, in floats.
  std::size_t start_of(const Group& group) const {
    return (group.first_row * columns_ + group.first_column) * width_;
  }
  std::vector<double>& add_sums();
  void finish_batch_statistics(PairNetwork& network, std::size_t i, int which);
  void batch_norm_coefficients(PairNetwork& network, std::size_t i, int which);

  void finish_gradient(const PairNetwork& network, const PairBatch& batch, std::span<float> gradient);

  const PairKernels& kernels_;
  ThreadPool& pool_;
  tile::PackedNetwork packed_;
  std::vector<Group> groups_;
  std::vector<std::size_t> lane_first_;  // kNumLanes + 1 group numbers
  std::vector<Lane> lanes_;
  std::vector<Scratch> scratch_;
  std::size_t columns_ = 0;      // candidates of a row
  std::size_t pieces_ = 1;       // groups that a row of x is cut into
  std::size_t group_pairs_ = 0;  // of the largest group
  std::size_t width_ = 0;
  AlignedVector<float> u_, v_, d_v_;  // theta and x sides of the input layer per row; gradient of the x side
  // Batch norm only: activations of all pairs, and what its way back needs per column.
  std::vector<AlignedVector<float>> step_z_, step_t_;
  AlignedVector<float> step_dz_, step_d_;
  std::vector<AlignedVector<float>> batch_mean_, batch_rstd_;  // [2 num_blocks][width]
  AlignedVector<float> c0_, c1_, c2_;
};

}  // namespace nrec
