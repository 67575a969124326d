#include "networks/tile_pass.h"

#include <algorithm>
#include <cmath>

namespace nrec::tile {

void PackedNetwork::pack(const PairNetwork& network, const PairKernels& kernels, bool backward) {
  const std::size_t width = network.width();
  const PairNetworkShape& shape = network.shape();
  const float* w = network.weights().data();
  blocks.resize(shape.num_blocks);
  zeros.assign(width, 0.0f);
  // Padding features are zero: products of hidden layers do not sum over them.
  const std::size_t features = shape.hidden_features;
  const auto pack_rows = [&](const MatrixProducts& of, AlignedVector<float>& packed, std::size_t offset,
                             std::size_t rows) {
    packed.resize(packed_floats(rows, width));
    of.pack(w + offset, rows, width, packed.data());
  };
  const auto pack_back = [&](AlignedVector<float>& packed, std::size_t offset) {
    packed.resize(packed_floats(features, width));
    kernels.hidden.pack_transposed(w + offset, width, width, features, packed.data());
  };
  pack_rows(kernels.inputs, theta_in, network.theta_in(), shape.dim_theta);
  pack_rows(kernels.inputs, x_in, network.x_in(), shape.dim_x);
  for (std::size_t i = 0; i < shape.num_blocks; ++i) {
    Block& block = blocks[i];
    const PairNetwork::BlockOffsets at = network.block(i);
    pack_rows(kernels.hidden, block.w1, at.w1, features);
    pack_rows(kernels.hidden, block.w2, at.w2, features);
    if (backward) {
      pack_back(block.w1_transposed, at.w1);
      pack_back(block.w2_transposed, at.w2);
    }
    for (const int which : {0, 1}) {
      block.scale[which].assign(width, 1.0f);
      block.shift[which].assign(width, 0.0f);
      if (shape.norm == Norm::none) continue;
      const float* gain = w + (which ? at.gain2 : at.gain1);
      const float* shift = w + (which ? at.shift2 : at.shift1);
      for (std::size_t c = 0; c < width; ++c) {
        double scale = gain[c];
        double offset = shift[c];
        if (shape.norm == Norm::batch) {
          const float* statistics = network.statistics().data();
          const double mean = statistics[network.running_mean(i, which) + c];
          const double variance = statistics[network.running_variance(i, which) + c];
          scale /= std::sqrt(variance + PairNetwork::kBatchNormEps);
          offset -= mean * scale;
        }
        block.scale[which][c] = static_cast<float>(scale);
        block.shift[which][c] = static_cast<float>(offset);
      }
    }
  }
}

namespace {

/// body(first, count): blocks of rows that are few enough to be rounded while they are in cache.
template <class Body>
void for_row_blocks(std::size_t rows, const Body& body) {
  for (std::size_t first = 0; first < rows; first += RoundedLayer::kBlockRows)
    body(first, std::min(RoundedLayer::kBlockRows, rows - first));
}

}  // namespace

void Pass::activate_rows(std::size_t i, int which, std::size_t first, std::size_t count, std::size_t rows,
                         const Buffers& b, float* a) const {
  const PackedNetwork::Block& block = p_.blocks[i];
  const std::size_t width = n_.width();
  const float* input = (which ? b.t[i] : b.z[i]) + first * width;
  if (n_.shape().norm == Norm::layer) {
    const std::size_t at = (2 * i + static_cast<std::size_t>(which)) * rows + first;
    k_.layer_norm_relu(input, count, width, features(), PairNetwork::kLayerNormEps, block.scale[which].data(),
                       block.shift[which].data(), b.row_mean + at, b.row_rstd + at, a);
  } else {
    k_.affine_relu(input, count, width, block.scale[which].data(), block.shift[which].data(), a);
  }
}

void Pass::activate(std::size_t i, int which, std::size_t rows, const Buffers& b) const {
  if (!k_.rounded) return activate_rows(i, which, 0, rows, rows, b, b.a);
  const std::size_t width = n_.width();
  float* operand = b.operands[2 * i + static_cast<std::size_t>(which)];
  for_row_blocks(rows, [&](std::size_t first, std::size_t count) {
    activate_rows(i, which, first, count, rows, b, b.a);
    k_.rounded->round(b.a, width, count, first, rows, features(), operand);
  });
}

void Pass::first_linear(std::size_t i, std::size_t rows, const Buffers& b) const {
  const std::size_t width = n_.width();
  const float* packed = p_.blocks[i].w1.data();
  const float* bias = weight(n_.block(i).b1);
  if (k_.rounded) {
    k_.rounded->forward(b.operands[2 * i], rows, features(), packed, width, bias, nullptr, b.t[i], width,
                        &b.ahead);
  } else {
    k_.hidden.gemm(b.a, width, rows, features(), packed, width, bias, nullptr, b.t[i], width, &b.ahead);
  }
}

void Pass::second_linear(std::size_t i, std::size_t rows, const Buffers& b) const {
  const std::size_t width = n_.width();
  const float* packed = p_.blocks[i].w2.data();
  const float* bias = weight(n_.block(i).b2);
  if (k_.rounded) {
    k_.rounded->forward(b.operands[2 * i + 1], rows, features(), packed, width, bias, b.z[i], b.z[i + 1],
                        width, &b.ahead);
  } else {
    k_.hidden.gemm(b.a, width, rows, features(), packed, width, bias, b.z[i], b.z[i + 1], width, &b.ahead);
  }
}

void Pass::output(std::size_t rows, const Buffers& b, float* logits) const {
  k_.row_dots(b.z.back(), rows, n_.width(), weight(n_.out_weight()), *weight(n_.out_bias()), logits);
}

void Pass::output_backward(std::size_t rows, const Buffers& b, const float* d_logits, float* gradient) const {
  k_.row_dots_backward(b.z.back(), d_logits, rows, n_.width(), weight(n_.out_weight()), b.dz,
                       gradient ? gradient + n_.out_weight() : b.unused);
  if (!gradient) return;
  float sum = 0.0f;
  for (std::size_t r = 0; r < rows; ++r) sum += d_logits[r];
  gradient[n_.out_bias()] += sum;
}

void Pass::round_gradient_rows(std::size_t i, int which, std::size_t first, std::size_t count,
                               std::size_t rows, const Buffers& b, float* gradient) const {
  const std::size_t width = n_.width();
  const PairNetwork::BlockOffsets at = n_.block(i);
  k_.rounded->round_gradient((which ? b.dz : b.d) + first * width, width, count, first, rows, width, b.work,
                             gradient + (which ? at.b2 : at.b1));
}

void Pass::round_gradient(std::size_t i, int which, std::size_t rows, const Buffers& b,
                          float* gradient) const {
  if (!k_.rounded || !gradient) return;
  for_row_blocks(rows, [&](std::size_t first, std::size_t count) {
    round_gradient_rows(i, which, first, count, rows, b, gradient);
  });
}

void Pass::linear_backward(std::size_t i, int which, std::size_t rows, const Buffers& b,
                           float* gradient) const {
  const std::size_t width = n_.width();
  const PairNetwork::BlockOffsets at = n_.block(i);
  const PackedNetwork::Block& block = p_.blocks[i];
  const float* d = which ? b.dz : b.d;
  float* e = which ? b.d : b.e;
  const float* packed = (which ? block.w2_transposed : block.w1_transposed).data();
  if (gradient) {
    float* dw = gradient + (which ? at.w2 : at.w1);
    if (k_.rounded) {
      const float* operand = b.operands[2 * i + static_cast<std::size_t>(which)];
      k_.rounded->backward(operand, rows, features(), width, packed, dw, e, width, b.work, &b.ahead);
      return;
    }
    k_.hidden.gemm_weights(b.a, width, d, width, rows, features(), width, dw);
    k_.column_sums(d, rows, width, gradient + (which ? at.b2 : at.b1));
  }
  k_.hidden.gemm(d, width, rows, features(), packed, width, nullptr, nullptr, e, width, &b.ahead);
}

void Pass::second_linear_backward(std::size_t i, std::size_t rows, const Buffers& b, float* gradient) const {
  round_gradient(i, 1, rows, b, gradient);
  linear_backward(i, 1, rows, b, gradient);
}

void Pass::first_linear_backward(std::size_t i, std::size_t rows, const Buffers& b, float* gradient) const {
  round_gradient(i, 0, rows, b, gradient);
  linear_backward(i, 0, rows, b, gradient);
}

void Pass::activate_backward_rows(std::size_t i, int which, std::size_t first, std::size_t count,
                                  std::size_t rows, const Buffers& b, float* gradient) const {
  const PackedNetwork::Block& block = p_.blocks[i];
  const std::size_t width = n_.width(), start = first * width;
  const float* input = (which ? b.t[i] : b.z[i]) + start;
  float* d = (which ? b.d : b.e) + start;
  float* target = (which ? b.d : b.dz) + start;
  if (n_.shape().norm == Norm::layer) {
    const PairNetwork::BlockOffsets at = n_.block(i);
    const std::size_t row = (2 * i + static_cast<std::size_t>(which)) * rows + first;
    float* d_gain = gradient ? gradient + (which ? at.gain2 : at.gain1) : b.unused;
    float* d_shift = gradient ? gradient + (which ? at.shift2 : at.shift1) : b.unused + width;
    k_.layer_norm_relu_backward(input, count, width, features(), block.scale[which].data(),
                                block.shift[which].data(), b.row_mean + row, b.row_rstd + row, d, which == 0,
                                target, d_gain, d_shift);
    return;
  }
  k_.affine_relu_backward(input, count, width, block.scale[which].data(), block.shift[which].data(), d,
                          which ? nullptr : target);
  // In front of t the kernel only masks d, which is all that "none" needs (scale 1).
  if (which && n_.shape().norm == Norm::batch) {
    const float* zeros = p_.zeros.data();
    k_.batch_norm_backward(input, d, count, width, block.scale[which].data(), zeros, zeros, zeros, false, d);
  }
}

void Pass::activate_backward(std::size_t i, int which, std::size_t rows, const Buffers& b,
                             float* gradient) const {
  const bool is_input = i == 0 && which == 0;
  if (!k_.rounded || !gradient || is_input)
    return activate_backward_rows(i, which, 0, rows, rows, b, gradient);
  for_row_blocks(rows, [&](std::size_t first, std::size_t count) {
    activate_backward_rows(i, which, first, count, rows, b, gradient);
    round_gradient_rows(which ? i : i - 1, which ? 0 : 1, first, count, rows, b, gradient);
  });
}

void Pass::forward(std::size_t rows, const Buffers& b, float* logits) const {
  for (std::size_t i = 0; i < n_.shape().num_blocks; ++i) {
    activate(i, 0, rows, b);
    first_linear(i, rows, b);
    activate(i, 1, rows, b);
    second_linear(i, rows, b);
  }
  output(rows, b, logits);
}

void Pass::backward(std::size_t rows, const Buffers& b, const float* d_logits, float* gradient) const {
  const std::size_t blocks = n_.shape().num_blocks;
  const bool again = gradient && !k_.rounded;  // operands are kept
  output_backward(rows, b, d_logits, gradient);
  if (blocks > 0) round_gradient(blocks - 1, 1, rows, b, gradient);
  for (std::size_t i = blocks; i-- > 0;) {
    if (again) activate(i, 1, rows, b);
    linear_backward(i, 1, rows, b, gradient);
    activate_backward(i, 1, rows, b, gradient);
    if (again) activate(i, 0, rows, b);
    linear_backward(i, 0, rows, b, gradient);
    activate_backward(i, 0, rows, b, gradient);
  }
}

}  // namespace nrec::tile
