// Each vector operation against `ref` at odd sizes, within the proven bound of a sum of n float32 products:
// |error| <= n u sum |terms|, u = 2^-24 (n + 4 here, for the roundings after the sum).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <tuple>
#include <vector>

#include "kernels/small_mlp/small_mlp_dispatch.h"
#include "nrec/core/random.h"

namespace nrec::small_mlp {
namespace {

struct Free {
  void operator()(void* data) const { std::free(data); }
};

// Aligned [rows, ld] floats; columns at and beyond `used` are zero.
class Aligned {
 public:
  Aligned(std::size_t rows, std::size_t ld) : size_(rows * ld), data_(make(size_)) {}
  Aligned(std::size_t rows, std::size_t ld, std::size_t used, double low, std::uint64_t key)
      : Aligned(rows, ld) {
    RandomStream random(11, Stream::check, key);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < used; ++j)
        (*this)[i * ld + j] = static_cast<float>(std::max(0.0, random.uniform() - 0.5 - low) + low);
    }
  }
  float& operator[](std::size_t i) { return data_.get()[i]; }
  float* get() { return data_.get(); }
  Aligned magnitude() const {
    Aligned copy(1, size_);
    for (std::size_t i = 0; i < size_; ++i) copy[i] = std::abs(data_.get()[i]);
    return copy;
  }
  std::size_t size() const { return size_; }

 private:
  static float* make(std::size_t count) {
    const std::size_t bytes = (count * sizeof(float) + 63) / 64 * 64;
    auto* data = static_cast<float*>(std::aligned_alloc(64, bytes));
    std::fill_n(data, bytes / sizeof(float), 0.0f);
    return data;
  }
  std::size_t size_;
  std::unique_ptr<float, Free> data_;
};

constexpr double kAnySign = -0.5;   // uniform in (-0.5, 0.5)
constexpr double kRectified = 0.0;  // half of the values are 0

void expect_within(Aligned& got, Aligned& want, Aligned& magnitude, std::size_t terms, const char* what) {
  const double unit = std::ldexp(1.0, -24);
  double largest = 0.0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double bound = static_cast<double>(terms + 4) * unit * std::abs(static_cast<double>(magnitude[i]));
    ASSERT_NEAR(got[i], want[i], bound + 1e-37) << what << " element " << i << " terms " << terms;
    largest = std::max(largest, std::abs(static_cast<double>(want[i])));
  }
  if (want.size() > 64) {
    EXPECT_GT(largest, 0.0) << what;
  }
}

struct Size {
  std::size_t rows, inner, hidden;
};

class SmallMlpParity : public testing::TestWithParam<std::tuple<SmallMlpTarget, Size>> {
 protected:
  void SetUp() override {
    const SmallMlpTarget target = std::get<0>(GetParam());
    if (!small_mlp_target_present(target)) GTEST_SKIP() << "this processor has no such instructions";
    fast = kernels_of(target);
    ASSERT_STREQ(fast.name, target == SmallMlpTarget::avx2 ? "avx2" : "avx512");
    cols = (hidden + fast.lanes - 1) / fast.lanes * fast.lanes;
    ld = cols / fast.lanes % 2 == 1 ? cols : cols + fast.lanes;
  }
  const Kernels& ref = kernels_of(SmallMlpTarget::ref);
  Kernels fast = ref;
  const Size size = std::get<1>(GetParam());
  std::size_t rows = size.rows, inner = size.inner, hidden = size.hidden, cols = 0, ld = 0;
};

TEST_P(SmallMlpParity, ForwardAndFirstWeightGradient) {
  Aligned src(rows, inner, inner, kAnySign, 1), weights(inner, ld, hidden, kAnySign, 2),
      bias(1, ld, hidden, kAnySign, 3);
  Aligned src_abs = src.magnitude(), weights_abs = weights.magnitude(), bias_abs = bias.magnitude();
  Aligned got(rows, ld), want(rows, ld), scale(rows, ld);
  fast.forward_hidden({rows, inner, cols, ld, src.get(), inner, weights.get(), bias.get(), got.get()});
  ref.forward_hidden({rows, inner, cols, ld, src.get(), inner, weights.get(), bias.get(), want.get()});
  ref.forward_hidden(
      {rows, inner, cols, ld, src_abs.get(), inner, weights_abs.get(), bias_abs.get(), scale.get()});
  expect_within(got, want, scale, inner + 1, "forward_hidden");

  Aligned diff(rows, ld, hidden, kAnySign, 4), diff_abs = diff.magnitude();
  Aligned g_got(inner, ld), g_want(inner, ld), g_scale(inner, ld);
  fast.weight_gradient({rows, inner, cols, ld, src.get(), inner, diff.get(), g_got.get()});
  ref.weight_gradient({rows, inner, cols, ld, src.get(), inner, diff.get(), g_want.get()});
  ref.weight_gradient({rows, inner, cols, ld, src_abs.get(), inner, diff_abs.get(), g_scale.get()});
  expect_within(g_got, g_want, g_scale, rows, "weight_gradient");

  Aligned s_got(1, ld), s_want(1, ld), s_scale(1, ld);
  fast.column_sums({rows, cols, ld, diff.get(), s_got.get()});
  ref.column_sums({rows, cols, ld, diff.get(), s_want.get()});
  ref.column_sums({rows, cols, ld, diff_abs.get(), s_scale.get()});
  expect_within(s_got, s_want, s_scale, rows, "column_sums");
}

TEST_P(SmallMlpParity, OutputLayerAndMaskedProducts) {
  Aligned dst(rows, ld, hidden, kRectified, 5), src(rows, ld, hidden, kRectified, 6),
      w3(1, ld, hidden, kAnySign, 7);
  Aligned diff_logits(1, rows, rows, kAnySign, 8), weights_t(cols, ld, hidden, kAnySign, 9);
  Aligned w3_abs = w3.magnitude(), diff_abs = diff_logits.magnitude(), weights_abs = weights_t.magnitude();
  std::vector<std::uint8_t> by_row(rows * cols / 8);
  const std::unique_ptr<std::int32_t, Free> by_column(static_cast<std::int32_t*>(
      std::aligned_alloc(64, ((rows + 3) / 4 * ld * sizeof(std::int32_t) + 63) / 64 * 64)));
  Aligned table(1, kTableFloats);
  const ActiveBits bits{by_row.data(), by_column.get()};

  Aligned z_got(1, rows), z_want(1, rows), z_scale(1, rows);
  fast.forward_logits({rows, cols, ld, dst.get(), w3.get(), 0.25f, z_got.get()});
  ref.forward_logits({rows, cols, ld, dst.get(), w3.get(), 0.25f, z_want.get()});
  ref.forward_logits({rows, cols, ld, dst.get(), w3_abs.get(), 0.25f, z_scale.get()});
  expect_within(z_got, z_want, z_scale, hidden + 1, "forward_logits");

  Aligned w_got(1, ld), w_want(1, ld), w_scale(1, ld), b_got(1, ld), b_want(1, ld), b_scale(1, ld);
  fast.backward_logits(
      {rows, cols, ld, dst.get(), w3.get(), diff_logits.get(), w_got.get(), b_got.get(), bits});
  ref.backward_logits(
      {rows, cols, ld, dst.get(), w3.get(), diff_logits.get(), w_want.get(), b_want.get(), bits});
  ref.backward_logits(
      {rows, cols, ld, dst.get(), w3_abs.get(), diff_abs.get(), w_scale.get(), b_scale.get(), bits});
  expect_within(w_got, w_want, w_scale, rows, "backward_logits weights");
  expect_within(b_got, b_want, b_scale, rows, "backward_logits bias");

  Aligned d_got(rows, ld), d_want(rows, ld), d_scale(rows, ld);
  fast.backward_hidden({rows, cols, ld, dst.get(), w3.get(), diff_logits.get(), bits, weights_t.get(),
                        src.get(), d_got.get(), table.get()});
  ref.backward_hidden({rows, cols, ld, dst.get(), w3.get(), diff_logits.get(), bits, weights_t.get(),
                       src.get(), d_want.get(), table.get()});
  ref.backward_hidden({rows, cols, ld, dst.get(), w3_abs.get(), diff_abs.get(), bits, weights_abs.get(),
                       src.get(), d_scale.get(), table.get()});
  expect_within(d_got, d_want, d_scale, hidden, "backward_hidden");

  Aligned g_got(cols, ld), g_want(cols, ld), g_scale(cols, ld);
  fast.hidden_weight_gradient(
      {rows, cols, ld, dst.get(), w3.get(), diff_logits.get(), bits, src.get(), g_got.get(), table.get()});
  ref.hidden_weight_gradient(
      {rows, cols, ld, dst.get(), w3.get(), diff_logits.get(), bits, src.get(), g_want.get(), table.get()});
  ref.hidden_weight_gradient(
      {rows, cols, ld, dst.get(), w3_abs.get(), diff_abs.get(), bits, src.get(), g_scale.get(), table.get()});
  expect_within(g_got, g_want, g_scale, rows, "hidden_weight_gradient");

  Aligned t_got(cols, ld), t_want(cols, ld);
  fast.transpose({cols, ld, weights_t.get(), t_got.get()});
  ref.transpose({cols, ld, weights_t.get(), t_want.get()});
  for (std::size_t i = 0; i < t_got.size(); ++i) ASSERT_EQ(t_got[i], t_want[i]);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SmallMlpParity,
                         testing::Combine(testing::Values(SmallMlpTarget::avx2, SmallMlpTarget::avx512),
                                          testing::Values(Size{1, 1, 1}, Size{2, 3, 8}, Size{3, 2, 20},
                                                          Size{5, 7, 17}, Size{7, 5, 50}, Size{13, 10, 31},
                                                          Size{131, 4, 40}, Size{200, 10, 100},
                                                          Size{199, 131, 60}, Size{33, 300, 130},
                                                          Size{150, 9, 90}, Size{10, 1, 333})));

TEST(SmallMlpAdamStep, FollowsTheFormulaOnEveryTarget) {
  for (const SmallMlpTarget target : {SmallMlpTarget::ref, SmallMlpTarget::avx2, SmallMlpTarget::avx512}) {
    if (!small_mlp_target_present(target)) continue;
    Aligned w(1, 16, 16, kAnySign, 20), grad(1, 16, 16, kAnySign, 21), m(1, 16, 16, kAnySign, 22),
        v(1, 16, 16, kRectified, 23);
    std::vector<double> w_want(16);
    double squares = 0.0;
    for (std::size_t i = 0; i < 16; ++i) {
      const double g = (grad[i] + 0.5 * w[i]) * 0.25;
      const double m_new = 0.9 * m[i] + 0.1 * g;
      const double v_new = 0.99 * v[i] + 0.01 * g * g;
      w_want[i] = w[i] - 0.03 * m_new / (std::sqrt(v_new) + 0.2);
      squares += static_cast<double>(w[i]) * w[i];
    }
    const double sum = kernels_of(target).adam_step(
        {16, 0.5f, 0.25f, 0.03f, 0.9f, 0.1f, 0.99f, 0.01f, 0.2f, grad.get(), w.get(), m.get(), v.get()});
    EXPECT_NEAR(sum, squares, 1e-6);
    for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(w[i], w_want[i], 1e-7);
  }
}

}  // namespace
}  // namespace nrec::small_mlp
