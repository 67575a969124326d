#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/aligned_vector.h"
#include "nrec/kernels/pair_kernels.h"
#include "nrec/networks/pair_network.h"

namespace nrec::tile {

/// Weights of one step in the order the kernels read them, and each norm as a per-column affine map.
struct PackedNetwork {
  struct Block {
    AlignedVector<float> w1, w2, w1_transposed, w2_transposed;
    AlignedVector<float> scale[2],
        shift[2];  // none: 1, 0; batch: gain/sd, shift - mean gain/sd; layer: gain, shift
  };
  std::vector<Block> blocks;
  AlignedVector<float> theta_in;  // packed
  AlignedVector<float> x_in;      // packed
  AlignedVector<float> zeros;     // one width of them

  /// Packs what changes with the weights; running statistics become the affine maps of batch norm.
  void pack(const PairNetwork& network, const PairKernels& kernels, bool backward);
};

/// Activations of the pairs of one tile: rows x width each, wherever they live (a thread's scratch or the whole step's memory).
struct Buffers {
  std::vector<float*> z;  // num_blocks + 1: the residual stream before each block and after the last
  std::vector<float*> t;  // num_blocks: output of the first linear layer
  /// Normalised and rectified input of a linear layer (recomputed on the way back); in tables with a RoundedLayer only
  /// RoundedLayer::kBlockRows rows of it at a time, which then go to an operand.
  float* a = nullptr;
  /// Tables with a RoundedLayer: the rounded input of each of the 2 num_blocks layers (kept for the way back), or one for all.
  std::vector<float*> operands;
  float* work = nullptr;      // and room for its way back
  float* d = nullptr;         // gradient inside a block
  float* e = nullptr;         // second gradient inside a block; may be `a`, which is then overwritten
  float* dz = nullptr;        // gradient of the residual stream; may be z.back(), which is then overwritten
  Ahead ahead;                // what the tile after this one reads, where that is not in cache
  float* row_mean = nullptr;  // layer norm: [2 num_blocks][rows]
  float* row_rstd = nullptr;
  float* unused =
      nullptr;  // two widths: sums over rows that nobody asked for, on a way back without weight gradients
};

/// What a thread does with the kernels of a RoundedLayer lies between its begin() and end().
class RoundedSession {
 public:
  explicit RoundedSession(const PairKernels& kernels) : layer_(kernels.rounded) {
    if (layer_) layer_->begin();
  }
  RoundedSession(const RoundedSession&) = delete;
  RoundedSession& operator=(const RoundedSession&) = delete;
  ~RoundedSession() {
    if (layer_) layer_->end();
  }

 private:
  const RoundedLayer* layer_;
};

/// The stages of a forward and backward pass over one tile, all of them in a RoundedSession. A fused pass calls all of them for one tile
/// while it is in cache; exact batch norm calls one stage for all tiles, then the next.
///
/// On the way back `gradient` may be null: then only the gradients of the activations are computed, and `a` need not be activated.
class Pass {
 public:
  Pass(const PairNetwork& network, const PackedNetwork& packed, const PairKernels& kernels)
      : n_(network), p_(packed), k_(kernels) {}

  /// Rooms of `operands` and `work`, as numbers of floats; 0 where the table has no use for them.
  static std::size_t operand_room(const PairKernels& kernels, std::size_t rows, std::size_t width) {
    return kernels.rounded ? operand_floats(rows, width) : 0;
  }
  static std::size_t work_room(const PairKernels& kernels, std::size_t rows, std::size_t width) {
    return 3 * operand_room(kernels, rows, width);
  }

  /// a = relu(norm(input of linear layer `which` of block i)), or its operand.
  void activate(std::size_t i, int which, std::size_t rows, const Buffers& b) const;
  void first_linear(std::size_t i, std::size_t rows, const Buffers& b) const;
  void second_linear(std::size_t i, std::size_t rows, const Buffers& b) const;
  void output(std::size_t rows, const Buffers& b, float* logits) const;

  void output_backward(std::size_t rows, const Buffers& b, const float* d_logits, float* gradient) const;
  /// Gradients of W2, b2; d = gradient of the activations in front of it. Expects `a` (or its operand) activated.
  void second_linear_backward(std::size_t i, std::size_t rows, const Buffers& b, float* gradient) const;
  /// Gradients of W1, b1 from d; e = gradient of the activations in front of it. Expects `a` (or its operand) activated.
  void first_linear_backward(std::size_t i, std::size_t rows, const Buffers& b, float* gradient) const;
  /// Backward of relu and norm: which = 1 turns d into the gradient of t, which = 0 adds to dz. Batch norm only as in
  /// evaluation mode: an affine map, without gradients of its gain and shift.
  void activate_backward(std::size_t i, int which, std::size_t rows, const Buffers& b, float* gradient) const;

  /// All blocks, then the logits.
  void forward(std::size_t rows, const Buffers& b, float* logits) const;
  /// From d_logits down to dz at the input layer; batch norm as in evaluation mode, without `gradient`.
  void backward(std::size_t rows, const Buffers& b, const float* d_logits, float* gradient) const;

 private:
  /// `count` of the `rows` of a tile, from `first` on.
  void activate_rows(std::size_t i, int which, std::size_t first, std::size_t count, std::size_t rows,
                     const Buffers& b, float* a) const;
  void activate_backward_rows(std::size_t i, int which, std::size_t first, std::size_t count,
                              std::size_t rows, const Buffers& b, float* gradient) const;
  /// The gradient behind linear layer `which` of block i, or some rows of it, to the operands of its way back.
  void round_gradient(std::size_t i, int which, std::size_t rows, const Buffers& b, float* gradient) const;
  void round_gradient_rows(std::size_t i, int which, std::size_t first, std::size_t count, std::size_t rows,
                           const Buffers& b, float* gradient) const;
  /// The way back of linear layer `which` of block i: gradients of its weights and bias, and of what is in front of it. Tables with a
  /// RoundedLayer expect the gradient rounded.
  void linear_backward(std::size_t i, int which, std::size_t rows, const Buffers& b, float* gradient) const;
  std::size_t features() const { return n_.shape().hidden_features; }
  const float* weight(std::size_t offset) const { return n_.weights().data() + offset; }
  const PairNetwork& n_;
  const PackedNetwork& p_;
  const PairKernels& k_;
};

}  // namespace nrec::tile
