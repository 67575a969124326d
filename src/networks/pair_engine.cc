#include "networks/pair_engine.h"

#include <algorithm>
#include <cmath>
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

}  // namespace

PairEngine::PairEngine(std::string_view isa, ThreadPool& pool)
    : kernels_(pair_kernels(isa)),
      pool_(pool),
      lanes_(kNumLanes),
      scratch_(static_cast<std::size_t>(pool.num_threads())) {}

template <class Body>
void PairEngine::for_groups(const Body& body) {
  pool_.run(kNumLanes, [&](std::size_t lane, int worker) {
    for (std::size_t g = lane_first_[lane]; g < lane_first_[lane + 1]; ++g)
      body(groups_[g], lane, static_cast<std::size_t>(worker));
  });
}

void PairEngine::prepare(const PairNetwork& network, const PairBatch& batch, bool backward) {
  check_batch(network, batch);
  columns_ = batch.candidates.cols;
  width_ = network.width();
  const std::size_t rows = batch.x.rows;
  const std::size_t per_group = std::max<std::size_t>(1, kGroupPairs / columns_);
  groups_.clear();
  for (std::size_t first = 0; first < rows; first += per_group)
    groups_.push_back({first, std::min(per_group, rows - first)});
  lane_first_.resize(kNumLanes + 1);
  for (std::size_t lane = 0; lane <= kNumLanes; ++lane) lane_first_[lane] = groups_.size() * lane / kNumLanes;
  packed_.pack(network, kernels_, backward);
  resize_scratch(network, per_group * columns_, backward && network.shape().norm == Norm::batch);
  input_rows(network, batch);
  if (!backward) return;
  for (Lane& lane : lanes_) {
    lane.gradient.assign(network.x_in(), 0.0f);
    lane.sums.resize(2 * width_);
    lane.loss = 0.0;
  }
  d_v_.resize(rows * width_);
}

void PairEngine::resize_scratch(const PairNetwork& network, std::size_t rows, bool whole_step_in_memory) {
  const std::size_t blocks = network.shape().num_blocks;
  const std::size_t size = rows * width_;
  for (Scratch& scratch : scratch_) {
    // Whole-step batch norm keeps only `a` and `e` per thread; all else lives in the step's own memory.
    const std::size_t count = whole_step_in_memory ? 2 : 2 * blocks + 5;
    if (scratch.memory.size() < count * size) scratch.memory.resize(count * size);
    scratch.logits.resize(std::max(scratch.logits.size(), rows));
    scratch.d_logits.resize(std::max(scratch.d_logits.size(), rows));
    scratch.theta_rows.resize(std::max(scratch.theta_rows.size(), rows * network.shape().dim_theta));
    scratch.row_norms.resize(std::max(scratch.row_norms.size(), 4 * blocks * rows));
    tile::Buffers& b = scratch.buffers;
    b.z.resize(blocks + 1);
    b.t.resize(blocks);
    float* next = scratch.memory.data();
    const auto take = [&] { return std::exchange(next, next + size); };
    b.a = take();
    b.e = take();
    b.row_mean = scratch.row_norms.data();
    b.row_rstd = b.row_mean + 2 * blocks * rows;
    if (whole_step_in_memory) continue;
    for (float*& z : b.z) z = take();
    for (float*& t : b.t) t = take();
    b.d = take();
    b.dz = take();
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
      kernels_.gemm(rows.data + first * rows.stride, rows.stride, std::min(kRows, rows.rows - first),
                    rows.cols, packed.data(), width_, bias, false, out.data() + first * width_, width_);
    });
  };
  project(batch.theta, packed_.theta_in, nullptr, u_);
  project(batch.x, packed_.x_in, network.weights().data() + network.bias_in(), v_);
}

void PairEngine::forward_input(const PairBatch& batch, const Group& group, float* z) const {
  for (std::size_t r = 0; r < group.num_rows; ++r) {
    const std::size_t b = group.first_row + r;
    kernels_.add_rows(u_.data(), batch.candidates.row(b).data(), v_.data() + b * width_, columns_, width_,
                      z + r * columns_ * width_);
  }
}

void PairEngine::input_backward(const PairNetwork& network, const PairBatch& batch, const Group& group,
                                const float* dz, Scratch& scratch, Lane& lane) {
  const std::size_t dim = network.shape().dim_theta;
  float* theta = scratch.theta_rows.data();
  for (std::size_t r = 0; r < group.num_rows; ++r) {
    const std::size_t b = group.first_row + r;
    float* d_v = d_v_.data() + b * width_;
    std::fill_n(d_v, width_, 0.0f);
    kernels_.column_sums(dz + r * columns_ * width_, columns_, width_, d_v);
    for (const std::uint32_t row : batch.candidates.row(b))
      theta = std::copy_n(batch.theta.data + row * batch.theta.stride, dim, theta);
  }
  kernels_.gemm_weights(scratch.theta_rows.data(), dim, dz, width_, group.num_rows * columns_, dim, width_,
                        lane.gradient.data() + network.theta_in());
}

double PairEngine::row_losses(const Group& group, const RowLoss& loss, const float* logits, float* d_logits,
                              float scale) const {
  double sum = 0.0;
  for (std::size_t r = 0; r < group.num_rows; ++r) {
    const std::span<float> d(d_logits + r * columns_, columns_);
    sum += loss.call(loss.context, group.first_row + r, {logits + r * columns_, columns_}, d);
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
    const std::size_t rows = group.num_rows * columns_;
    forward_input(batch, group, scratch.buffers.z[0]);
    pass.forward(rows, scratch.buffers, scratch.logits.data());
    lane.loss += row_losses(group, loss, scratch.logits.data(), scratch.d_logits.data(), scale);
    pass.backward(rows, scratch.buffers, scratch.d_logits.data(), lane.gradient.data());
    input_backward(network, batch, group, scratch.buffers.dz, scratch, lane);
  });
}

const tile::Buffers& PairEngine::step_buffers(const Group& group, Scratch& scratch) {
  const std::size_t offset = group.first_row * columns_ * width_;
  tile::Buffers& b = scratch.buffers;
  for (std::size_t i = 0; i < step_z_.size(); ++i) b.z[i] = step_z_[i].data() + offset;
  for (std::size_t i = 0; i < step_t_.size(); ++i) b.t[i] = step_t_[i].data() + offset;
  b.d = step_d_.data() + offset;
  b.dz = step_dz_.data() + offset;
  return b;
}

void PairEngine::clear_sums() {
  for (Lane& lane : lanes_) std::fill(lane.sums.begin(), lane.sums.end(), 0.0);
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
  const double n = static_cast<double>(step_logits_.size());
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
  const double n = static_cast<double>(step_logits_.size());
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

void PairEngine::batch_norm_step(PairNetwork& network, const PairBatch& batch, const RowLoss& loss) {
  const std::size_t blocks = network.shape().num_blocks;
  const std::size_t pairs = batch.x.rows * columns_;
  step_z_.resize(blocks + 1);
  step_t_.resize(blocks);
  for (auto& z : step_z_) z.resize(pairs * width_);
  for (auto& t : step_t_) t.resize(pairs * width_);
  step_d_.resize(pairs * width_);
  step_dz_.resize(pairs * width_);
  step_logits_.resize(pairs);
  step_d_logits_.resize(pairs);
  for (auto* of_layers : {&batch_mean_, &batch_rstd_}) {
    of_layers->resize(2 * blocks);
    for (AlignedVector<float>& values : *of_layers) values.resize(width_);
  }
  for (AlignedVector<float>* c : {&c0_, &c1_, &c2_}) c->resize(width_);

  const tile::Pass pass(network, packed_, kernels_);
  const float scale = 1.0f / static_cast<float>(batch.x.rows);
  // One stage for all groups; `stage(rows, buffers, group, lane, scratch)`.
  const auto run = [&](const auto& stage) {
    clear_sums();
    for_groups([&](const Group& group, std::size_t lane, std::size_t worker) {
      stage(group.num_rows * columns_, step_buffers(group, scratch_[worker]), group, lanes_[lane],
            scratch_[worker]);
    });
  };
  const auto moments = [&](const float* z, std::size_t rows, std::size_t i, int which, Lane& lane) {
    kernels_.column_moments(z, rows, width_, network.statistics().data() + network.running_mean(i, which),
                            lane.sums.data(), lane.sums.data() + width_);
  };
  const auto norm_sums = [&](std::size_t i, int which, const float* z, float* d, std::size_t rows,
                             Lane& lane) {
    const tile::PackedNetwork::Block& block = packed_.blocks[i];
    kernels_.batch_norm_sums(z, rows, width_, block.scale[which].data(), block.shift[which].data(),
                             batch_mean_[2 * i + static_cast<std::size_t>(which)].data(), d, lane.sums.data(),
                             lane.sums.data() + width_);
  };
  const auto norm_backward = [&](std::size_t i, int which, const float* z, const float* d, std::size_t rows,
                                 bool accumulate, float* dz) {
    kernels_.batch_norm_backward(z, d, rows, width_, c0_.data(), c1_.data(), c2_.data(),
                                 batch_mean_[2 * i + static_cast<std::size_t>(which)].data(), accumulate, dz);
  };

  run([&](std::size_t rows, const tile::Buffers& b, const Group& group, Lane& lane, Scratch&) {
    forward_input(batch, group, b.z[0]);
    if (blocks > 0) moments(b.z[0], rows, 0, 0, lane);
  });
  for (std::size_t i = 0; i < blocks; ++i) {
    finish_batch_statistics(network, i, 0);
    run([&](std::size_t rows, const tile::Buffers& b, const Group&, Lane& lane, Scratch&) {
      pass.activate(i, 0, rows, b);
      pass.first_linear(i, rows, b);
      moments(b.t[i], rows, i, 1, lane);
    });
    finish_batch_statistics(network, i, 1);
    run([&](std::size_t rows, const tile::Buffers& b, const Group&, Lane& lane, Scratch&) {
      pass.activate(i, 1, rows, b);
      pass.second_linear(i, rows, b);
      if (i + 1 < blocks) moments(b.z[i + 1], rows, i + 1, 0, lane);
    });
  }
  run([&](std::size_t rows, const tile::Buffers& b, const Group& group, Lane& lane, Scratch&) {
    float* logits = step_logits_.data() + group.first_row * columns_;
    float* d_logits = step_d_logits_.data() + group.first_row * columns_;
    pass.output(rows, b, logits);
    lane.loss += row_losses(group, loss, logits, d_logits, scale);
    pass.output_backward(rows, b, d_logits, lane.gradient.data());
  });
  for (std::size_t i = blocks; i-- > 0;) {
    run([&](std::size_t rows, const tile::Buffers& b, const Group&, Lane& lane, Scratch&) {
      pass.activate(i, 1, rows, b);
      pass.second_linear_backward(i, rows, b, lane.gradient.data());
      norm_sums(i, 1, b.t[i], b.d, rows, lane);
    });
    batch_norm_coefficients(network, i, 1);
    run([&](std::size_t rows, const tile::Buffers& b, const Group&, Lane& lane, Scratch&) {
      norm_backward(i, 1, b.t[i], b.d, rows, false, b.d);
      pass.activate(i, 0, rows, b);
      pass.first_linear_backward(i, rows, b, lane.gradient.data());
      norm_sums(i, 0, b.z[i], b.e, rows, lane);
      std::copy_n(b.e, rows * width_, b.d);
    });
    batch_norm_coefficients(network, i, 0);
    run([&](std::size_t rows, const tile::Buffers& b, const Group&, Lane&, Scratch&) {
      norm_backward(i, 0, b.z[i], b.d, rows, true, b.dz);
    });
  }
  run([&](std::size_t, const tile::Buffers& b, const Group& group, Lane& lane, Scratch& scratch) {
    input_backward(network, batch, group, b.dz, scratch, lane);
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
    kernels_.gemm_weights(batch.x.data + first, batch.x.stride, d_v_.data(), width_, batch.x.rows,
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
    pass.forward(group.num_rows * columns_, scratch_[worker].buffers,
                 logits.data + group.first_row * columns_);
  });
}

std::unique_ptr<PairNetworkStep> make_pair_step(std::string_view isa, ThreadPool& pool) {
  return std::make_unique<PairEngine>(isa, pool);
}

}  // namespace nrec
