#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace nrec {

/// Widths of feature rows are padded to a multiple of this, so that every kernel works on whole registers of AVX2.
inline constexpr std::size_t kFeatureBlock = 8;
/// Columns of a panel of packed weights.
inline constexpr std::size_t kPanelColumns = 16;
inline constexpr std::size_t padded_features(std::size_t width) {
  return (width + kFeatureBlock - 1) / kFeatureBlock * kFeatureBlock;
}

/// Room for the packed form of W[k, n], whatever the table, as a number of floats.
inline constexpr std::size_t packed_floats(std::size_t k, std::size_t n) {
  // bf16 pairs of 32 rows by 16 columns take half of the whole tiles; panels of floats have sixteen columns.
  const std::size_t columns = (n + 15) / 16 * 16;
  const std::size_t tiles = (k + 31) / 32 * 32 * columns / 2, panels = k * columns;
  return tiles > panels ? tiles : panels;
}

/// Memory that is wanted soon. A product that is given it may fetch it into the second cache while it computes: what goes through
/// more pairs than caches hold would wait for memory otherwise.
struct Ahead {
  static constexpr int kMost = 4;
  const float* start[kMost] = {};
  int count = 0;
  std::size_t floats = 0;           // from each start
  int shares = 1;                   // products that fetch it, each a share
  mutable std::size_t fetched = 0;  // floats
};

/// Products with the weights of a layer. `packed` holds packed_floats(k, n) and is read by the table that made it. Rows of n columns have
/// room for padded_features(n). There add, bias, D and W have zeros; C gets zeros (NaN where its row of A is not finite), and zeros of dW stay.
struct MatrixProducts {
  /// packed = W[k, n], rows ldw apart.
  void (*pack)(const float* w, std::size_t ldw, std::size_t k, std::size_t n, float* packed);
  /// packed = transpose of W[k, n], that is an [n, k] matrix: packed_floats(n, k).
  void (*pack_transposed)(const float* w, std::size_t ldw, std::size_t k, std::size_t n, float* packed);

  /// C[m, n] = A[m, k] W + bias + add. bias, add and ahead may be null; rows of add are ldc apart as those of C, and it may be C. lda >= k.
  void (*gemm)(const float* a, std::size_t lda, std::size_t m, std::size_t k, const float* packed,
               std::size_t n, const float* bias, const float* add, float* c, std::size_t ldc,
               const Ahead* ahead);
  /// dW[k, n] += A[m, k]^T D[m, n].
  void (*gemm_weights)(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                       std::size_t k, std::size_t n, float* dw, std::size_t ldw);
};

/// Room for a matrix that a RoundedLayer has rounded, as a number of floats.
inline constexpr std::size_t operand_floats(std::size_t rows, std::size_t columns) {
  return (rows + 31) / 32 * 32 * ((columns + 31) / 32 * 32) / 2;
}

/// Numbers of a mask: a bit for each of the columns of a row.
inline constexpr std::size_t mask_words(std::size_t columns) { return (columns + 31) / 32; }

/// A hidden layer, W[features, width] with width = padded_features(features) and padding columns of zeros, whose operands
/// are rounded once and used several times, in an order of their own. A tile of m pairs may go through several layers part by part: a part
/// is some rows of it, from `first` on, a multiple of kPartRows. A thread calls begin() before and end() after what it does with a layer;
/// pairs may nest.
struct RoundedLayer {
  /// Rows of other work at once: few enough for the units that multiply tiles not to fall asleep.
  static constexpr std::size_t kBlockRows = 8;
  /// Rows of the parts that are worth cutting: their activations and gradients stay in the first cache.
  static constexpr std::size_t kPartRows = 32;

  void (*begin)();
  void (*end)();
  /// Between begin() and end(), after some rows of other work: units that multiply tiles fall asleep without any.
  void (*stay_awake)();
  /// Rows `first` (a multiple of kBlockRows) to first + count of A[rows, features], the a of PairKernels::affine_relu, go to `operand`; z
  /// has those rows. The last ones of `rows` bring zeros for what is missing to whole tiles.
  void (*round_affine_relu)(const float* z, std::size_t count, std::size_t first, std::size_t rows,
                            std::size_t features, std::size_t width, const float* scale, const float* shift,
                            float* operand);
  /// The same of PairKernels::layer_norm_moments and layer_norm_relu; mean and rstd have the rows of z. If `normalised` is not null, it gets
  /// the `count` rows (z - mean) rstd, with anything in padding columns.
  void (*round_layer_norm_relu)(const float* z, std::size_t count, std::size_t first, std::size_t rows,
                                std::size_t features, std::size_t width, float eps, const float* gain,
                                const float* shift, float* mean, float* rstd, float* normalised,
                                float* operand);
  /// C[rows, width] = A W + bias + add, as MatrixProducts::gemm, A as rounded, from pack(W, width, features, features); add may be C.
  void (*forward)(const float* operand, std::size_t rows, std::size_t features, const float* packed,
                  std::size_t width, const float* bias, const float* add, float* c, std::size_t ldc,
                  const Ahead* ahead);
  /// What weights() wants of the `rows` rows in `operand`, which are rows `first` on of m, goes to `kept`, which is one of all m; if mask
  /// is not null, mask[rows, mask_words(width)] says which numbers are not 0.
  void (*keep)(const float* operand, std::size_t rows, std::size_t first, std::size_t m, std::size_t features,
               std::size_t width, float* kept, std::uint32_t* mask);
  /// The way back begins with the gradient D[m, width] of C. Its rows `first` to first + count (d has those) go to `left`, which begins
  /// with row `start` (a multiple of kPartRows), and to `right`, which is one of all m; their column sums are added to db[width]. Zeros as
  /// in round_affine_relu().
  void (*round_gradient)(const float* d, std::size_t ldd, std::size_t count, std::size_t first, std::size_t m,
                         std::size_t width, std::size_t start, float* left, float* right, float* db);
  /// E[rows, width] = D W^T for the rows that are in `left`, from pack_transposed(W, width, features, features).
  void (*backward)(const float* left, std::size_t rows, std::size_t features, std::size_t width,
                   const float* packed_transposed, float* e, std::size_t lde, const Ahead* ahead);
  /// Backward of a = max(0, z) in front of the layer: d *= mask; if dz is not null, dz += d; [rows, width] each.
  void (*relu_backward)(const std::uint32_t* mask, std::size_t rows, std::size_t width, float* d, float* dz);
  /// When all rows are there: dW[features, width] += A^T D.
  void (*weights)(const float* kept, const float* right, std::size_t m, std::size_t features,
                  std::size_t width, float* dw, const Ahead* ahead);
};

/// The arithmetic of the pair network, one table per instruction set; `ref` (double accumulation) is the truth.
///
/// All matrices are float32, row-major, rows of `width` contiguous features (a multiple of kFeatureBlock) unless a
/// stride is given. Sums over rows run in increasing order of rows: same input, same bits. No kernel allocates.
struct PairKernels {
  const char* name;

  MatrixProducts inputs;  // of input layers
  /// Of hidden layers: a table of precision bf16 rounds both operands of a product to bfloat16 (sums and everything else stay
  /// float32); elsewhere the same as above.
  MatrixProducts hidden;
  /// The same products with operands that are rounded once, in every table of precision bf16; elsewhere null.
  const RoundedLayer* rounded;

  /// out[r, :] = u[index[r], :] + v[:].
  void (*add_rows)(const float* u, const std::uint32_t* index, const float* v, std::size_t rows,
                   std::size_t width, float* out);
  /// a = max(0, scale z + shift), per column.
  void (*affine_relu)(const float* z, std::size_t rows, std::size_t width, const float* scale,
                      const float* shift, float* a);
  /// d *= [scale z + shift > 0]; if dz is not null, dz += scale d.
  void (*affine_relu_backward)(const float* z, std::size_t rows, std::size_t width, const float* scale,
                               const float* shift, float* d, float* dz);

  /// sum[c] += sum_r (z - pivot), sum2[c] += sum_r (z - pivot)^2.
  void (*column_moments)(const float* z, std::size_t rows, std::size_t width, const float* pivot, double* sum,
                         double* sum2);
  /// Backward of relu and the sums that batch norm needs: masked = d [scale z + shift > 0], which may be d itself; s1 += masked; s2 +=
  /// masked (z - mean).
  void (*batch_norm_sums)(const float* z, std::size_t rows, std::size_t width, const float* scale,
                          const float* shift, const float* mean, const float* d, float* masked, double* s1,
                          double* s2);
  /// dz (+)= c0 d + c1 + c2 (z - mean), per column; dz may be d.
  void (*batch_norm_backward)(const float* z, const float* d, std::size_t rows, std::size_t width,
                              const float* c0, const float* c1, const float* c2, const float* mean,
                              bool accumulate, float* dz);

  /// Of the first `features` columns of each row: mean and rstd = 1 / sqrt(variance + eps), for layer norm and its way back.
  void (*layer_norm_moments)(const float* z, std::size_t rows, std::size_t width, std::size_t features,
                             float eps, float* mean, float* rstd);
  /// a = max(0, gain (z - row mean) / row sd + shift) over the first `features` columns; padding columns become 0.
  void (*layer_norm_relu)(const float* z, std::size_t rows, std::size_t width, std::size_t features,
                          const float* gain, const float* shift, const float* mean, const float* rstd,
                          float* a);
  /// Backward of the above: dz += ...; dgain, dshift += sums over rows. d is overwritten. If mean is null, z has the rows (z - mean) rstd.
  void (*layer_norm_relu_backward)(const float* z, std::size_t rows, std::size_t width, std::size_t features,
                                   const float* gain, const float* shift, const float* mean,
                                   const float* rstd, float* d, bool accumulate, float* dz, float* dgain,
                                   float* dshift);

  /// out[r] = z[r, :] . w + bias.
  void (*row_dots)(const float* z, std::size_t rows, std::size_t width, const float* w, float bias,
                   float* out);
  /// dz[r, :] = d[r] w; dw += sum_r d[r] z[r, :]. dz may be z.
  void (*row_dots_backward)(const float* z, const float* d, std::size_t rows, std::size_t width,
                            const float* w, float* dz, float* dw);
  /// out[c] += sum_r d[r, c].
  void (*column_sums)(const float* d, std::size_t rows, std::size_t width, float* out);

  /// Adam with gradient scale: g = grad_scale grad; m, v moments; w -= rate m / (sqrt(v) + eps), element by element.
  void (*adam)(float* w, const float* grad, float* m, float* v, std::size_t n, float grad_scale, float beta1,
               float beta2, float rate, float correction2, float eps);
};

/// Table of an implementation by its resolved name (resolve_isa). Errors: UnsupportedError: not available here.
const PairKernels& pair_kernels(std::string_view isa);

}  // namespace nrec
