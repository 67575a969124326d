#pragma once

#include <algorithm>
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

/// Some rows of a tile of `rows` pairs.
struct Part {
  std::size_t first, count;
  std::size_t rows;

  static Part whole(std::size_t rows) { return {0, rows, rows}; }
};

/// Activations of the pairs of one tile: rows x width each, wherever they live (a thread's scratch or the whole step's memory).
struct Buffers {
  std::vector<float*> z;  // num_blocks + 1: the residual stream before each block and after the last
  std::vector<float*> t;  // num_blocks: output of the first linear layer
  /// The first so many of z, and t, hold the rows of one part at a time: what is not needed on the way back, or made again.
  std::size_t part_z = 0;
  bool part_t = false;
  bool whole_d = false;  // d has all rows
  /// Normalised and rectified input of a linear layer, recomputed on the way back; with a RoundedLayer that goes to `operand`.
  float* a = nullptr;
  /// Gradient inside a block, of the rows of a part unless `whole_d`.
  float* d = nullptr;
  /// A second one, of the rows of a part; may be `a`, or with a RoundedLayer `d`, which is then overwritten.
  float* e = nullptr;
  float* dz = nullptr;        // gradient of the residual stream; may be z.back(), which is then overwritten
  Ahead ahead;                // what the tile after this one reads, where that is not in cache
  float* row_mean = nullptr;  // layer norm: [2 num_blocks][rows]
  float* row_rstd = nullptr;
  /// Two widths: sums over rows that nobody asked for, on a way back without weight gradients.
  float* unused = nullptr;
  // Tables with a RoundedLayer:
  float* operand = nullptr;  // the rounded input of a layer, of the rows of a part
  // Of each of the 2 num_blocks layers, for the way back, or one for all; none where weights have no gradients.
  std::vector<float*> kept;
  // Where parts leave nothing else to tell, of each layer: without a norm masks of relu, with layer norm its normalised input.
  std::vector<std::uint32_t*> masks;
  std::vector<float*> normalised;
  float* rights[2] = {};  // rounded gradients of a block's layers, for those of the weights
  float* left = nullptr;  // the rows of a part of one, for that of what is in front
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

/// The stages of a forward and backward pass over one tile, all of them in a RoundedSession. A fused pass calls all of them for one part of a
/// tile while it is in cache; exact batch norm calls one stage for all parts of all tiles, then the next.
///
/// On the way back `gradient` may be null: then only the gradients of the activations are computed, and `a` need not be activated.
class Pass {
 public:
  Pass(const PairNetwork& network, const PackedNetwork& packed, const PairKernels& kernels)
      : n_(network), p_(packed), k_(kernels) {}

  /// Room of an operand, as a number of floats; 0 where the table has no use for them.
  static std::size_t operand_room(const PairKernels& kernels, std::size_t rows, std::size_t width) {
    return kernels.rounded ? operand_floats(rows, width) : 0;
  }

  /// Rows of the parts that a tile is cut into. Without a RoundedLayer it is one part.
  static std::size_t part_rows(const PairKernels& kernels, std::size_t rows) {
    return kernels.rounded ? std::min(rows, RoundedLayer::kPartRows) : rows;
  }
  /// body(part): the parts of a tile, in order.
  template <class Body>
  void for_parts(std::size_t rows, const Body& body) const {
    const std::size_t step = part_rows(k_, rows);
    for (std::size_t first = 0; first < rows; first += step)
      body(Part{first, std::min(step, rows - first), rows});
  }

  /// The rows of a part in z[i] and t[i].
  float* z(std::size_t i, const Part& part, const Buffers& b) const {
    return b.z[i] + (i < b.part_z ? 0 : part.first * n_.width());
  }
  float* t(std::size_t i, const Part& part, const Buffers& b) const {
    return b.t[i] + (b.part_t ? 0 : part.first * n_.width());
  }
  float* d(const Part& part, const Buffers& b) const {
    return b.d + (b.whole_d ? part.first * n_.width() : 0);
  }
  float* dz(const Part& part, const Buffers& b) const { return b.dz + part.first * n_.width(); }

  /// a = relu(norm(input of linear layer `which` of block i)), or `operand`.
  void activate(std::size_t i, int which, const Part& part, const Buffers& b) const;
  /// `a` a second time.
  void activate_again(std::size_t i, int which, const Part& part, const Buffers& b) const;
  void first_linear(std::size_t i, const Part& part, const Buffers& b) const;
  void second_linear(std::size_t i, const Part& part, const Buffers& b) const;
  /// logits: those of the tile.
  void output(const Part& part, const Buffers& b, float* logits) const;

  /// After activate(): what is wanted on the way back of the layer, with a RoundedLayer.
  void keep(std::size_t i, int which, const Part& part, const Buffers& b) const;
  void output_backward(const Part& part, const Buffers& b, const float* d_logits, float* gradient) const;
  /// The way back of linear layer `which` of block i, from dz or d to d or e, the gradient of the activations in front of it; the gradient
  /// of its bias, and of its weights where the table has no RoundedLayer; expects `a` activated there.
  void linear_backward(std::size_t i, int which, const Part& part, const Buffers& b, float* gradient) const;
  /// The gradient of its weights, with a RoundedLayer, when all rows have been there.
  void weights_backward(std::size_t i, int which, std::size_t rows, const Buffers& b, float* gradient) const;
  /// Backward of relu and norm: which = 1 turns d into the gradient of t, which = 0 adds to dz. Batch norm only as in
  /// evaluation mode: an affine map, without gradients of its gain and shift.
  void activate_backward(std::size_t i, int which, const Part& part, const Buffers& b, float* gradient) const;

  /// All blocks, then the logits, of a part or of all.
  void forward(const Part& part, const Buffers& b, float* logits) const;
  void forward(std::size_t rows, const Buffers& b, float* logits) const;
  /// From d_logits down to dz at the input layer, part by part in every block; batch norm as in evaluation mode, without `gradient`.
  /// done(part): the rows of dz are there.
  template <class Done>
  void backward(std::size_t rows, const Buffers& b, const float* d_logits, float* gradient,
                const Done& done) const {
    const std::size_t blocks = n_.shape().num_blocks;
    for (std::size_t turn = std::max<std::size_t>(blocks, 1); turn-- > 0;) {
      for_parts(rows, [&](const Part& part) {
        if (turn + 1 >= blocks) output_backward(part, b, d_logits, gradient);
        if (blocks > 0) block_backward(turn, part, b, gradient);
        if (turn == 0) done(part);
      });
      if (blocks == 0) continue;
      for (const int which : {1, 0}) weights_backward(turn, which, rows, b, gradient);
    }
  }

 private:
  /// Where the input of linear layer `which` of block i is, and its norm.
  struct Input {
    const float *rows, *scale, *shift;
    float *mean, *rstd;
  };
  Input input(std::size_t i, int which, const Part& part, const Buffers& b) const;
  void block_backward(std::size_t i, const Part& part, const Buffers& b, float* gradient) const;
  /// Of some rows of a part.
  void activate_backward_rows(std::size_t i, int which, const Part& some, const float* input, float* d,
                              float* target, const Buffers& b, float* gradient) const;
  std::size_t features() const { return n_.shape().hidden_features; }
  const float* weight(std::size_t offset) const { return n_.weights().data() + offset; }
  const PairNetwork& n_;
  const PackedNetwork& p_;
  const PairKernels& k_;
};

}  // namespace nrec::tile
