#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nrec {

/// Which normalisation the residual blocks of a network use.
enum class Norm { batch, layer, none };
/// "batch", "layer", "none". Errors: ConfigError with the known words.
Norm norm_kind(std::string_view name);
std::string_view norm_name(Norm norm);

/// What fixes the size of a pair network.
struct PairNetworkShape {
  std::size_t dim_theta = 0;
  std::size_t dim_x = 0;
  std::size_t hidden_features = 128;
  std::size_t num_blocks = 3;
  Norm norm = Norm::batch;

  bool operator==(const PairNetworkShape&) const = default;
};

/// One named array inside the flat buffers, unpadded, for files.
struct NetworkTensor {
  std::string name;                // "blocks.0.linear1.weight"
  std::vector<std::size_t> shape;  // [out, in] for weights, [features] for vectors
  std::vector<float> values;       // C order
};

/// Residual network of (theta, x) pairs: a state of weights and running statistics, no computation.
///
///   z = W_t theta + W_x x + b_in
///   per block: z += W2 relu(N2(W1 relu(N1(z)) + b1)) + b2
///   h = w_out . z + b_out
///
/// N is batch norm (eps 1e-3, momentum 0.1), layer norm (eps 1e-5) or the identity. Weights are one flat float32 buffer,
/// stored input-major and padded to kFeatureBlock columns; padding entries are zero and stay zero.
/// Source   [Miller2022, app. B], [Durkan2020]
class PairNetwork {
 public:
  static constexpr float kBatchNormEps = 1e-3f;
  static constexpr float kBatchNormMomentum = 0.1f;
  static constexpr float kLayerNormEps = 1e-5f;
  static constexpr std::size_t kMostFeatures = 4096;  // hidden ones; kernels have room for a row of them

  /// A network of zeros (gains 1, running variances 1). Errors: DomainError: a dimension is 0, or hidden_features above kMostFeatures.
  explicit PairNetwork(const PairNetworkShape& shape);
  /// Linear layers U(-1/sqrt(fan_in), 1/sqrt(fan_in)), weights and biases; the second of each block U(-1e-3, 1e-3).
  /// A pure function of `seed`.
  static PairNetwork initialised(const PairNetworkShape& shape, std::uint64_t seed);

  const PairNetworkShape& shape() const { return shape_; }
  std::size_t width() const { return width_; }  // hidden_features with padding
  std::span<float> weights() { return weights_; }
  std::span<const float> weights() const { return weights_; }
  std::span<float> statistics() { return statistics_; }
  std::span<const float> statistics() const { return statistics_; }
  /// Free numbers, without padding.
  std::size_t num_parameters() const;

  // Offsets into weights(). The x input layer comes last: its gradient is summed apart from the others.
  struct BlockOffsets {
    std::size_t gain1, shift1, w1, b1, gain2, shift2, w2, b2;
  };
  std::size_t theta_in() const { return 0; }
  std::size_t bias_in() const { return shape_.dim_theta * width_; }
  BlockOffsets block(std::size_t i) const;
  std::size_t out_weight() const;
  std::size_t out_bias() const { return out_weight() + width_; }
  std::size_t x_in() const;
  /// Calls f(offset into weights(), size) for every matrix of weights: all but biases, gains and shifts.
  template <class F>
  void for_each_matrix(F&& f) const {
    f(theta_in(), shape_.dim_theta * width_);
    const std::size_t hidden = shape_.hidden_features * width_;
    for (std::size_t i = 0; i < shape_.num_blocks; ++i) {
      f(block(i).w1, hidden);
      f(block(i).w2, hidden);
    }
    f(out_weight(), width_);
    f(x_in(), shape_.dim_x * width_);
  }
  /// Running mean and variance of norm `which` (0 or 1) of block i, offsets into statistics().
  std::size_t running_mean(std::size_t i, int which) const {
    return (2 * i + static_cast<std::size_t>(which)) * 2 * width_;
  }
  std::size_t running_variance(std::size_t i, int which) const { return running_mean(i, which) + width_; }

  /// All arrays by name, without padding. `values` may be any buffer laid out like weights(), e.g. an Adam moment.
  std::vector<NetworkTensor> tensors() const;
  /// Inverse of tensors(). Errors: IoError: missing, unknown or wrongly shaped arrays, non-finite values.
  void set_tensors(std::span<const NetworkTensor> tensors);

 private:
  struct Place;
  std::vector<Place> places() const;
  std::size_t block_size() const;

  PairNetworkShape shape_;
  std::size_t width_;
  std::vector<float> weights_;
  std::vector<float> statistics_;
};

}  // namespace nrec
