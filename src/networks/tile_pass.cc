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
  // Padding features are zero: products neither sum over them nor compute them.
  const std::size_t features = shape.hidden_features;
  const auto pack_rows = [&](const MatrixProducts& of, AlignedVector<float>& packed, std::size_t offset,
                             std::size_t rows) {
    packed.resize(packed_floats(rows, features));
    of.pack(w + offset, width, rows, features, packed.data());
  };
  const auto pack_back = [&](AlignedVector<float>& packed, std::size_t offset) {
    packed.resize(packed_floats(features, features));
    kernels.hidden.pack_transposed(w + offset, width, features, features, packed.data());
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

std::size_t layer_number(std::size_t i, int which) { return 2 * i + static_cast<std::size_t>(which); }

}  // namespace

Pass::Input Pass::input(std::size_t i, int which, const Part& part, const Buffers& b) const {
  const PackedNetwork::Block& block = p_.blocks[i];
  const std::size_t norm_row = layer_number(i, which) * part.rows + part.first;
  return {which ? t(i, part, b) : z(i, part, b), block.scale[which].data(), block.shift[which].data(),
          b.row_mean + norm_row, b.row_rstd + norm_row};
}

void Pass::activate(std::size_t i, int which, const Part& part, const Buffers& b) const {
  const std::size_t width = n_.width();
  const bool layer_norm = n_.shape().norm == Norm::layer;
  const Input in = input(i, which, part, b);
  constexpr float kEps = PairNetwork::kLayerNormEps;
  if (!k_.rounded) {
    if (layer_norm) k_.layer_norm_moments(in.rows, part.count, width, features(), kEps, in.mean, in.rstd);
    return activate_again(i, which, part, b);
  }
  float* normalised =
      b.normalised.empty() ? nullptr : b.normalised[layer_number(i, which)] + part.first * width;
  for_row_blocks(part.count, [&](std::size_t first, std::size_t count) {
    const float* rows = in.rows + first * width;
    if (!layer_norm) {
      return k_.rounded->round_affine_relu(rows, count, first, part.count, features(), width, in.scale,
                                           in.shift, b.operand);
    }
    k_.rounded->round_layer_norm_relu(rows, count, first, part.count, features(), width, kEps, in.scale,
                                      in.shift, in.mean + first, in.rstd + first,
                                      normalised ? normalised + first * width : nullptr, b.operand);
  });
}

void Pass::activate_again(std::size_t i, int which, const Part& part, const Buffers& b) const {
  const std::size_t width = n_.width();
  const Input in = input(i, which, part, b);
  if (n_.shape().norm == Norm::layer)
    return k_.layer_norm_relu(in.rows, part.count, width, features(), in.scale, in.shift, in.mean, in.rstd,
                              b.a);
  k_.affine_relu(in.rows, part.count, width, in.scale, in.shift, b.a);
}

void Pass::first_linear(std::size_t i, const Part& part, const Buffers& b) const {
  const std::size_t width = n_.width();
  const float* packed = p_.blocks[i].w1.data();
  const float* bias = weight(n_.block(i).b1);
  float* out = t(i, part, b);
  if (k_.rounded) {
    k_.rounded->forward(b.operand, part.count, features(), packed, width, bias, nullptr, out, width,
                        &b.ahead);
  } else {
    k_.hidden.gemm(b.a, width, part.count, features(), packed, features(), bias, nullptr, out, width,
                   &b.ahead);
  }
}

void Pass::second_linear(std::size_t i, const Part& part, const Buffers& b) const {
  const std::size_t width = n_.width();
  const float* packed = p_.blocks[i].w2.data();
  const float* bias = weight(n_.block(i).b2);
  const float* stream = z(i, part, b);
  float* out = z(i + 1, part, b);
  if (k_.rounded) {
    k_.rounded->forward(b.operand, part.count, features(), packed, width, bias, stream, out, width, &b.ahead);
  } else {
    k_.hidden.gemm(b.a, width, part.count, features(), packed, features(), bias, stream, out, width,
                   &b.ahead);
  }
}

void Pass::keep(std::size_t i, int which, const Part& part, const Buffers& b) const {
  if (b.kept.empty()) return;
  const std::size_t layer = layer_number(i, which), width = n_.width();
  std::uint32_t* mask = b.masks.empty() ? nullptr : b.masks[layer] + part.first * mask_words(width);
  k_.rounded->keep(b.operand, part.count, part.first, part.rows, features(), width, b.kept[layer], mask);
}

void Pass::output(const Part& part, const Buffers& b, float* logits) const {
  k_.row_dots(z(b.t.size(), part, b), part.count, n_.width(), weight(n_.out_weight()), *weight(n_.out_bias()),
              logits + part.first);
}

void Pass::output_backward(const Part& part, const Buffers& b, const float* d_logits, float* gradient) const {
  const float* d = d_logits + part.first;
  k_.row_dots_backward(z(b.t.size(), part, b), d, part.count, n_.width(), weight(n_.out_weight()),
                       dz(part, b), gradient ? gradient + n_.out_weight() : b.unused);
  if (!gradient) return;
  float sum = 0.0f;
  for (std::size_t r = 0; r < part.count; ++r) sum += d[r];
  gradient[n_.out_bias()] += sum;
}

void Pass::linear_backward(std::size_t i, int which, const Part& part, const Buffers& b,
                           float* gradient) const {
  const std::size_t width = n_.width();
  const PairNetwork::BlockOffsets at = n_.block(i);
  const PackedNetwork::Block& block = p_.blocks[i];
  const float* d = which ? dz(part, b) : this->d(part, b);
  float* e = which ? this->d(part, b) : b.e;
  const float* packed = (which ? block.w2_transposed : block.w1_transposed).data();
  const std::size_t bias = which ? at.b2 : at.b1;
  if (gradient && k_.rounded) {
    for_row_blocks(part.count, [&](std::size_t first, std::size_t count) {
      k_.rounded->round_gradient(d + first * width, width, count, part.first + first, part.rows, width,
                                 part.first, b.left, b.rights[which], gradient + bias);
    });
    k_.rounded->backward(b.left, part.count, features(), width, packed, e, width, &b.ahead);
    return;
  }
  if (gradient) {
    k_.hidden.gemm_weights(b.a, width, d, width, part.count, features(), features(),
                           gradient + (which ? at.w2 : at.w1), width);
    k_.column_sums(d, part.count, width, gradient + bias);
  }
  k_.hidden.gemm(d, width, part.count, features(), packed, features(), nullptr, nullptr, e, width, &b.ahead);
}

void Pass::weights_backward(std::size_t i, int which, std::size_t rows, const Buffers& b,
                            float* gradient) const {
  if (!k_.rounded || !gradient) return;
  const PairNetwork::BlockOffsets at = n_.block(i);
  k_.rounded->weights(b.kept[layer_number(i, which)], b.rights[which], rows, features(), n_.width(),
                      gradient + (which ? at.w2 : at.w1), &b.ahead);
}

void Pass::activate_backward_rows(std::size_t i, int which, const Part& some, const float* input, float* d,
                                  float* target, const Buffers& b, float* gradient) const {
  const PackedNetwork::Block& block = p_.blocks[i];
  const std::size_t width = n_.width();
  if (n_.shape().norm == Norm::layer) {
    const PairNetwork::BlockOffsets at = n_.block(i);
    const std::size_t row = layer_number(i, which) * some.rows + some.first;
    float* d_gain = gradient ? gradient + (which ? at.gain2 : at.gain1) : b.unused;
    float* d_shift = gradient ? gradient + (which ? at.shift2 : at.shift1) : b.unused + width;
    const float* mean = b.normalised.empty() ? b.row_mean + row : nullptr;
    k_.layer_norm_relu_backward(input, some.count, width, features(), block.scale[which].data(),
                                block.shift[which].data(), mean, b.row_rstd + row, d, which == 0, target,
                                d_gain, d_shift);
    return;
  }
  k_.affine_relu_backward(input, some.count, width, block.scale[which].data(), block.shift[which].data(), d,
                          which ? nullptr : target);
  // In front of t the kernel only masks d, which is all that "none" needs (scale 1).
  if (which && n_.shape().norm == Norm::batch) {
    const float* zeros = p_.zeros.data();
    k_.batch_norm_backward(input, d, some.count, width, block.scale[which].data(), zeros, zeros, zeros, false,
                           d);
  }
}

void Pass::activate_backward(std::size_t i, int which, const Part& part, const Buffers& b,
                             float* gradient) const {
  const std::size_t width = n_.width();
  float* d = which ? this->d(part, b) : b.e;
  float* target = which ? d : dz(part, b);
  if (!b.masks.empty()) {
    const std::uint32_t* mask = b.masks[layer_number(i, which)] + part.first * mask_words(width);
    k_.rounded->relu_backward(mask, part.count, width, d, which ? nullptr : target);
    return;
  }
  const float* input = !b.normalised.empty() ? b.normalised[layer_number(i, which)] + part.first * width
                       : which               ? t(i, part, b)
                                             : z(i, part, b);
  if (!k_.rounded) return activate_backward_rows(i, which, part, input, d, target, b, gradient);
  for_row_blocks(part.count, [&](std::size_t first, std::size_t count) {
    const std::size_t start = first * width;
    activate_backward_rows(i, which, {part.first + first, count, part.rows}, input + start, d + start,
                           target + start, b, gradient);
    k_.rounded->stay_awake();
  });
}

void Pass::forward(const Part& part, const Buffers& b, float* logits) const {
  for (std::size_t i = 0; i < n_.shape().num_blocks; ++i) {
    activate(i, 0, part, b);
    keep(i, 0, part, b);
    first_linear(i, part, b);
    activate(i, 1, part, b);
    keep(i, 1, part, b);
    second_linear(i, part, b);
  }
  output(part, b, logits);
}

void Pass::forward(std::size_t rows, const Buffers& b, float* logits) const {
  for_parts(rows, [&](const Part& part) { forward(part, b, logits); });
}

void Pass::block_backward(std::size_t i, const Part& part, const Buffers& b, float* gradient) const {
  const bool again = gradient && !k_.rounded;  // operands are kept
  for (const int which : {1, 0}) {
    if (again) activate_again(i, which, part, b);
    linear_backward(i, which, part, b, gradient);
    activate_backward(i, which, part, b, gradient);
  }
}

}  // namespace nrec::tile
