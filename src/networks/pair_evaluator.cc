#include <algorithm>

#include "networks/tile_pass.h"
#include "nrec/core/error.h"
#include "nrec/networks/pair_step.h"

namespace nrec {

namespace {

constexpr std::size_t kRows = 96;  // thetas per tile
// Samplers that follow gradients ask for a few dozen rows at a time: small tiles give every thread some.
constexpr std::size_t kGradientRows = 12;

/// Buffers of one thread, cut from one piece of memory.
class Scratch {
 public:
  /// Without a way back: one residual stream, one inner buffer.
  static Scratch forward_only(const PairKernels& kernels, std::size_t blocks, std::size_t width) {
    const std::size_t operand = tile::Pass::operand_room(kernels, kRows, width);
    Scratch s(kRows, width, 3, blocks, operand);
    s.buffers.operand = s.take(operand);
    s.buffers.z.assign(blocks + 1, s.take());
    s.buffers.t.assign(blocks, s.take());
    s.buffers.a = s.take();
    s.take_row_norms(blocks);
    return s;
  }

  static Scratch with_way_back(const PairKernels& kernels, std::size_t blocks, std::size_t width,
                               std::size_t padded_dim) {
    const std::size_t operand = tile::Pass::operand_room(kernels, kGradientRows, width);
    Scratch s(kGradientRows, width, 2 * blocks + 5, blocks, operand + 2 * width + kGradientRows * padded_dim);
    s.buffers.operand = s.take(operand);
    for (std::size_t i = 0; i <= blocks; ++i) s.buffers.z.push_back(s.take());
    for (std::size_t i = 0; i < blocks; ++i) s.buffers.t.push_back(s.take());
    for (float** buffer : {&s.buffers.a, &s.buffers.d, &s.buffers.e, &s.buffers.dz}) *buffer = s.take();
    s.take_row_norms(blocks);
    s.buffers.unused = s.take(2 * width);
    s.d_theta = s.take(kGradientRows * padded_dim);
    return s;
  }

  tile::Buffers buffers;
  float* d_theta = nullptr;  // [kGradientRows, padded dim]

 private:
  Scratch(std::size_t rows, std::size_t width, std::size_t count, std::size_t blocks, std::size_t extra)
      : rows_(rows), size_(rows * width), memory_(count * size_ + 4 * blocks * rows + extra) {}

  float* take() { return take(size_); }
  float* take(std::size_t count) {
    next_ += count;
    return memory_.data() + (next_ - count);
  }
  void take_row_norms(std::size_t blocks) {
    buffers.row_mean = take(2 * blocks * rows_);
    buffers.row_rstd = take(2 * blocks * rows_);
  }

  std::size_t rows_, size_, next_ = 0;
  AlignedVector<float> memory_;  // moving it keeps its address
};

}  // namespace

struct PairEvaluator::State {
  PairNetwork network;
  const PairKernels& kernels;
  ThreadPool& pool;
  tile::PackedNetwork packed{};
  Matrix<float> v{};                     // [R, width]: x side of the input layer
  std::vector<Scratch> scratch{};        // one per thread
  std::vector<Scratch> way_back{};       // one per thread, from the first gradient on
  AlignedVector<float> theta_in_back{};  // packed transpose of the theta side of the input layer
  const std::vector<float> ones = std::vector<float>(kGradientRows, 1.0f);

  std::size_t padded_dim() const { return padded_features(network.shape().dim_theta); }

  /// Input layer of a tile against row `x_row` of x.
  void input(MatrixView<const float> theta, std::size_t x_row, float* z) const {
    kernels.inputs.gemm(theta.data, theta.stride, theta.rows, theta.cols, packed.theta_in.data(),
                        network.shape().hidden_features, v.row(x_row).data(), nullptr, z, network.width(),
                        nullptr);
  }

  void tile(MatrixView<const float> theta, double* logits, const Scratch& s) const {
    const tile::Pass pass(network, packed, kernels);
    const tile::RoundedSession session(kernels);
    float of_row[kRows];
    std::fill_n(logits, theta.rows, 0.0);
    for (std::size_t x_row = 0; x_row < v.rows(); ++x_row) {
      input(theta, x_row, s.buffers.z[0]);
      pass.forward(theta.rows, s.buffers, of_row);
      for (std::size_t r = 0; r < theta.rows; ++r) logits[r] += static_cast<double>(of_row[r]);
    }
  }

  void prepare_way_back() {
    if (!way_back.empty()) return;
    const std::size_t width = network.width();
    packed.pack(network, kernels, true);
    const std::size_t dim = network.shape().dim_theta, features = network.shape().hidden_features;
    theta_in_back.resize(packed_floats(features, dim));
    kernels.inputs.pack_transposed(network.weights().data() + network.theta_in(), width, dim, features,
                                   theta_in_back.data());
    for (int worker = 0; worker < pool.num_threads(); ++worker)
      way_back.push_back(Scratch::with_way_back(kernels, network.shape().num_blocks, width, padded_dim()));
  }

  void tile_with_gradient(MatrixView<const float> theta, double* logits, MatrixView<double> d_theta,
                          const Scratch& s) const {
    const tile::Pass pass(network, packed, kernels);
    const tile::RoundedSession session(kernels);
    const std::size_t width = network.width();
    float of_row[kGradientRows];
    std::fill_n(logits, theta.rows, 0.0);
    for (std::size_t r = 0; r < theta.rows; ++r) std::fill_n(d_theta.row(r).data(), theta.cols, 0.0);
    for (std::size_t x_row = 0; x_row < v.rows(); ++x_row) {
      input(theta, x_row, s.buffers.z[0]);
      pass.forward(theta.rows, s.buffers, of_row);
      pass.backward(theta.rows, s.buffers, ones.data(), nullptr, [](const tile::Part&) {});
      kernels.inputs.gemm(s.buffers.dz, width, theta.rows, network.shape().hidden_features,
                          theta_in_back.data(), theta.cols, nullptr, nullptr, s.d_theta, padded_dim(),
                          nullptr);
      for (std::size_t r = 0; r < theta.rows; ++r) {
        logits[r] += static_cast<double>(of_row[r]);
        for (std::size_t k = 0; k < theta.cols; ++k)
          d_theta(r, k) += static_cast<double>(s.d_theta[r * padded_dim() + k]);
      }
    }
  }

  void check(MatrixView<const float> theta, std::size_t num_logits) const {
    if (theta.cols == network.shape().dim_theta && num_logits == theta.rows) return;
    throw ShapeError("pair evaluator: theta is [" + std::to_string(theta.rows) + ", " +
                     std::to_string(theta.cols) + "] and logits has " + std::to_string(num_logits) +
                     " numbers; the network wants " + std::to_string(network.shape().dim_theta) +
                     " columns and as many logits as rows");
  }
};

PairEvaluator::PairEvaluator(const PairNetwork& network, std::span<const float> x, std::string_view isa,
                             ThreadPool& pool)
    : PairEvaluator(network, MatrixView<const float>{x.data(), 1, x.size()}, isa, pool) {}

PairEvaluator::PairEvaluator(const PairNetwork& network, MatrixView<const float> x, std::string_view isa,
                             ThreadPool& pool)
    : state_(new State{network, pair_kernels(isa), pool}) {
  if (x.cols != network.shape().dim_x || x.rows == 0) {
    throw ShapeError("pair evaluator: x is [" + std::to_string(x.rows) + ", " + std::to_string(x.cols) +
                     "]; the network wants at least one row of " + std::to_string(network.shape().dim_x) +
                     " numbers");
  }
  State& s = *state_;
  s.packed.pack(s.network, s.kernels, false);
  const std::size_t width = s.network.width();
  s.v = Matrix<float>(x.rows, width);
  s.kernels.inputs.gemm(x.data, x.stride, x.rows, x.cols, s.packed.x_in.data(),
                        s.network.shape().hidden_features, s.network.weights().data() + s.network.bias_in(),
                        nullptr, s.v.values().data(), width, nullptr);
  for (int worker = 0; worker < pool.num_threads(); ++worker)
    s.scratch.push_back(Scratch::forward_only(s.kernels, s.network.shape().num_blocks, width));
}

PairEvaluator::~PairEvaluator() = default;
PairEvaluator::PairEvaluator(PairEvaluator&&) noexcept = default;

std::size_t PairEvaluator::num_rows() const { return state_->v.rows(); }

void PairEvaluator::operator()(MatrixView<const float> theta, std::span<double> logits) const {
  const State& s = *state_;
  s.check(theta, logits.size());
  s.pool.run((theta.rows + kRows - 1) / kRows, [&](std::size_t task, int worker) {
    const std::size_t first = task * kRows;
    const std::size_t rows = std::min(kRows, theta.rows - first);
    s.tile(theta.middle_rows(first, rows), logits.data() + first,
           s.scratch[static_cast<std::size_t>(worker)]);
  });
}

void PairEvaluator::with_gradient(MatrixView<const float> theta, std::span<double> logits,
                                  MatrixView<double> d_theta) const {
  State& s = *state_;
  s.check(theta, logits.size());
  if (d_theta.rows != theta.rows || d_theta.cols != theta.cols) {
    throw ShapeError("pair evaluator: d_theta is [" + std::to_string(d_theta.rows) + ", " +
                     std::to_string(d_theta.cols) + "]; it must have the shape of theta, [" +
                     std::to_string(theta.rows) + ", " + std::to_string(theta.cols) + "]");
  }
  s.prepare_way_back();
  s.pool.run((theta.rows + kGradientRows - 1) / kGradientRows, [&](std::size_t task, int worker) {
    const std::size_t first = task * kGradientRows;
    const std::size_t rows = std::min(kGradientRows, theta.rows - first);
    s.tile_with_gradient(theta.middle_rows(first, rows), logits.data() + first,
                         d_theta.middle_rows(first, rows), s.way_back[static_cast<std::size_t>(worker)]);
  });
}

}  // namespace nrec
