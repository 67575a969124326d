#include "networks/pair_engine.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "nrec/core/error.h"

namespace nrec {

namespace {

void check_batch(const PairNetwork& network, const PairBatch& batch) {
  const PairNetworkShape& shape = network.shape();
  const auto refuse = [](const std::string& what) { throw ShapeError("pair network step: " + what); };
  if (batch.theta.cols != shape.dim_theta || batch.x.cols != shape.dim_x) {
    refuse("theta has " + std::to_string(batch.theta.cols) + " columns and x " +
           std::to_string(batch.x.cols) + "; the network wants " + std::to_string(shape.dim_theta) + " and " +
           std::to_string(shape.dim_x));
  }
  if (batch.candidates.rows != batch.x.rows || batch.candidates.cols == 0 || batch.x.rows == 0) {
    refuse("candidates is [" + std::to_string(batch.candidates.rows) + ", " +
           std::to_string(batch.candidates.cols) + "] for " + std::to_string(batch.x.rows) + " rows of x");
  }
  for (std::size_t b = 0; b < batch.candidates.rows; ++b) {
    for (const std::uint32_t row : batch.candidates.row(b)) {
      if (row >= batch.theta.rows)
        refuse("candidates points to theta row " + std::to_string(row) + " of " +
               std::to_string(batch.theta.rows));
    }
  }
}

}  // namespace

PairEngine::PairEngine(std::string_view isa, ThreadPool& pool)
    : kernels_(pair_kernels(isa)),
      pool_(pool),
      lanes_(kNumLanes),
      scratch_(static_cast<std::size_t>(pool.num_threads())) {}

std::size_t PairEngine::rows_per_group() const {
  const std::size_t rows = std::max<std::size_t>(1, kGroupPairs / columns_);
  if (kernels_.rounded && rows == 1 && 2 * columns_ <= kMostRoundedPairs) {
    const auto tiles = [](std::size_t pairs) { return (pairs + kTileRows - 1) / kTileRows; };
    return tiles(2 * columns_) < 2 * tiles(columns_) ? 2 : 1;
  }
  const std::size_t whole_blocks = kRowBlock / std::gcd(kRowBlock, columns_);
  return rows > whole_blocks ? rows - rows % whole_blocks : rows;
}

void PairEngine::cut_into_groups(std::size_t rows, bool may_cut_rows) {
  const std::size_t per_group = rows_per_group();
  const std::size_t piece = may_cut_rows && columns_ > 2 * kGroupPairs ? kPiecePairs : columns_;
  pieces_ = (columns_ + piece - 1) / piece;
  group_pairs_ = per_group * piece;
  groups_.clear();
  for (std::size_t first = 0; first < rows; first += per_group) {
    for (std::size_t column = 0; column < columns_; column += piece)
      groups_.push_back(
          {first, std::min(per_group, rows - first), column, std::min(piece, columns_ - column)});
  }
  lane_first_.resize(kNumLanes + 1);
  for (std::size_t lane = 0; lane <= kNumLanes; ++lane)
    lane_first_[lane] = groups_.size() / pieces_ * lane / kNumLanes * pieces_;
}

void PairEngine::prepare(const PairNetwork& network, const PairBatch& batch, bool backward) {
  check_batch(network, batch);
  columns_ = batch.candidates.cols;
  width_ = network.width();
  const bool whole_step = backward && network.shape().norm == Norm::batch;
  cut_into_groups(batch.x.rows, whole_step);
  packed_.pack(network, kernels_, backward);
  resize_scratch(network, whole_step);
  input_rows(network, batch);
  if (!backward) return;
  for (Lane& lane : lanes_) {
    lane.gradient.assign(network.x_in(), 0.0f);
    lane.sums.resize(2 * width_);
    lane.loss = 0.0;
  }
  d_v_.resize(batch.x.rows * width_);
}

void PairEngine::resize_scratch(const PairNetwork& network, bool whole_step_in_memory) {
  const std::size_t blocks = network.shape().num_blocks;
  const std::size_t rows = group_pairs_;
  const std::size_t size = rows * width_;
  for (Scratch& scratch : scratch_) {
    // Whole-step batch norm has only `a`, z[0] and what it makes again per thread; all else lives in the step's own memory.
    const std::size_t count = !whole_step_in_memory ? 2 * blocks + 3 : keeps_t() ? 2 : 3;
    const std::size_t operand = tile::Pass::operand_room(kernels_, rows, width_);
    const std::size_t work = tile::Pass::work_room(kernels_, rows, width_);
    const std::size_t operands =
        whole_step_in_memory && blocks > 0 ? 1 : 2 * blocks;  // kept, or one at a time
    const std::size_t room = count * size + operands * operand + work;
    if (scratch.memory.size() < room) scratch.memory.resize(room);
    scratch.logits.resize(std::max(scratch.logits.size(), rows * pieces_));
    scratch.d_logits.resize(std::max(scratch.d_logits.size(), rows * pieces_));
    scratch.theta_rows.resize(std::max(scratch.theta_rows.size(), rows * network.shape().dim_theta));
    scratch.row_norms.resize(std::max(scratch.row_norms.size(), 4 * blocks * rows));
    tile::Buffers& b = scratch.buffers;
    b.z.resize(blocks + 1);
    b.t.resize(blocks);
    float* next = scratch.memory.data();
    const auto take_some = [&](std::size_t some) { return std::exchange(next, next + some); };
    const auto take = [&] { return take_some(size); };
    b.operands.resize(2 * blocks);
    for (std::size_t i = 0; i < 2 * blocks; ++i)
      b.operands[i] = i < operands ? take_some(operand) : b.operands[0];
    b.work = take_some(work);
    b.a = take();
    b.e = b.a;  // `a` is not needed any more when its gradient is there
    b.row_mean = scratch.row_norms.data();
    b.row_rstd = b.row_mean + 2 * blocks * rows;
    if (whole_step_in_memory) {
      b.z.front() = take();
      if (!keeps_t()) b.t.assign(blocks, take());
      continue;
    }
    for (float*& z : b.z) z = take();
    for (float*& t : b.t) t = take();
    b.d = take();
    b.dz = b.z.back();  // not needed any more when its gradient is there
  }
}

void PairEngine::input_rows(const PairNetwork& network, const PairBatch& batch) {
  u_.resize(batch.theta.rows * width_);
  v_.resize(batch.x.rows * width_);
  constexpr std::size_t kRows = 64;
  const auto project = [&](MatrixView<const float> rows, const AlignedVector<float>& packed,
                           const float* bias, AlignedVector<float>& out) {
    pool_.run((rows.rows + kRows - 1) / kRows, [&](std::size_t task, int) {
      const std::size_t first = task * kRows;
      kernels_.inputs.gemm(rows.data + first * rows.stride, rows.stride, std::min(kRows, rows.rows - first),
                           rows.cols, packed.data(), width_, bias, nullptr, out.data() + first * width_,
                           width_, nullptr);
    });
  };
  project(batch.theta, packed_.theta_in, nullptr, u_);
  project(batch.x, packed_.x_in, network.weights().data() + network.bias_in(), v_);
}

void PairEngine::forward_input(const PairBatch& batch, const Group& group, float* z) const {
  for (std::size_t r = 0; r < group.num_rows; ++r) {
    const std::size_t b = group.first_row + r;
    kernels_.add_rows(u_.data(), batch.candidates.row(b).data() + group.first_column, v_.data() + b * width_,
                      group.num_columns, width_, z + r * group.num_columns * width_);
  }
}

void PairEngine::input_backward(const PairNetwork& network, const PairBatch& batch, const Group& group,
                                const float* dz, Scratch& scratch, Lane& lane) {
  const std::size_t dim = network.shape().dim_theta;
  float* theta = scratch.theta_rows.data();
  for (std::size_t r = 0; r < group.num_rows; ++r) {
    const std::size_t b = group.first_row + r;
    float* d_v = d_v_.data() + b * width_;
    if (group.first_column == 0) std::fill_n(d_v, width_, 0.0f);
    kernels_.column_sums(dz + r * group.num_columns * width_, group.num_columns, width_, d_v);
    for (const std::uint32_t row : batch.candidates.row(b).subspan(group.first_column, group.num_columns))
      theta = std::copy_n(batch.theta.data + row * batch.theta.stride, dim, theta);
  }
  kernels_.inputs.gemm_weights(scratch.theta_rows.data(), dim, dz, width_, group.pairs(), dim, width_,
                               lane.gradient.data() + network.theta_in());
}

double PairEngine::row_losses(std::size_t first, std::size_t count, const RowLoss& loss, const float* logits,
                              float* d_logits, float scale) const {
  double sum = 0.0;
  for (std::size_t r = 0; r < count; ++r) {
    const std::span<float> d(d_logits + r * columns_, columns_);
    sum += loss.call(loss.context, first + r, {logits + r * columns_, columns_}, d);
    for (float& value : d) value *= scale;
  }
  return sum;
}

void PairEngine::fused_step(const PairNetwork& network, const PairBatch& batch, const RowLoss& loss) {
  const tile::Pass pass(network, packed_, kernels_);
  const float scale = 1.0f / static_cast<float>(batch.x.rows);
  for_groups([&](const Group& group, std::size_t lane_number, std::size_t worker) {
    Scratch& scratch = scratch_[worker];
    Lane& lane = lanes_[lane_number];
    const std::size_t rows = group.pairs();
    forward_input(batch, group, scratch.buffers.z[0]);
    pass.forward(rows, scratch.buffers, scratch.logits.data());
    lane.loss += row_losses(group.first_row, group.num_rows, loss, scratch.logits.data(),
                            scratch.d_logits.data(), scale);
    pass.backward(rows, scratch.buffers, scratch.d_logits.data(), lane.gradient.data());
    input_backward(network, batch, group, scratch.buffers.dz, scratch, lane);
  });
}

void PairEngine::finish_gradient(const PairNetwork& network, const PairBatch& batch,
                                 std::span<float> gradient) {
  constexpr std::size_t kChunk = 4096;
  const std::size_t size = network.x_in();
  pool_.run((size + kChunk - 1) / kChunk, [&](std::size_t task, int) {
    const std::size_t first = task * kChunk;
    const std::size_t last = std::min(size, first + kChunk);
    for (std::size_t i = first; i < last; ++i) gradient[i] = lanes_[0].gradient[i];
    for (std::size_t lane = 1; lane < kNumLanes; ++lane) {
      const float* part = lanes_[lane].gradient.data();
      for (std::size_t i = first; i < last; ++i) gradient[i] += part[i];
    }
  });
  std::fill_n(gradient.data() + network.bias_in(), width_, 0.0f);
  kernels_.column_sums(d_v_.data(), batch.x.rows, width_, gradient.data() + network.bias_in());
  constexpr std::size_t kColumns = 48;  // rows of W_x per task
  std::fill(gradient.begin() + static_cast<std::ptrdiff_t>(network.x_in()), gradient.end(), 0.0f);
  pool_.run((batch.x.cols + kColumns - 1) / kColumns, [&](std::size_t task, int) {
    const std::size_t first = task * kColumns;
    kernels_.inputs.gemm_weights(batch.x.data + first, batch.x.stride, d_v_.data(), width_, batch.x.rows,
                                 std::min(kColumns, batch.x.cols - first), width_,
                                 gradient.data() + network.x_in() + first * width_);
  });
}

double PairEngine::loss_and_gradient(PairNetwork& network, const PairBatch& batch, const RowLoss& loss,
                                     std::span<float> gradient) {
  if (gradient.size() != network.weights().size()) {
    throw ShapeError("pair network step: gradient has " + std::to_string(gradient.size()) +
                     " numbers; the network has " + std::to_string(network.weights().size()));
  }
  prepare(network, batch, true);
  if (network.shape().norm == Norm::batch) {
    batch_norm_step(network, batch, loss);
  } else {
    fused_step(network, batch, loss);
  }
  finish_gradient(network, batch, gradient);
  double sum = 0.0;
  for (const Lane& lane : lanes_) sum += lane.loss;
  return sum / static_cast<double>(batch.x.rows);
}

void PairEngine::logits(const PairNetwork& network, const PairBatch& batch, MatrixView<float> logits) {
  prepare(network, batch, false);
  if (logits.rows != batch.x.rows || logits.cols != columns_ || logits.stride != columns_) {
    throw ShapeError("pair network step: logits must be a dense [" + std::to_string(batch.x.rows) + ", " +
                     std::to_string(columns_) + "] matrix");
  }
  const tile::Pass pass(network, packed_, kernels_);
  for_groups([&](const Group& group, std::size_t, std::size_t worker) {
    forward_input(batch, group, scratch_[worker].buffers.z[0]);
    pass.forward(group.pairs(), scratch_[worker].buffers, logits.data + group.first_row * columns_);
  });
}

std::unique_ptr<PairNetworkStep> make_pair_step(std::string_view isa, ThreadPool& pool) {
  return std::make_unique<PairEngine>(isa, pool);
}

}  // namespace nrec
