// Exact batch norm: statistics are sums over all pairs of a step, so a pass goes through all groups between two of them.
#include <algorithm>
#include <cmath>

#include "networks/pair_engine.h"

namespace nrec {

/// What all passes of a step share.
struct PairEngine::WholeStep {
  PairNetwork& network;
  const PairBatch& batch;
  const RowLoss& loss;
  tile::Pass pass;
  std::size_t blocks;

  template <class Body>
  void for_parts(const Tile& tile, const Body& body) const {
    pass.for_parts(tile.rows, body);
  }
};

/// With the thread's buffers, pointed at the group's part of the step's memory. What the last block puts out lies where its gradient will.
PairEngine::Tile PairEngine::tile_of(const Group& group, Lane& lane, Scratch& scratch) {
  const std::size_t offset = start_of(group);
  tile::Buffers& b = scratch.buffers;
  for (std::size_t i = 0; i < step_z_.size(); ++i) b.z[i + 1] = step_z_[i].data() + offset;
  for (std::size_t i = 0; i < step_t_.size(); ++i) b.t[i] = step_t_[i].data() + offset;
  b.d = step_d_.data() + offset;
  b.dz = step_dz_.data() + offset;
  if (b.z.size() > 1) b.z.back() = b.dz;
  return {group, group.pairs(), b, lane, scratch};
}

std::vector<double>& PairEngine::add_sums() {
  for (std::size_t lane = 1; lane < kNumLanes; ++lane) {
    for (std::size_t c = 0; c < 2 * width_; ++c) lanes_[0].sums[c] += lanes_[lane].sums[c];
  }
  return lanes_[0].sums;
}

/// Moments (about the running mean, which keeps the squares small) -> affine map of this batch and new running values.
void PairEngine::finish_batch_statistics(PairNetwork& network, std::size_t i, int which) {
  const std::vector<double>& sums = add_sums();
  const double n = static_cast<double>(step_dz_.size() / width_);  // pairs
  float* running_mean = network.statistics().data() + network.running_mean(i, which);
  float* running_variance = network.statistics().data() + network.running_variance(i, which);
  const PairNetwork::BlockOffsets at = network.block(i);
  const float* gain = network.weights().data() + (which ? at.gain2 : at.gain1);
  const float* shift = network.weights().data() + (which ? at.shift2 : at.shift1);
  tile::PackedNetwork::Block& block = packed_.blocks[i];
  AlignedVector<float>& mean = batch_mean_[2 * i + static_cast<std::size_t>(which)];
  AlignedVector<float>& rstd = batch_rstd_[2 * i + static_cast<std::size_t>(which)];
  constexpr double kMomentum = PairNetwork::kBatchNormMomentum;
  for (std::size_t c = 0; c < width_; ++c) {
    const double offset = sums[c] / n;
    const double batch_mean = running_mean[c] + offset;
    const double variance = std::max(0.0, sums[width_ + c] / n - offset * offset);
    const double inverse = 1.0 / std::sqrt(variance + PairNetwork::kBatchNormEps);
    mean[c] = static_cast<float>(batch_mean);
    rstd[c] = static_cast<float>(inverse);
    block.scale[which][c] = static_cast<float>(gain[c] * inverse);
    block.shift[which][c] = static_cast<float>(shift[c] - batch_mean * gain[c] * inverse);
    const double unbiased = n > 1 ? variance * n / (n - 1) : variance;
    running_mean[c] = static_cast<float>((1 - kMomentum) * running_mean[c] + kMomentum * batch_mean);
    running_variance[c] = static_cast<float>((1 - kMomentum) * running_variance[c] + kMomentum * unbiased);
  }
}

/// Sums of the way back -> gradients of gain and shift, and dz = c0 d + c1 + c2 (z - mean).
void PairEngine::batch_norm_coefficients(PairNetwork& network, std::size_t i, int which) {
  const std::vector<double>& sums = add_sums();
  const double n = static_cast<double>(step_dz_.size() / width_);  // pairs
  const PairNetwork::BlockOffsets at = network.block(i);
  const AlignedVector<float>& rstd = batch_rstd_[2 * i + static_cast<std::size_t>(which)];
  const AlignedVector<float>& scale = packed_.blocks[i].scale[which];
  float* d_gain = lanes_[0].gradient.data() + (which ? at.gain2 : at.gain1);
  float* d_shift = lanes_[0].gradient.data() + (which ? at.shift2 : at.shift1);
  for (std::size_t c = 0; c < width_; ++c) {
    const double r = rstd[c];
    d_shift[c] += static_cast<float>(sums[c]);
    d_gain[c] += static_cast<float>(r * sums[width_ + c]);
    c0_[c] = scale[c];
    c1_[c] = static_cast<float>(-scale[c] * sums[c] / n);
    c2_[c] = static_cast<float>(-scale[c] * r * r * sums[width_ + c] / n);
  }
}

void PairEngine::resize_whole_step(std::size_t blocks, std::size_t pairs) {
  step_z_.resize(blocks > 0 ? blocks - 1 : 0);
  step_t_.resize(keeps_t() ? blocks : 0);
  for (auto& z : step_z_) z.resize(pairs * width_);
  for (auto& t : step_t_) t.resize(pairs * width_);
  step_d_.resize(pairs * width_);
  step_dz_.resize(pairs * width_);
  for (auto* of_layers : {&batch_mean_, &batch_rstd_}) {
    of_layers->resize(2 * blocks);
    for (AlignedVector<float>& values : *of_layers) values.resize(width_);
  }
  for (AlignedVector<float>* c : {&c0_, &c1_, &c2_}) c->resize(width_);
}

template <class Stages>
void PairEngine::pass_over_groups(const Parts& parts, const Products& products, RowsOfT rows_of_t,
                                  const Stages& stages) {
  for (Lane& lane : lanes_) std::fill(lane.sums.begin(), lane.sums.end(), 0.0);
  for_groups([&](const Group& group, std::size_t lane, std::size_t worker) {
    tile::Buffers& buffers = scratch_[worker].buffers;
    buffers.part_t = kernels_.rounded && rows_of_t == RowsOfT::part;
    Ahead& ahead = buffers.ahead;
    ahead = {};  // a loss that throws leaves it as it was
    if (&group != &groups_.back()) {
      const Group& next = (&group)[1];
      const std::size_t pairs = group.pairs(), of_part = tile::Pass::part_rows(kernels_, pairs);
      ahead.floats = next.pairs() * width_;
      ahead.shares = products.of_part * static_cast<int>((pairs + of_part - 1) / of_part) + products.of_tile;
      for (const AlignedVector<float>* part : parts) {
        if (part) ahead.start[ahead.count++] = part->data() + start_of(next);
      }
    }
    stages(tile_of(group, lanes_[lane], scratch_[worker]));
    ahead = {};  // of no use to what comes after this pass
  });
}

/// z[0] takes less to make again than to keep: sums of two rows that are in cache.
void PairEngine::block_input(const WholeStep& step, std::size_t i, const Tile& tile,
                             const tile::Part& part) const {
  if (i == 0) forward_input(step.batch, tile.group, part, step.pass.z(0, part, tile.buffers));
}

/// t[i] where it is not kept, from z[i].
void PairEngine::inner_layer(const WholeStep& step, std::size_t i, const Tile& tile,
                             const tile::Part& part) const {
  if (keeps_t()) return;
  step.pass.activate(i, 0, part, tile.buffers);
  step.pass.first_linear(i, part, tile.buffers);
}

/// `a` in front of the second layer of block i, for its way back.
void PairEngine::second_activations(const WholeStep& step, std::size_t i, const Tile& tile,
                                    const tile::Part& part) const {
  if (!keeps_t()) block_input(step, i, tile, part);
  inner_layer(step, i, tile, part);
  step.pass.activate(i, 1, part, tile.buffers);
  step.pass.keep(i, 1, part, tile.buffers);
}

/// With its activations in `a` or kept; all gradients of the layer but those of its weights, where parts are kept for them.
void PairEngine::linear_backward(const WholeStep& step, std::size_t i, int which, const Tile& tile,
                                 const tile::Part& part) const {
  step.pass.linear_backward(i, which, part, tile.buffers, tile.lane.gradient.data());
}

void PairEngine::weights_backward(const WholeStep& step, std::size_t i, int which, const Tile& tile) const {
  step.pass.weights_backward(i, which, tile.rows, tile.buffers, tile.lane.gradient.data());
}

PairEngine::Parts PairEngine::parts_of_stream(std::size_t i) const {
  if (i == 0) return {};
  return {kept_t(i - 1), kept_z(i - 1), kept_z(i)};
}

/// z[i] from the block in front of it, or from the input layer.
void PairEngine::residual_stream(const WholeStep& step, std::size_t i, const Tile& tile,
                                 const tile::Part& part) const {
  if (i == 0) return block_input(step, 0, tile, part);
  block_input(step, i - 1, tile, part);
  inner_layer(step, i - 1, tile, part);
  step.pass.activate(i - 1, 1, part, tile.buffers);
  step.pass.second_linear(i - 1, part, tile.buffers);
}

void PairEngine::add_moments(const WholeStep& step, std::size_t i, int which, const Tile& tile,
                             const tile::Part& part) const {
  const float* z = which ? step.pass.t(i, part, tile.buffers) : step.pass.z(i, part, tile.buffers);
  kernels_.column_moments(z, part.count, width_,
                          step.network.statistics().data() + step.network.running_mean(i, which),
                          tile.lane.sums.data(), tile.lane.sums.data() + width_);
}

void PairEngine::add_norm_sums(const WholeStep& step, std::size_t i, int which, const Tile& tile,
                               const tile::Part& part) const {
  const tile::PackedNetwork::Block& block = packed_.blocks[i];
  const tile::Buffers& b = tile.buffers;
  float* d = step.pass.d(part, b);
  kernels_.batch_norm_sums(which ? step.pass.t(i, part, b) : step.pass.z(i, part, b), part.count, width_,
                           block.scale[which].data(), block.shift[which].data(),
                           batch_mean_[2 * i + static_cast<std::size_t>(which)].data(), which ? d : b.e, d,
                           tile.lane.sums.data(), tile.lane.sums.data() + width_);
}

/// In front of t the gradient is replaced; in front of z it is added to that of the residual stream.
void PairEngine::norm_backward(const WholeStep& step, std::size_t i, int which, const Tile& tile,
                               const tile::Part& part) const {
  const tile::Buffers& b = tile.buffers;
  float* d = step.pass.d(part, b);
  kernels_.batch_norm_backward(which ? step.pass.t(i, part, b) : step.pass.z(i, part, b), d, part.count,
                               width_, c0_.data(), c1_.data(), c2_.data(),
                               batch_mean_[2 * i + static_cast<std::size_t>(which)].data(), which == 0,
                               which ? d : step.pass.dz(part, b));
}

/// Up to the input of the last block's second linear layer; the statistics of all layers.
void PairEngine::batch_norm_forward(const WholeStep& step) {
  for (std::size_t i = 0; i < step.blocks; ++i) {
    pass_over_groups(parts_of_stream(i), {keeps_t() ? 1 : 2, 0}, RowsOfT::part, [&](const Tile& tile) {
      step.for_parts(tile, [&](const tile::Part& part) {
        residual_stream(step, i, tile, part);
        add_moments(step, i, 0, tile, part);
      });
    });
    finish_batch_statistics(step.network, i, 0);
    pass_over_groups({kept_z(i), kept_t(i)}, {1, 0}, RowsOfT::part, [&](const Tile& tile) {
      step.for_parts(tile, [&](const tile::Part& part) {
        block_input(step, i, tile, part);
        step.pass.activate(i, 0, part, tile.buffers);
        step.pass.first_linear(i, part, tile.buffers);
        add_moments(step, i, 1, tile, part);
      });
    });
    finish_batch_statistics(step.network, i, 1);
  }
}

/// From there to the loss and back to the same place: no sum over all pairs in between. The way back of a row begins when all of its
/// logits are there: of rows in pieces what it needs is made again.
void PairEngine::batch_norm_turn(const WholeStep& step) {
  const float scale = 1.0f / static_cast<float>(step.batch.x.rows);
  Parts parts = parts_of_stream(step.blocks);
  parts[2] = &step_d_;  // kept_z() has none there
  parts[3] = &step_dz_;
  const bool in_pieces = pieces_ > 1;
  const Products forward = {keeps_t() ? 1 : 2, 0}, both = keeps_t() ? Products{2, 0} : Products{3, 1};
  const auto back = [&](const Tile& tile) {
    step.for_parts(tile, [&](const tile::Part& part) {
      if (in_pieces && step.blocks == 0) block_input(step, 0, tile, part);
      if (in_pieces && step.blocks > 0) second_activations(step, step.blocks - 1, tile, part);
      back_from_logits(step, tile, part);
    });
    if (step.blocks > 0) weights_backward(step, step.blocks - 1, 1, tile);
  };
  pass_over_groups(
      parts, in_pieces ? forward : both, in_pieces ? RowsOfT::part : RowsOfT::tile, [&](const Tile& tile) {
        const Group& group = tile.group;
        step.for_parts(tile, [&](const tile::Part& part) {
          residual_stream(step, step.blocks, tile, part);
          if (!in_pieces && step.blocks > 0) step.pass.keep(step.blocks - 1, 1, part, tile.buffers);
          step.pass.output(part, tile.buffers, tile.scratch.logits.data() + group.first_column);
        });
        if (group.first_column + group.num_columns < columns_) return;  // the loss is one of whole rows
        tile.lane.loss += row_losses(group.first_row, group.num_rows, step.loss, tile.scratch.logits.data(),
                                     tile.scratch.d_logits.data(), scale);
        if (!in_pieces) return back(tile);
        for (const Group* piece = &group - (pieces_ - 1); piece <= &group; ++piece)
          back(tile_of(*piece, tile.lane, tile.scratch));
      });
}

/// With the activations of the last block's second layer in `a`, or kept.
void PairEngine::back_from_logits(const WholeStep& step, const Tile& tile, const tile::Part& part) {
  step.pass.output_backward(part, tile.buffers, tile.scratch.d_logits.data() + tile.group.first_column,
                            tile.lane.gradient.data());
  back_to_block(step, step.blocks, tile, part);
}

/// From the gradient of z[i] to that of what is in front of it: the second linear layer of block i - 1 (whose `a` is
/// activated), or the input layer.
void PairEngine::back_to_block(const WholeStep& step, std::size_t i, const Tile& tile,
                               const tile::Part& part) {
  if (i == 0) {
    input_backward(step.network, step.batch, tile.group, part, step.pass.dz(part, tile.buffers), tile.scratch,
                   tile.lane);
    return;
  }
  linear_backward(step, i - 1, 1, tile, part);
  add_norm_sums(step, i - 1, 1, tile, part);
}

void PairEngine::batch_norm_backward(const WholeStep& step) {
  const Products products = keeps_t() ? Products{1, 0} : Products{2, 1};
  for (std::size_t i = step.blocks; i-- > 0;) {
    batch_norm_coefficients(step.network, i, 1);
    pass_over_groups({kept_t(i), kept_z(i), &step_d_}, products, RowsOfT::part, [&](const Tile& tile) {
      step.for_parts(tile, [&](const tile::Part& part) {
        block_input(step, i, tile, part);
        step.pass.activate(i, 0, part, tile.buffers);
        step.pass.keep(i, 0, part, tile.buffers);
        if (!keeps_t()) step.pass.first_linear(i, part, tile.buffers);
        norm_backward(step, i, 1, tile, part);
        linear_backward(step, i, 0, tile, part);
        add_norm_sums(step, i, 0, tile, part);
      });
      weights_backward(step, i, 0, tile);
    });
    batch_norm_coefficients(step.network, i, 0);
    const AlignedVector<float>* in_front = i == 0 ? nullptr : keeps_t() ? kept_t(i - 1) : kept_z(i - 1);
    pass_over_groups({kept_z(i), in_front, &step_d_, &step_dz_}, products, RowsOfT::part,
                     [&](const Tile& tile) {
                       step.for_parts(tile, [&](const tile::Part& part) {
                         block_input(step, i, tile, part);
                         norm_backward(step, i, 0, tile, part);
                         if (i > 0) second_activations(step, i - 1, tile, part);
                         back_to_block(step, i, tile, part);
                       });
                       if (i > 0) weights_backward(step, i - 1, 1, tile);
                     });
  }
}

void PairEngine::batch_norm_step(PairNetwork& network, const PairBatch& batch, const RowLoss& loss) {
  const std::size_t blocks = network.shape().num_blocks;
  resize_whole_step(blocks, batch.x.rows * columns_);
  const WholeStep step{network, batch, loss, tile::Pass(network, packed_, kernels_), blocks};
  batch_norm_forward(step);
  batch_norm_turn(step);
  batch_norm_backward(step);
}

}  // namespace nrec
