// The truth: scalar loops, sums in double.
#include <algorithm>
#include <cmath>

#include "kernels/packed_panels.h"
#include "kernels/pair_kernels_isa.h"

namespace nrec::ref {
namespace {

void pack(const float* w, std::size_t ldw, std::size_t k, std::size_t n, float* packed) {
  const PackedPanels panels(n);
  std::fill_n(packed, panels.floats(k), 0.0f);
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < n; ++j) packed[panels.at(k, i, j)] = w[i * ldw + j];
  }
}

void pack_transposed(const float* w, std::size_t ldw, std::size_t k, std::size_t n, float* packed) {
  const PackedPanels panels(k);
  std::fill_n(packed, panels.floats(n), 0.0f);
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < n; ++j) packed[panels.at(n, j, i)] = w[i * ldw + j];
  }
}

void gemm(const float* a, std::size_t lda, std::size_t m, std::size_t k, const float* packed, std::size_t n,
          const float* bias, const float* add, float* c, std::size_t ldc, const Ahead*) {
  const PackedPanels panels(n);
  for (std::size_t r = 0; r < m; ++r) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = (bias ? bias[j] : 0.0) + (add ? static_cast<double>(add[r * ldc + j]) : 0.0);
      for (std::size_t i = 0; i < k; ++i)
        sum += static_cast<double>(a[r * lda + i]) * packed[panels.at(k, i, j)];
      c[r * ldc + j] = static_cast<float>(sum);
    }
    std::fill(c + r * ldc + n, c + r * ldc + padded_features(n), 0.0f);
  }
}

void gemm_weights(const float* a, std::size_t lda, const float* d, std::size_t ldd, std::size_t m,
                  std::size_t k, std::size_t n, float* dw, std::size_t ldw) {
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = dw[i * ldw + j];
      for (std::size_t r = 0; r < m; ++r) sum += static_cast<double>(a[r * lda + i]) * d[r * ldd + j];
      dw[i * ldw + j] = static_cast<float>(sum);
    }
  }
}

void add_rows(const float* u, const std::uint32_t* index, const float* v, std::size_t rows, std::size_t width,
              float* out) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < width; ++c) out[r * width + c] = u[index[r] * width + c] + v[c];
  }
}

void affine_relu(const float* z, std::size_t rows, std::size_t width, const float* scale, const float* shift,
                 float* a) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < width; ++c) {
      const double y = static_cast<double>(scale[c]) * z[r * width + c] + shift[c];
      a[r * width + c] = static_cast<float>(y > 0 ? y : 0);
    }
  }
}

void affine_relu_backward(const float* z, std::size_t rows, std::size_t width, const float* scale,
                          const float* shift, float* d, float* dz) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < width; ++c) {
      const std::size_t i = r * width + c;
      if (!(static_cast<double>(scale[c]) * z[i] + shift[c] > 0)) d[i] = 0;
      if (dz) dz[i] += scale[c] * d[i];
    }
  }
}

void column_moments(const float* z, std::size_t rows, std::size_t width, const float* pivot, double* sum,
                    double* sum2) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < width; ++c) {
      const double x = static_cast<double>(z[r * width + c]) - pivot[c];
      sum[c] += x;
      sum2[c] += x * x;
    }
  }
}

void batch_norm_sums(const float* z, std::size_t rows, std::size_t width, const float* scale,
                     const float* shift, const float* mean, const float* d, float* out, double* s1,
                     double* s2) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < width; ++c) {
      const std::size_t i = r * width + c;
      out[i] = static_cast<double>(scale[c]) * z[i] + shift[c] > 0 ? d[i] : 0.0f;
      s1[c] += out[i];
      s2[c] += static_cast<double>(out[i]) * (static_cast<double>(z[i]) - mean[c]);
    }
  }
}

void batch_norm_backward(const float* z, const float* d, std::size_t rows, std::size_t width, const float* c0,
                         const float* c1, const float* c2, const float* mean, bool accumulate, float* dz) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < width; ++c) {
      const std::size_t i = r * width + c;
      const double value =
          static_cast<double>(c0[c]) * d[i] + c1[c] + c2[c] * (static_cast<double>(z[i]) - mean[c]);
      dz[i] = static_cast<float>(accumulate ? dz[i] + value : value);
    }
  }
}

void layer_norm_moments(const float* z, std::size_t rows, std::size_t width, std::size_t features, float eps,
                        float* mean, float* rstd) {
  for (std::size_t r = 0; r < rows; ++r, z += width) {
    double sum = 0;
    for (std::size_t c = 0; c < features; ++c) sum += z[c];
    const double centre = sum / static_cast<double>(features);
    double sum2 = 0;
    for (std::size_t c = 0; c < features; ++c) sum2 += (z[c] - centre) * (z[c] - centre);
    mean[r] = static_cast<float>(centre);
    rstd[r] = static_cast<float>(1.0 / std::sqrt(sum2 / static_cast<double>(features) + eps));
  }
}

void layer_norm_relu(const float* z, std::size_t rows, std::size_t width, std::size_t features,
                     const float* gain, const float* shift, const float* mean, const float* rstd, float* a) {
  for (std::size_t r = 0; r < rows; ++r) {
    const double centre = mean[r];
    const double inverse = rstd[r];
    for (std::size_t c = 0; c < width; ++c) {
      const double y = c < features ? gain[c] * (z[r * width + c] - centre) * inverse + shift[c] : 0.0;
      a[r * width + c] = static_cast<float>(y > 0 ? y : 0);
    }
  }
}

void layer_norm_relu_backward(const float* z, std::size_t rows, std::size_t width, std::size_t features,
                              const float* gain, const float* shift, const float* mean, const float* rstd,
                              float* d, bool accumulate, float* dz, float* dgain, float* dshift) {
  for (std::size_t r = 0; r < rows; ++r) {
    const double inverse = rstd[r];
    const auto normalised = [&](float value) {
      return mean ? (value - static_cast<double>(mean[r])) * inverse : value;
    };
    double sum_d = 0;
    double sum_dx = 0;
    for (std::size_t c = 0; c < features; ++c) {
      const std::size_t i = r * width + c;
      const double xhat = normalised(z[i]);
      if (!(gain[c] * xhat + shift[c] > 0)) d[i] = 0;
      dgain[c] += static_cast<float>(d[i] * xhat);
      dshift[c] += d[i];
      sum_d += static_cast<double>(gain[c]) * d[i];
      sum_dx += static_cast<double>(gain[c]) * d[i] * xhat;
    }
    const double n = static_cast<double>(features);
    for (std::size_t c = 0; c < width; ++c) {
      const std::size_t i = r * width + c;
      const double xhat = normalised(z[i]);
      const double value =
          c < features ? inverse * (static_cast<double>(gain[c]) * d[i] - sum_d / n - xhat * sum_dx / n)
                       : 0.0;
      dz[i] = static_cast<float>(accumulate ? dz[i] + value : value);
    }
  }
}

void row_dots(const float* z, std::size_t rows, std::size_t width, const float* w, float bias, float* out) {
  for (std::size_t r = 0; r < rows; ++r) {
    double sum = bias;
    for (std::size_t c = 0; c < width; ++c) sum += static_cast<double>(z[r * width + c]) * w[c];
    out[r] = static_cast<float>(sum);
  }
}

void row_dots_backward(const float* z, const float* d, std::size_t rows, std::size_t width, const float* w,
                       float* dz, float* dw) {
  for (std::size_t c = 0; c < width; ++c) {
    double sum = dw[c];
    for (std::size_t r = 0; r < rows; ++r) {
      sum += static_cast<double>(d[r]) * z[r * width + c];
      dz[r * width + c] = d[r] * w[c];
    }
    dw[c] = static_cast<float>(sum);
  }
}

void column_sums(const float* d, std::size_t rows, std::size_t width, float* out) {
  for (std::size_t c = 0; c < width; ++c) {
    double sum = out[c];
    for (std::size_t r = 0; r < rows; ++r) sum += d[r * width + c];
    out[c] = static_cast<float>(sum);
  }
}

void adam(float* w, const float* grad, float* m, float* v, std::size_t n, float grad_scale, float beta1,
          float beta2, float rate, float correction2, float eps) {
  for (std::size_t i = 0; i < n; ++i) {
    const double g = static_cast<double>(grad_scale) * grad[i];
    m[i] = static_cast<float>(beta1 * m[i] + (1.0 - beta1) * g);
    v[i] = static_cast<float>(beta2 * v[i] + (1.0 - beta2) * g * g);
    w[i] =
        static_cast<float>(w[i] - rate * m[i] / (std::sqrt(static_cast<double>(v[i])) * correction2 + eps));
  }
}

}  // namespace

const PairKernels& pair_kernels_table() {
  constexpr MatrixProducts products = {pack, pack_transposed, gemm, gemm_weights};
  static const PairKernels table = {"ref",
                                    products,
                                    products,
                                    nullptr,
                                    add_rows,
                                    affine_relu,
                                    affine_relu_backward,
                                    column_moments,
                                    batch_norm_sums,
                                    batch_norm_backward,
                                    layer_norm_moments,
                                    layer_norm_relu,
                                    layer_norm_relu_backward,
                                    row_dots,
                                    row_dots_backward,
                                    column_sums,
                                    adam};
  return table;
}

}  // namespace nrec::ref
