// Every instruction set present against `ref`, at sizes that are not multiples of anything.
#include "nrec/kernels/pair_kernels.h"

#include <gtest/gtest.h>

#include "pair_kernel_parity.h"

namespace nrec {
namespace {

/// Real columns of rows with zeros behind them, up to whole blocks.
std::vector<float> padded_rows(std::size_t rows, std::size_t columns, std::size_t stride, unsigned seed) {
  auto values = random_floats(rows * stride, seed);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = columns; c < padded_features(columns); ++c) values[r * stride + c] = 0.0f;
  }
  return values;
}

constexpr std::size_t kColumns[] = {1,  2,  3,  4,  5,  7,  8,  9,  15, 16, 17,
                                    18, 24, 33, 40, 50, 56, 57, 64, 85, 112};

TEST_P(PairKernelParity, PackingIsTheSameToTheBit) {
  for (const std::size_t k : {1u, 5u, 16u, 23u, 48u}) {
    for (const std::size_t n : kColumns) {
      const std::size_t ldw = padded_features(n) + 8;
      const auto w = padded_rows(k, n, ldw, static_cast<unsigned>(k));
      std::vector<float> a(packed_floats(k, n)), b(packed_floats(k, n));
      ref_.inputs.pack(w.data(), ldw, k, n, a.data());
      fast_->inputs.pack(w.data(), ldw, k, n, b.data());
      EXPECT_EQ(a, b);
      std::vector<float> back(n * k), of_back(packed_floats(n, k));
      for (std::size_t i = 0; i < k; ++i) {
        for (std::size_t j = 0; j < n; ++j) back[j * k + i] = w[i * ldw + j];
      }
      ref_.inputs.pack(back.data(), k, n, k, of_back.data());
      for (const PairKernels* kernels : {&ref_, fast_}) {
        std::vector<float> transposed(packed_floats(n, k));
        kernels->inputs.pack_transposed(w.data(), ldw, k, n, transposed.data());
        EXPECT_EQ(transposed, of_back);
      }
    }
  }
}

TEST_P(PairKernelParity, MatrixProducts) {
  for (const std::size_t m : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 23u, 47u, 48u, 49u, 107u, 131u}) {
    for (const std::size_t k : {1u, 7u, 16u, 23u, 50u, 64u}) {
      for (const std::size_t n : kColumns) {
        const std::size_t lda = k + 3, ldc = padded_features(n) + 16, ldw = padded_features(n) + 8;
        const auto a = random_floats(m * lda, m);
        const auto w = padded_rows(k, n, ldw, static_cast<unsigned>(k));
        const auto bias = padded_rows(1, n, padded_features(n), static_cast<unsigned>(n));
        const auto zeros_behind = padded_rows(m, n, ldc, 5), anything = random_floats(m * ldc, 5);
        std::vector<float> packed(packed_floats(k, n));
        ref_.inputs.pack(w.data(), ldw, k, n, packed.data());
        const auto other = padded_rows(m, n, ldc, 9);
        for (const Addend which : kAddends) {
          for (const float* b : {static_cast<const float*>(nullptr), bias.data()}) {
            auto c_ref = which == Addend::itself ? zeros_behind : anything, c_fast = c_ref;
            ref_.inputs.gemm(a.data(), lda, m, k, packed.data(), n, b, addend(which, c_ref, other),
                             c_ref.data(), ldc, nullptr);
            fast_->inputs.gemm(a.data(), lda, m, k, packed.data(), n, b, addend(which, c_fast, other),
                               c_fast.data(), ldc, nullptr);
            expect_close(c_fast, c_ref, 1e-6, "gemm");
          }
        }
        const auto d = padded_rows(m, n, ldc, 6);
        auto dw_ref = padded_rows(k, n, ldw, 7);
        auto dw_fast = dw_ref;
        ref_.inputs.gemm_weights(a.data(), lda, d.data(), ldc, m, k, n, dw_ref.data(), ldw);
        fast_->inputs.gemm_weights(a.data(), lda, d.data(), ldc, m, k, n, dw_fast.data(), ldw);
        expect_close(dw_fast, dw_ref, 2e-6, "gemm_weights");
      }
    }
  }
}

TEST(PairKernels, TheReferenceMultipliesAsWritten) {
  const PairKernels& ref = pair_kernels("ref");
  for (const std::size_t n : {3u, 16u, 18u, 25u}) {
    const std::size_t m = 3, k = 5, width = padded_features(n);
    const auto a = random_floats(m * k, 1), w = padded_rows(k, n, width, 2), bias = random_floats(n, 3);
    std::vector<float> packed(packed_floats(k, n)), c(m * width, 7.0f);
    ref.inputs.pack(w.data(), width, k, n, packed.data());
    ref.inputs.gemm(a.data(), k, m, k, packed.data(), n, bias.data(), nullptr, c.data(), width, nullptr);
    for (std::size_t r = 0; r < m; ++r) {
      for (std::size_t j = 0; j < width; ++j) {
        double sum = j < n ? bias[j] : 0.0;
        for (std::size_t i = 0; i < k; ++i) sum += static_cast<double>(a[r * k + i]) * w[i * width + j];
        EXPECT_FLOAT_EQ(c[r * width + j], static_cast<float>(sum)) << r << ", " << j << " of " << n;
      }
    }
  }
}

/// NaN behind the rows of a matrix must not reach a product: only numbers of A and D that are there are read, or nothing comes of them.
TEST_P(PairKernelParity, WhatLiesBehindRowsIsNotUsed) {
  for (const std::size_t k : {1u, 3u, 11u, 50u}) {
    for (const std::size_t n : kColumns) {
      const std::size_t m = 9, lda = k + 16, width = padded_features(n), ldd = width + 16;
      auto a = random_floats(m * lda, 1), d = padded_rows(m, n, ldd, 2);
      for (std::size_t r = 0; r < m; ++r) {
        std::fill_n(a.begin() + static_cast<std::ptrdiff_t>(r * lda + k), 16, std::nanf(""));
        std::fill_n(d.begin() + static_cast<std::ptrdiff_t>(r * ldd + width), 16, std::nanf(""));
      }
      const auto w = padded_rows(k, n, width, 3);
      std::vector<float> packed(packed_floats(k, n)), c(m * width), dw(k * width);
      fast_->inputs.pack(w.data(), width, k, n, packed.data());
      fast_->inputs.gemm(a.data(), lda, m, k, packed.data(), n, nullptr, nullptr, c.data(), width, nullptr);
      fast_->inputs.gemm_weights(a.data(), lda, d.data(), ldd, m, k, n, dw.data(), width);
      for (const float value : c) ASSERT_TRUE(std::isfinite(value)) << k << " x " << n;
      for (const float value : dw) ASSERT_TRUE(std::isfinite(value)) << k << " x " << n;
    }
  }
}

struct Outputs {
  std::vector<std::vector<float>> floats;
  std::vector<std::vector<double>> doubles;
};

/// What every kernel that goes through rows of features leaves behind.
Outputs row_steps(const PairKernels& kernels, std::size_t rows, std::size_t width) {
  const auto z = random_floats(rows * width, rows), d = random_floats(rows * width, 4),
             extra = random_floats(rows * width, 8);
  const auto scale = random_floats(width, 1), shift = random_floats(width, 2), mean = random_floats(width, 3);
  const auto per_row = random_floats(rows, 9);
  Outputs outputs;
  auto& [floats, doubles] = outputs;
  std::vector<float> out(rows * width), dd = d, dz = extra, dw(width, 0.5f), dots(rows);
  std::vector<double> s1(width, 1.0), s2(width, 2.0);
  std::vector<std::uint32_t> index(rows);
  for (std::size_t r = 0; r < rows; ++r) index[r] = static_cast<std::uint32_t>((r * 7) % rows);
  kernels.add_rows(z.data(), index.data(), shift.data(), rows, width, out.data());
  floats.push_back(out);
  kernels.affine_relu(z.data(), rows, width, scale.data(), shift.data(), out.data());
  floats.push_back(out);
  kernels.affine_relu_backward(z.data(), rows, width, scale.data(), shift.data(), dd.data(), dz.data());
  floats.push_back(dd);
  floats.push_back(dz);
  dd = d;
  kernels.affine_relu_backward(z.data(), rows, width, scale.data(), shift.data(), dd.data(), nullptr);
  floats.push_back(dd);
  kernels.column_moments(z.data(), rows, width, mean.data(), s1.data(), s2.data());
  doubles.push_back(s1);
  doubles.push_back(s2);
  dd = d;
  kernels.batch_norm_sums(z.data(), rows, width, scale.data(), shift.data(), mean.data(), d.data(), dd.data(),
                          s1.data(), s2.data());
  floats.push_back(dd);
  dd = d;
  kernels.batch_norm_sums(z.data(), rows, width, scale.data(), shift.data(), mean.data(), dd.data(),
                          dd.data(), s1.data(), s2.data());
  floats.push_back(dd);
  doubles.push_back(s1);
  doubles.push_back(s2);
  for (const bool accumulate : {false, true}) {
    kernels.batch_norm_backward(z.data(), dd.data(), rows, width, scale.data(), shift.data(), mean.data(),
                                mean.data(), accumulate, dz.data());
    floats.push_back(dz);
  }
  dz = dd;
  kernels.batch_norm_backward(z.data(), dz.data(), rows, width, scale.data(), shift.data(), mean.data(),
                              mean.data(), false, dz.data());
  floats.push_back(dz);
  kernels.row_dots(z.data(), rows, width, scale.data(), 0.25f, dots.data());
  floats.push_back(dots);
  kernels.row_dots_backward(z.data(), per_row.data(), rows, width, scale.data(), out.data(), dw.data());
  floats.push_back(out);
  floats.push_back(dw);
  out = z;  // dz in the place of z
  kernels.row_dots_backward(out.data(), per_row.data(), rows, width, scale.data(), out.data(), dw.data());
  floats.push_back(out);
  floats.push_back(dw);
  kernels.column_sums(z.data(), rows, width, dw.data());
  floats.push_back(dw);
  return outputs;
}

using RowShapes = std::vector<std::pair<std::size_t, std::size_t>>;
const RowShapes kRowShapes = {{1, 32},   {3, 32}, {64, 32}, {65, 32},
                              {130, 32}, {9, 8},  {70, 56}};  // rows, width

TEST_P(PairKernelParity, WhatIsFetchedAheadChangesNothing) {
  for (const std::size_t m : {1u, 6u, 20u, 96u}) {
    const std::size_t n = 56;
    const auto a = random_floats(m * n, m), w = random_floats(n * n, 1),
               later = random_floats(3 * m * n + 5, 2);
    std::vector<float> packed(packed_floats(n, n)), with(m * n), without(m * n);
    fast_->inputs.pack(w.data(), n, n, n, packed.data());
    Ahead ahead;
    ahead.start[0] = later.data();
    ahead.start[1] = later.data() + m * n;
    ahead.count = 2;
    ahead.floats = m * n;
    fast_->inputs.gemm(a.data(), n, m, n, packed.data(), n, nullptr, nullptr, with.data(), n, &ahead);
    fast_->inputs.gemm(a.data(), n, m, n, packed.data(), n, nullptr, nullptr, without.data(), n, nullptr);
    EXPECT_EQ(with, without);
  }
}

TEST_P(PairKernelParity, RowwiseAndColumnwiseSteps) {
  for (const auto& [rows, width] : kRowShapes) {
    const Outputs ref = row_steps(ref_, rows, width), fast = row_steps(*fast_, rows, width);
    for (std::size_t i = 0; i < ref.floats.size(); ++i)
      expect_close(fast.floats[i], ref.floats[i], 2e-6, ("float output " + std::to_string(i)).c_str());
    for (std::size_t i = 0; i < ref.doubles.size(); ++i)
      expect_close(fast.doubles[i], ref.doubles[i], 2e-6, ("double output " + std::to_string(i)).c_str());
  }
}

/// Layer norm and its way back for rows whose first `features` columns are real.
std::vector<std::vector<float>> layer_norm_steps(const PairKernels& kernels, std::size_t features,
                                                 std::size_t width) {
  const std::size_t rows = 13;
  const auto z = random_floats(rows * width, features), gain = random_floats(width, 1),
             shift = random_floats(width, 2), d = random_floats(rows * width, 3);
  std::vector<float> mean(rows), rstd(rows), a(rows * width), dd = d, dz(rows * width, 1.0f), dgain(width),
                                                              dshift(width);
  kernels.layer_norm_moments(z.data(), rows, width, features, 1e-5f, mean.data(), rstd.data());
  kernels.layer_norm_relu(z.data(), rows, width, features, gain.data(), shift.data(), mean.data(),
                          rstd.data(), a.data());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = features; c < width; ++c) EXPECT_EQ(a[r * width + c], 0.0f);
  }
  if (features > 1) {
    kernels.layer_norm_relu_backward(z.data(), rows, width, features, gain.data(), shift.data(), mean.data(),
                                     rstd.data(), dd.data(), true, dz.data(), dgain.data(), dshift.data());
  }
  auto in_place = d, of_normalised = d;
  if (features > 1) {
    kernels.layer_norm_relu_backward(z.data(), rows, width, features, gain.data(), shift.data(), mean.data(),
                                     rstd.data(), in_place.data(), false, in_place.data(), dgain.data(),
                                     dshift.data());
    // The same of normalised rows, with anything in padding columns.
    std::vector<float> normalised(rows * width),
        sums[2] = {std::vector<float>(width), std::vector<float>(width)};
    for (std::size_t i = 0; i < normalised.size(); ++i)
      normalised[i] = i % width < features ? (z[i] - mean[i / width]) * rstd[i / width] : std::nanf("");
    kernels.layer_norm_relu_backward(normalised.data(), rows, width, features, gain.data(), shift.data(),
                                     nullptr, rstd.data(), of_normalised.data(), false, of_normalised.data(),
                                     sums[0].data(), sums[1].data());
    expect_close(of_normalised, in_place, 1e-5, "dz of normalised rows");
    for (std::size_t c = 0; c < width; ++c) {
      EXPECT_NEAR(2 * sums[0][c], dgain[c], 1e-5 * (1 + std::fabs(dgain[c]))) << c;
      EXPECT_NEAR(2 * sums[1][c], dshift[c], 1e-5 * (1 + std::fabs(dshift[c]))) << c;
    }
  }
  return {mean, rstd, a, dz, dgain, dshift, in_place, of_normalised};
}

const RowShapes kLayerShapes = {{1, 64},  {7, 8},   {8, 8},   {50, 56}, {50, 64},
                                {56, 56}, {64, 64}, {20, 72}, {72, 72}};  // features, width

TEST_P(PairKernelParity, LayerNormWithPaddingColumns) {
  for (const auto& [features, width] : kLayerShapes) {
    const auto ref = layer_norm_steps(ref_, features, width),
               fast = layer_norm_steps(*fast_, features, width);
    for (std::size_t i = 0; i < ref.size(); ++i) expect_close(fast[i], ref[i], 5e-6, "layer norm");
  }
}

TEST(PairKernels, WiderVectorsGiveTheSameBits) {
  if (const IsaStatus status = isa_status("avx512"); !status.available)
    GTEST_SKIP() << status.name << ": " << status.reason;
  const PairKernels& narrow = pair_kernels("avx2");
  const PairKernels& wide = pair_kernels("avx512");
  for (const std::size_t m : {1u, 7u, 48u, 53u, 107u, 300u}) {
    for (const std::size_t k : {1u, 5u, 23u, 50u, 64u}) {
      for (const std::size_t n : kColumns) {
        const std::size_t width = padded_features(n);
        const auto a = random_floats(m * k, m), w = padded_rows(k, n, width, static_cast<unsigned>(k)),
                   bias = padded_rows(1, n, width, static_cast<unsigned>(n));
        const auto d = padded_rows(m, n, width, 6);
        std::vector<float> packed(packed_floats(k, n));
        std::vector<float> dw[2] = {padded_rows(k, n, width, 7), padded_rows(k, n, width, 7)};
        narrow.inputs.pack(w.data(), width, k, n, packed.data());
        std::vector<float> c[2], added[2] = {padded_rows(m, n, width, 5), padded_rows(m, n, width, 5)};
        for (const int i : {0, 1}) {
          const PairKernels& kernels = i ? wide : narrow;
          c[i] = random_floats(m * width, 8);
          kernels.inputs.gemm(a.data(), k, m, k, packed.data(), n, bias.data(), nullptr, c[i].data(), width,
                              nullptr);
          kernels.inputs.gemm(a.data(), k, m, k, packed.data(), n, bias.data(), added[i].data(),
                              added[i].data(), width, nullptr);
          kernels.inputs.gemm_weights(a.data(), k, d.data(), width, m, k, n, dw[i].data(), width);
        }
        EXPECT_EQ(c[0], c[1]) << m << ", " << k << ", " << n;
        EXPECT_EQ(added[0], added[1]) << m << ", " << k << ", " << n;
        EXPECT_EQ(dw[0], dw[1]) << m << ", " << k << ", " << n;
      }
    }
  }
  for (const auto& [rows, width] : kRowShapes) {
    const Outputs a = row_steps(narrow, rows, width), b = row_steps(wide, rows, width);
    EXPECT_EQ(a.floats, b.floats) << rows << " x " << width;
    EXPECT_EQ(a.doubles, b.doubles) << rows << " x " << width;
  }
  for (const auto& [features, width] : kLayerShapes)
    EXPECT_EQ(layer_norm_steps(narrow, features, width), layer_norm_steps(wide, features, width))
        << features << " of " << width;
}

TEST_P(PairKernelParity, AdamFollowsTheReference) {
  const std::size_t n = 37;
  auto w_ref = random_floats(n, 1), m_ref = random_floats(n, 2), v_ref = random_floats(n, 3);
  for (float& v : v_ref) v = std::fabs(v);
  auto w = w_ref, m = m_ref, v = v_ref;
  const auto grad = random_floats(n, 4);
  ref_.adam(w_ref.data(), grad.data(), m_ref.data(), v_ref.data(), n, 0.5f, 0.9f, 0.999f, 0.01f, 1.5f, 1e-8f);
  fast_->adam(w.data(), grad.data(), m.data(), v.data(), n, 0.5f, 0.9f, 0.999f, 0.01f, 1.5f, 1e-8f);
  expect_close(w, w_ref, 1e-6, "w");
  expect_close(m, m_ref, 1e-6, "m");
  expect_close(v, v_ref, 1e-6, "v");
}

TEST(RefAdam, FirstStepMovesByTheLearningRate) {
  // Closed form: after one step m/(1-b1) / (sqrt(v/(1-b2)) + eps) = sign(g), so w moves by -rate.
  float w = 1.0f, m = 0.0f, v = 0.0f;
  const float grad = 3.0f;
  const float rate = 0.01f;
  pair_kernels("ref").adam(&w, &grad, &m, &v, 1, 1.0f, 0.9f, 0.999f, rate / 0.1f, 1.0f / std::sqrt(0.001f),
                           1e-8f);
  EXPECT_NEAR(w, 1.0f - rate, 1e-6);
}

TEST_P(PairKernelParity, HiddenLayersOfFloatTablesAreNotRounded) {
  EXPECT_EQ(fast_->hidden.pack, fast_->inputs.pack);
  EXPECT_EQ(fast_->hidden.pack_transposed, fast_->inputs.pack_transposed);
  EXPECT_EQ(fast_->hidden.gemm, fast_->inputs.gemm);
  EXPECT_EQ(fast_->hidden.gemm_weights, fast_->inputs.gemm_weights);
}

INSTANTIATE_TEST_SUITE_P(AllInstructionSets, PairKernelParity, ::testing::Values("avx512", "avx2", "ref"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace nrec
