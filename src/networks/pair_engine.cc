#include "networks/pair_engine.h"

#include <algorithm>
#include <numeric>

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

/// Room for `size` numbers at least.
template <class Vector>
void grow(Vector& values, std::size_t size) {
  if (values.size() < size) values.resize(size);
}

/// body(row of the group, first of its columns, columns): the pairs of a part, row by row.
template <class Body>
void for_row_pieces(std::size_t num_columns, const tile::Part& part, const Body& body) {
  const std::size_t end = part.first + part.count;
  for (std::size_t pair = part.first; pair < end;) {
    const std::size_t row = pair / num_columns, column = pair % num_columns;
    const std::size_t columns = std::min(num_columns - column, end - pair);
    body(row, column, columns);
    pair += columns;
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
  resize_scratch(network, backward);
  input_rows(network, batch);
  if (!backward) return;
  pool_.run(kNumLanes, [&](std::size_t i, int) {
    Lane& lane = lanes_[i];
    lane.gradient.assign(network.x_in(), 0.0f);
    lane.sums.resize(2 * width_);
    lane.loss = 0.0;
  });
  d_v_.resize(batch.x.rows * width_);
}

/// Takes a thread's buffers one after the other from a piece of memory; without one it counts what they need.
class PairEngine::Memory {
 public:
  explicit Memory(float* start) : start_(start) {}
  float* take(std::size_t floats) {
    used_ += floats;
    return start_ ? start_ + (used_ - floats) : nullptr;
  }
  std::size_t used() const { return used_; }

 private:
  float* start_;
  std::size_t used_ = 0;
};

void PairEngine::resize_scratch(const PairNetwork& network, bool backward) {
  const std::size_t layers = 2 * network.shape().num_blocks, rows = group_pairs_;
  for (Scratch& scratch : scratch_) {
    grow(scratch.logits, rows * pieces_);
    grow(scratch.d_logits, rows * pieces_);
    grow(scratch.theta_rows, rows * network.shape().dim_theta);
    grow(scratch.row_norms, 2 * layers * rows);
    Memory count(nullptr);
    take_buffers(network, backward, scratch, count);
    grow(scratch.memory, count.used());
    Memory memory(scratch.memory.data());
    take_buffers(network, backward, scratch, memory);
    scratch.buffers.row_mean = scratch.row_norms.data();
    scratch.buffers.row_rstd = scratch.buffers.row_mean + layers * rows;
  }
}

void PairEngine::take_buffers(const PairNetwork& network, bool backward, Scratch& scratch,
                              Memory& memory) const {
  const std::size_t blocks = network.shape().num_blocks;
  const bool rounded = kernels_.rounded != nullptr;
  const bool whole_step = backward && network.shape().norm == Norm::batch;
  const std::size_t rows = group_pairs_;
  const std::size_t part = tile::Pass::part_rows(kernels_, rows);
  tile::Buffers& b = scratch.buffers;
  b.part_z = !rounded ? 0 : whole_step ? std::min<std::size_t>(blocks, 1) : blocks;
  b.part_t = rounded;
  b.whole_d = whole_step;
  b.z.resize(blocks + 1);
  b.t.resize(blocks);
  if (rounded) take_operands(part, backward ? 2 * blocks : 0, network.shape().norm, scratch, memory);
  if (whole_step) {
    // Only `a`, z[0] and what is made again are a thread's own; all else lives in the step's memory.
    b.e = b.a = memory.take(part * width_);
    b.z.front() = memory.take((b.part_z > 0 ? part : rows) * width_);
    if (!keeps_t()) b.t.assign(blocks, memory.take(rows * width_));
    return;
  }
  if (rounded) {
    b.z.assign(blocks + 1, memory.take(part * width_));
    b.t.assign(blocks, memory.take(part * width_));
    b.z.back() = memory.take(rows * width_);
  } else {
    for (float*& z : b.z) z = memory.take(rows * width_);
    for (float*& t : b.t) t = memory.take(rows * width_);
  }
  b.d = memory.take(part * width_);
  // What is not needed any more when its gradient is there.
  b.a = rounded ? nullptr : memory.take(part * width_);
  b.e = rounded ? b.d : b.a;
  b.dz = b.z.back();
}

void PairEngine::take_operands(std::size_t part, std::size_t num_kept, Norm norm, Scratch& scratch,
                               Memory& memory) const {
  tile::Buffers& b = scratch.buffers;
  const std::size_t of_part = operand_floats(part, width_), of_all = operand_floats(group_pairs_, width_);
  b.operand = memory.take(of_part);
  b.left = memory.take(of_part);
  for (float*& right : b.rights) right = memory.take(of_all);
  b.kept.resize(num_kept);
  for (std::size_t i = 0; i < num_kept; ++i)
    b.kept[i] = i == 0 || norm != Norm::batch ? memory.take(of_all) : b.kept[0];
  b.normalised.resize(norm == Norm::layer ? num_kept : 0);
  for (float*& rows : b.normalised) rows = memory.take(group_pairs_ * width_);
  const std::size_t words = group_pairs_ * mask_words(width_);
  b.masks.resize(norm == Norm::none ? num_kept : 0);
  grow(scratch.masks, b.masks.size() * words);
  for (std::size_t i = 0; i < b.masks.size(); ++i) b.masks[i] = scratch.masks.data() + i * words;
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
                           rows.cols, packed.data(), network.shape().hidden_features, bias, nullptr,
                           out.data() + first * width_, width_, nullptr);
    });
  };
  project(batch.theta, packed_.theta_in, nullptr, u_);
  project(batch.x, packed_.x_in, network.weights().data() + network.bias_in(), v_);
}

void PairEngine::forward_input(const PairBatch& batch, const Group& group, const tile::Part& part,
                               float* z) const {
  for_row_pieces(group.num_columns, part, [&](std::size_t row, std::size_t column, std::size_t columns) {
    const std::size_t b = group.first_row + row;
    kernels_.add_rows(u_.data(), batch.candidates.row(b).data() + group.first_column + column,
                      v_.data() + b * width_, columns, width_, z);
    z += columns * width_;
  });
}

void PairEngine::input_backward(const PairNetwork& network, const PairBatch& batch, const Group& group,
                                const tile::Part& part, const float* dz, Scratch& scratch, Lane& lane) {
  const std::size_t dim = network.shape().dim_theta;
  float* theta = scratch.theta_rows.data();
  const float* d = dz;
  for_row_pieces(group.num_columns, part, [&](std::size_t row, std::size_t column, std::size_t columns) {
    const std::size_t b = group.first_row + row, first = group.first_column + column;
    float* d_v = d_v_.data() + b * width_;
    if (first == 0) std::fill_n(d_v, width_, 0.0f);
    kernels_.column_sums(d, columns, width_, d_v);
    d += columns * width_;
    for (const std::uint32_t candidate : batch.candidates.row(b).subspan(first, columns))
      theta = std::copy_n(batch.theta.data + candidate * batch.theta.stride, dim, theta);
  });
  kernels_.inputs.gemm_weights(scratch.theta_rows.data(), dim, dz, width_, part.count, dim,
                               network.shape().hidden_features, lane.gradient.data() + network.theta_in(),
                               width_);
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
    const tile::Buffers& buffers = scratch.buffers;
    pass.for_parts(rows, [&](const tile::Part& part) {
      forward_input(batch, group, part, pass.z(0, part, buffers));
      pass.forward(part, buffers, scratch.logits.data());
    });
    lane.loss += row_losses(group.first_row, group.num_rows, loss, scratch.logits.data(),
                            scratch.d_logits.data(), scale);
    pass.backward(rows, buffers, scratch.d_logits.data(), lane.gradient.data(), [&](const tile::Part& part) {
      input_backward(network, batch, group, part, pass.dz(part, buffers), scratch, lane);
    });
  });
}

void PairEngine::finish_gradient(const PairNetwork& network, const PairBatch& batch,
                                 std::span<float> gradient) {
  constexpr std::size_t kChunk = 4096;
  const std::size_t size = network.x_in();
  pool_.run((size + kChunk - 1) / kChunk, [&](std::size_t task, int) {
    const std::size_t first = task * kChunk, count = std::min(size - first, kChunk);
    const std::size_t whole = count - count % kFeatureBlock;  // a row as kernels want it
    float* sum = gradient.data() + first;
    std::copy_n(lanes_[0].gradient.data() + first, count, sum);
    for (std::size_t lane = 1; lane < kNumLanes; ++lane) {
      const float* part = lanes_[lane].gradient.data() + first;
      kernels_.column_sums(part, 1, whole, sum);
      for (std::size_t i = whole; i < count; ++i) sum[i] += part[i];
    }
  });
  std::fill_n(gradient.data() + network.bias_in(), width_, 0.0f);
  kernels_.column_sums(d_v_.data(), batch.x.rows, width_, gradient.data() + network.bias_in());
  constexpr std::size_t kColumns = 48;  // rows of W_x per task
  std::fill(gradient.begin() + static_cast<std::ptrdiff_t>(network.x_in()), gradient.end(), 0.0f);
  pool_.run((batch.x.cols + kColumns - 1) / kColumns, [&](std::size_t task, int) {
    const std::size_t first = task * kColumns;
    kernels_.inputs.gemm_weights(batch.x.data + first, batch.x.stride, d_v_.data(), width_, batch.x.rows,
                                 std::min(kColumns, batch.x.cols - first), network.shape().hidden_features,
                                 gradient.data() + network.x_in() + first * width_, width_);
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
    const tile::Buffers& buffers = scratch_[worker].buffers;
    pass.for_parts(group.pairs(), [&](const tile::Part& part) {
      forward_input(batch, group, part, pass.z(0, part, buffers));
      pass.forward(part, buffers, logits.data + group.first_row * columns_);
    });
  });
}

std::unique_ptr<PairNetworkStep> make_pair_step(std::string_view isa, ThreadPool& pool) {
  return std::make_unique<PairEngine>(isa, pool);
}

}  // namespace nrec
