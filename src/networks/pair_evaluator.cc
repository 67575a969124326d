#include <algorithm>

#include "networks/tile_pass.h"
#include "nrec/core/error.h"
#include "nrec/networks/pair_step.h"

namespace nrec {

struct PairEvaluator::State {
  PairNetwork network;
  const PairKernels& kernels;
  ThreadPool& pool;
  tile::PackedNetwork packed;
  std::vector<float> v;                    // x side of the input layer
  std::vector<std::vector<float>> memory;  // one per thread
  std::vector<tile::Buffers> buffers;      // one per thread, pointing into it
};

namespace {
constexpr std::size_t kRows = 96;  // thetas per tile
}

PairEvaluator::PairEvaluator(const PairNetwork& network, std::span<const float> x, std::string_view isa,
                             ThreadPool& pool)
    : state_(std::make_unique<State>(State{network, pair_kernels(isa), pool, {}, {}, {}, {}})) {
  if (x.size() != network.shape().dim_x) {
    throw ShapeError("pair evaluator: x has " + std::to_string(x.size()) + " numbers; the network wants " +
                     std::to_string(network.shape().dim_x));
  }
  State& s = *state_;
  s.packed.pack(s.network, s.kernels, false);
  const std::size_t width = s.network.width();
  s.v.resize(width);
  s.kernels.gemm(x.data(), x.size(), 1, x.size(), s.packed.x_in.data(), width,
                 s.network.weights().data() + s.network.bias_in(), false, s.v.data(), width);
  const std::size_t blocks = s.network.shape().num_blocks;
  s.memory.assign(static_cast<std::size_t>(pool.num_threads()),
                  std::vector<float>(3 * kRows * width + 4 * blocks * kRows));
  for (std::vector<float>& memory : s.memory) {
    // No way back: one residual stream, one inner buffer.
    tile::Buffers b;
    b.z.assign(blocks + 1, memory.data());
    b.t.assign(blocks, memory.data() + kRows * width);
    b.a = memory.data() + 2 * kRows * width;
    b.row_mean = memory.data() + 3 * kRows * width;
    b.row_rstd = b.row_mean + 2 * blocks * kRows;
    s.buffers.push_back(std::move(b));
  }
}

PairEvaluator::~PairEvaluator() = default;
PairEvaluator::PairEvaluator(PairEvaluator&&) noexcept = default;

void PairEvaluator::operator()(MatrixView<const float> theta, std::span<float> logits) const {
  State& s = *state_;
  const PairNetworkShape& shape = s.network.shape();
  if (theta.cols != shape.dim_theta || logits.size() != theta.rows) {
    throw ShapeError("pair evaluator: theta is [" + std::to_string(theta.rows) + ", " +
                     std::to_string(theta.cols) + "] and logits has " + std::to_string(logits.size()) +
                     " numbers; the network wants " + std::to_string(shape.dim_theta) +
                     " columns and as many logits as rows");
  }
  const std::size_t width = s.network.width();
  const tile::Pass pass(s.network, s.packed, s.kernels);
  s.pool.run((theta.rows + kRows - 1) / kRows, [&](std::size_t task, int worker) {
    const std::size_t first = task * kRows;
    const std::size_t rows = std::min(kRows, theta.rows - first);
    const tile::Buffers& b = s.buffers[static_cast<std::size_t>(worker)];
    s.kernels.gemm(theta.data + first * theta.stride, theta.stride, rows, theta.cols,
                   s.packed.theta_in.data(), width, s.v.data(), false, b.z[0], width);
    pass.forward(rows, b, logits.data() + first);
  });
}

}  // namespace nrec
