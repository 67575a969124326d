// Products with bf16 operands against an independent rounding, at sizes that are not multiples of anything.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/aligned_vector.h"
#include "pair_kernel_parity.h"

namespace nrec {
namespace {

/// The nearest number with eight binary digits, ties to even; subnormal ones are zeros.
double nearest_bf16(float value) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(value), &exponent);
  if (std::fabs(value) < std::ldexp(1.0, -126)) return 0.0;
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}

class Bf16Products : public PairKernelParity {
 protected:
  /// A W + bias + add, and W + A^T D, from rounded operands; what lies between the rows of C stays.
  static std::vector<float> product(const std::vector<float>& a, std::size_t lda, std::size_t m,
                                    std::size_t k, const std::vector<float>& w, std::size_t n,
                                    std::vector<float> c, std::size_t ldc, const float* bias,
                                    const std::vector<float>* add) {
    for (std::size_t r = 0; r < m; ++r) {
      for (std::size_t j = 0; j < n; ++j) {
        double sum = bias ? bias[j] : 0.0;
        if (add) sum += (*add)[r * ldc + j];
        for (std::size_t i = 0; i < k; ++i) sum += nearest_bf16(a[r * lda + i]) * nearest_bf16(w[i * n + j]);
        c[r * ldc + j] = static_cast<float>(sum);
      }
    }
    return c;
  }
  static std::vector<float> transpose(const std::vector<float>& w, std::size_t rows, std::size_t columns,
                                      std::size_t stride) {
    std::vector<float> t(rows * columns);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) t[c * rows + r] = w[r * stride + c];
    }
    return t;
  }
};

TEST_P(Bf16Products, AreThoseOfRoundedOperands) {
  for (const std::size_t m : {1u, 16u, 17u, 32u, 47u, 48u, 129u, 150u}) {
    for (const auto& [k, n] :
         {std::pair<std::size_t, std::size_t>{8, 8}, {16, 40}, {56, 56}, {128, 24}, {128, 128}, {136, 136}}) {
      const std::size_t lda = k + 3, ldc = n + 16;
      const auto a = random_floats(m * lda, m), w = random_floats(k * n, k), bias = random_floats(n, n);
      const auto c = random_floats(m * ldc, 5), d = random_floats(m * ldc, 6);
      const auto dw = random_floats(k * n, 7), back = random_floats(n * k, 8);
      std::vector<float> packed(packed_floats(k, n)), packed_back(packed_floats(k, n));
      fast_->hidden.pack(w.data(), n, k, n, packed.data());
      fast_->hidden.pack_transposed(back.data(), k, n, k, packed_back.data());  // a [k, n] matrix, too
      for (const Addend which : kAddends) {
        for (const float* b : {static_cast<const float*>(nullptr), bias.data()}) {
          const std::vector<float>* add = which == Addend::none ? nullptr : which == Addend::itself ? &c : &d;
          auto actual = c;
          fast_->hidden.gemm(a.data(), lda, m, k, packed.data(), n, b, addend(which, actual, d),
                             actual.data(), ldc, nullptr);
          expect_close(actual, product(a, lda, m, k, w, n, c, ldc, b, add), 1e-6, "gemm");
        }
      }
      auto actual = c;
      fast_->hidden.gemm(a.data(), lda, m, k, packed_back.data(), n, nullptr, nullptr, actual.data(), ldc,
                         nullptr);
      expect_close(actual, product(a, lda, m, k, transpose(back, n, k, k), n, c, ldc, nullptr, nullptr), 1e-6,
                   "gemm of a transpose");
      auto gradient = dw;
      fast_->hidden.gemm_weights(a.data(), lda, d.data(), ldc, m, k, n, gradient.data(), n);
      std::vector<float> dense(m * n);
      for (std::size_t r = 0; r < m; ++r) std::copy_n(d.data() + r * ldc, n, dense.data() + r * n);
      expect_close(gradient, product(transpose(a, m, k, lda), m, k, m, dense, n, dw, n, nullptr, &dw), 2e-6,
                   "gemm_weights");
    }
  }
}

TEST_P(Bf16Products, PaddingColumnsAreNotComputed) {
  const std::size_t m = 45, k = 50, width = 56;
  for (const std::size_t n : {50u, 49u, 56u}) {
    auto w = random_floats(k * width, 1), bias = random_floats(width, 2), d = random_floats(m * width, 3);
    const auto clear = [&](std::vector<float>& rows) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i % width >= n) rows[i] = 0.0f;
      }
    };
    for (std::vector<float>* rows : {&w, &bias, &d}) clear(*rows);
    const auto a = random_floats(m * k, 4);
    std::vector<float> packed(packed_floats(k, n)), c(m * width, 7.0f), dw(k * width);
    fast_->hidden.pack(w.data(), width, k, n, packed.data());
    fast_->hidden.gemm(a.data(), k, m, k, packed.data(), n, bias.data(), d.data(), c.data(), width, nullptr);
    expect_close(c, product(a, k, m, k, w, width, c, width, bias.data(), &d), 1e-6, "gemm");
    fast_->hidden.gemm_weights(a.data(), k, d.data(), width, m, k, n, dw.data(), width);
    expect_close(dw, product(transpose(a, m, k, k), m, k, m, d, width, dw, width, nullptr, nullptr), 2e-6,
                 "gemm_weights");
    for (std::size_t i = 0; i < c.size(); ++i) ASSERT_TRUE(i % width < n || c[i] == 0.0f);
  }
}

/// What a RoundedLayer makes of max(0, z), z[m, width] of which the first `features` columns are real, in one operand of all rows.
AlignedVector<float> round_relu(const RoundedLayer& layer, const float* z, std::size_t m,
                                std::size_t features, std::size_t width) {
  AlignedVector<float> operand(operand_floats(m, width), 1e30f);
  const std::vector<float> ones(width, 1.0f), zeros(width);
  for (std::size_t first = 0; first < m; first += RoundedLayer::kBlockRows) {
    layer.round_affine_relu(z + first * width, std::min(RoundedLayer::kBlockRows, m - first), first, m,
                            features, width, ones.data(), zeros.data(), operand.data());
    layer.stay_awake();
  }
  return operand;
}

std::vector<float> rectified(std::vector<float> z) {
  for (float& value : z) value = std::max(0.0f, value);
  return z;
}

/// The way back of a layer with relu(z) in front of it, part by part; all rows are ldd and lde apart.
struct WayBack {
  const RoundedLayer& layer;
  std::size_t m, features, width;
  void operator()(const std::vector<float>& z, const std::vector<float>& d, std::size_t ldd,
                  const std::vector<float>& packed_back, std::vector<float>& dw, std::vector<float>& db,
                  std::vector<float>& e, std::size_t lde) const {
    AlignedVector<float> kept(operand_floats(m, width), 1e30f), right(operand_floats(m, width), 1e30f);
    for (std::size_t first = 0; first < m; first += RoundedLayer::kPartRows) {
      const std::size_t rows = std::min(RoundedLayer::kPartRows, m - first);
      const AlignedVector<float> operand = round_relu(layer, z.data() + first * width, rows, features, width);
      AlignedVector<float> left(operand_floats(rows, width), 1e30f);
      layer.keep(operand.data(), rows, first, m, features, width, kept.data(), nullptr);
      for (std::size_t r = 0; r < rows; r += RoundedLayer::kBlockRows)
        layer.round_gradient(d.data() + (first + r) * ldd, ldd, std::min(RoundedLayer::kBlockRows, rows - r),
                             first + r, m, width, first, left.data(), right.data(), db.data());
      layer.backward(left.data(), rows, features, width, packed_back.data(), e.data() + first * lde, lde,
                     nullptr);
    }
    layer.weights(kept.data(), right.data(), m, features, width, dw.data(), nullptr);
  }
};

TEST_P(Bf16Products, LayersRoundOnceWhatTheyUseTwice) {
  const RoundedLayer& layer = *fast_->rounded;
  for (const std::size_t m : {1u, 8u, 15u, 16u, 32u, 33u, 96u, 100u, 131u}) {
    for (const auto& [k, n] :
         {std::pair<std::size_t, std::size_t>{1, 8}, {8, 8}, {50, 56}, {65, 72}, {128, 128}}) {
      const std::size_t ldc = n + 16, lde = n + 8;
      // Padding features of A are not seen, all others are zeros.
      const auto z = random_floats(m * n, m), a = rectified(z);
      auto d = random_floats(m * ldc, 6), w = random_floats(n * n, k), bias = random_floats(n, n),
           add = random_floats(m * ldc, 5);
      for (std::size_t j = k; j < n; ++j) {
        bias[j] = 0.0f;
        for (std::size_t r = 0; r < m; ++r) d[r * ldc + j] = add[r * ldc + j] = 0.0f;
        for (std::size_t i = 0; i < n; ++i) w[i * n + j] = w[j * n + i] = 0.0f;
      }
      const auto dw = random_floats(k * n, 7), rest = random_floats(m * lde, 8), db = random_floats(n, 9);
      std::vector<float> packed(packed_floats(k, n)), packed_back(packed_floats(k, n));
      fast_->hidden.pack(w.data(), n, k, k, packed.data());
      fast_->hidden.pack_transposed(w.data(), n, k, k, packed_back.data());
      auto c = add, gradient = dw, e = rest, sums = db;
      layer.begin();
      layer.forward(round_relu(layer, z.data(), m, k, n).data(), m, k, packed.data(), n, bias.data(),
                    add.data(), c.data(), ldc, nullptr);
      WayBack{layer, m, k, n}(z, d, ldc, packed_back, gradient, sums, e, lde);
      layer.end();
      std::vector<float> dense(m * n);
      for (std::size_t r = 0; r < m; ++r) std::copy_n(d.data() + r * ldc, n, dense.data() + r * n);
      expect_close(c, product(a, n, m, k, w, n, add, ldc, bias.data(), &add), 1e-6, "forward");
      expect_close(gradient, product(transpose(a, m, k, n), m, k, m, dense, n, dw, n, nullptr, &dw), 2e-6,
                   "dW");
      expect_close(e, product(dense, n, m, n, transpose(w, n, n, n), n, rest, lde, nullptr, nullptr), 1e-6,
                   "E");
      auto expected = db;
      for (std::size_t r = 0; r < m; ++r) {
        for (std::size_t j = 0; j < n; ++j) expected[j] += dense[r * n + j];
      }
      expect_close(sums, expected, 1e-5, "db");
    }
  }
}

TEST_P(Bf16Products, MasksSayWhatWasRectified) {
  const RoundedLayer& layer = *fast_->rounded;
  for (const std::size_t m : {1u, 32u, 45u}) {
    for (const auto& [k, n] : {std::pair<std::size_t, std::size_t>{1, 8}, {50, 56}, {65, 72}, {128, 128}}) {
      auto z = random_floats(m * n, m);
      z[0] = 0x1p-126f;  // the least that is not a zero
      for (std::size_t r = 0; r < m; ++r) std::fill_n(z.begin() + static_cast<long>(r * n + k), n - k, 0.0f);
      const auto d = random_floats(m * n, 2), more = random_floats(m * n, 3);
      AlignedVector<float> kept(operand_floats(m, n));
      std::vector<std::uint32_t> mask(m * mask_words(n), 0xffffffffU);
      layer.begin();
      for (std::size_t first = 0; first < m; first += RoundedLayer::kPartRows) {
        const std::size_t rows = std::min(RoundedLayer::kPartRows, m - first);
        layer.keep(round_relu(layer, z.data() + first * n, rows, k, n).data(), rows, first, m, k, n,
                   kept.data(), mask.data() + first * mask_words(n));
      }
      auto masked = d, alone = d, dz = more;
      layer.relu_backward(mask.data(), m, n, masked.data(), dz.data());
      layer.relu_backward(mask.data(), m, n, alone.data(), nullptr);
      layer.end();
      for (std::size_t i = 0; i < m * n; ++i) {
        const float expected = z[i] > 0.0f ? d[i] : 0.0f;
        ASSERT_EQ(masked[i], expected) << "column " << i % n << " of " << n << ", row " << i / n;
        ASSERT_EQ(alone[i], expected);
        ASSERT_EQ(dz[i], more[i] + expected);
      }
    }
  }
}

TEST_P(Bf16Products, ActivationsAreThoseOfTheTableRounded) {
  const RoundedLayer& layer = *fast_->rounded;
  const float eps = 1e-5f;
  for (const std::size_t m : {1u, 7u, 8u, 44u}) {
    for (const auto& [k, n] : {std::pair<std::size_t, std::size_t>{1, 8}, {50, 56}, {65, 72}, {128, 128}}) {
      // Padding columns of z, scale and shift are zeros.
      auto z = random_floats(m * n, m), scale = random_floats(n, 2), shift = random_floats(n, 3);
      for (std::size_t r = 0; r < m; ++r) std::fill_n(z.begin() + static_cast<long>(r * n + k), n - k, 0.0f);
      std::fill_n(scale.begin() + static_cast<long>(k), n - k, 0.0f);
      std::fill_n(shift.begin() + static_cast<long>(k), n - k, 0.0f);
      for (const bool layer_norm : {true, false}) {
        if (!layer_norm) z[0] = std::nanf("");  // max(0, NaN) is 0
        std::vector<float> a(m * n), mean(m), rstd(m), expected_mean(m), expected_rstd(m), normalised(m * n);
        if (layer_norm) {
          fast_->layer_norm_moments(z.data(), m, n, k, eps, expected_mean.data(), expected_rstd.data());
          fast_->layer_norm_relu(z.data(), m, n, k, scale.data(), shift.data(), expected_mean.data(),
                                 expected_rstd.data(), a.data());
        } else {
          fast_->affine_relu(z.data(), m, n, scale.data(), shift.data(), a.data());
        }
        layer.begin();
        const AlignedVector<float> expected = round_relu(layer, a.data(), m, k, n);
        AlignedVector<float> operand(operand_floats(m, n), 1e30f);
        for (std::size_t first = 0; first < m; first += RoundedLayer::kBlockRows) {
          const std::size_t count = std::min(RoundedLayer::kBlockRows, m - first);
          if (layer_norm) {
            layer.round_layer_norm_relu(z.data() + first * n, count, first, m, k, n, eps, scale.data(),
                                        shift.data(), mean.data() + first, rstd.data() + first,
                                        m == 7 ? nullptr : normalised.data() + first * n, operand.data());
          } else {
            layer.round_affine_relu(z.data() + first * n, count, first, m, k, n, scale.data(), shift.data(),
                                    operand.data());
          }
        }
        layer.end();
        if (layer_norm) {
          EXPECT_EQ(mean, expected_mean);
          EXPECT_EQ(rstd, expected_rstd);
          for (std::size_t i = 0; m != 7 && i < m * n; ++i) {
            if (i % n >= k) continue;
            ASSERT_FLOAT_EQ(normalised[i], (z[i] - mean[i / n]) * rstd[i / n]) << i;
          }
        }
        EXPECT_EQ(std::memcmp(operand.data(), expected.data(), operand.size() * sizeof(float)), 0)
            << (layer_norm ? "layer norm, " : "affine, ") << m << " x " << k;
      }
    }
  }
}

TEST_P(Bf16Products, RowsHaveTheSameBitsInBlocksOfAnySize) {
  const RoundedLayer& layer = *fast_->rounded;
  const std::size_t m = 96, n = 64;
  const auto a = random_floats(m * n, 1), w = random_floats(n * n, 2), bias = random_floats(n, 3);
  const auto more = random_floats(m * n, 4);
  std::vector<float> packed(packed_floats(n, n));
  fast_->hidden.pack(w.data(), n, n, n, packed.data());
  const auto rows_from = [&](std::size_t first, std::size_t rows, const float* b, bool add, bool in_place) {
    std::vector<float> c(more.begin() + static_cast<std::ptrdiff_t>(first * n),
                         more.begin() + static_cast<std::ptrdiff_t>((first + rows) * n));
    const std::vector<float> addend = c;
    layer.begin();
    const AlignedVector<float> operand = round_relu(layer, a.data() + first * n, rows, n, n);
    layer.forward(operand.data(), rows, n, packed.data(), n, b,
                  !add       ? nullptr
                  : in_place ? c.data()
                             : addend.data(),
                  c.data(), n, nullptr);
    layer.end();
    return c;
  };
  for (const float* b : {static_cast<const float*>(nullptr), bias.data()}) {
    for (const bool add : {false, true}) {
      const std::vector<float> whole = rows_from(0, m, b, add, false);
      EXPECT_EQ(rows_from(0, m, b, add, true), whole);
      for (const auto& [first, rows] :
           {std::pair<std::size_t, std::size_t>{0, 1}, {16, 12}, {32, 31}, {40, 56}}) {
        const std::vector<float> part = rows_from(first, rows, b, add, false);
        for (std::size_t i = 0; i < part.size(); ++i)
          ASSERT_EQ(part[i], whole[first * n + i]) << "row " << first + i / n << " of " << rows;
      }
    }
  }
}

TEST_P(Bf16Products, LayersMayNestAndHoldOtherProducts) {
  const RoundedLayer& layer = *fast_->rounded;
  const std::size_t m = 5, n = 32;
  const auto a = rectified(random_floats(m * n, 1)), w = random_floats(n * n, 2);
  std::vector<float> packed(packed_floats(n, n)), c(m * n), expected(m * n);
  fast_->hidden.pack(w.data(), n, n, n, packed.data());
  fast_->hidden.gemm(a.data(), n, m, n, packed.data(), n, nullptr, nullptr, expected.data(), n, nullptr);
  layer.begin();
  layer.begin();
  layer.end();
  fast_->hidden.gemm(a.data(), n, m, n, packed.data(), n, nullptr, nullptr, c.data(), n, nullptr);
  EXPECT_EQ(c, expected);
  const AlignedVector<float> operand = round_relu(layer, a.data(), m, n, n);
  layer.forward(operand.data(), m, n, packed.data(), n, nullptr, nullptr, c.data(), n, nullptr);
  layer.end();
  EXPECT_EQ(c, expected);
}

TEST_P(Bf16Products, DeepProductsAreWhole) {
  const std::size_t m = 3, k = 2056, n = 8;  // more than any table rounds at once
  const auto a = random_floats(m * k, 1), w = random_floats(k * n, 2), c = random_floats(m * n, 3);
  std::vector<float> packed(packed_floats(k, n));
  fast_->hidden.pack(w.data(), n, k, n, packed.data());
  auto actual = c;
  fast_->hidden.gemm(a.data(), k, m, k, packed.data(), n, nullptr, c.data(), actual.data(), n, nullptr);
  expect_close(actual, product(a, k, m, k, w, n, c, n, nullptr, &c), 2e-6, "gemm");
}

TEST_P(Bf16Products, TiesGoToEvenSubnormalsToZeroAndNanStays) {
  const float tiny = 1e-39f, nan = std::nanf("");
  const std::vector<float> a = {
      1.0f + 0x1p-8f, 1.0f + 0x3p-8f, 1.0f + 0x1p-8f + 0x1p-20f, tiny, nan, 2.0f, 0, 0};
  std::vector<float> identity(64), packed(packed_floats(8, 8)), c(16);
  for (std::size_t i = 0; i < 8; ++i) identity[i * 9] = i == 3 ? 0x1p100f : 1.0f;
  fast_->hidden.pack(identity.data(), 8, 8, 8, packed.data());
  std::vector<float> without_nan = a;
  without_nan[4] = 0.0f;
  std::vector<float> rows = without_nan;
  rows.insert(rows.end(), a.begin(), a.end());
  fast_->hidden.gemm(rows.data(), 8, 2, 8, packed.data(), 8, nullptr, nullptr, c.data(), 8, nullptr);
  const std::vector<float> expected = {1.0f, 1.0f + 0x1p-6f, 1.0f + 0x1p-7f, 0.0f, 0.0f, 2.0f, 0.0f, 0.0f};
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(c[i], expected[i]) << i;
    EXPECT_TRUE(std::isnan(c[8 + i])) << i;  // 0 times NaN, as in any product
  }
}

INSTANTIATE_TEST_SUITE_P(AllInstructionSets, Bf16Products, ::testing::Values("amx", "avx2_bf16", "ref_bf16"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace nrec
