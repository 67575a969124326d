#include "nrec/kernels/small_mlp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "nrec/core/error.h"
#include "nrec/core/random.h"

namespace nrec {
namespace {

std::vector<float> uniform_floats(std::size_t count, double bound, std::uint64_t row) {
  RandomStream random(7, Stream::check, row);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.uniform(-bound, bound));
  return values;
}

std::vector<SmallMlpTarget> present_targets() {
  std::vector<SmallMlpTarget> targets{SmallMlpTarget::ref};
  for (const SmallMlpTarget target : {SmallMlpTarget::avx2, SmallMlpTarget::avx512}) {
    if (small_mlp_target_present(target)) targets.push_back(target);
  }
  return targets;
}

// The formula of the header in double, for finite differences.
struct Oracle {
  std::size_t d, h;
  double penalty;

  double loss(const std::vector<double>& w, MatrixView<const float> x,
              const std::vector<std::uint8_t>& y) const {
    const double* w1 = w.data();
    const double* b1 = w1 + d * h;
    const double* w2 = b1 + h;
    const double* b2 = w2 + h * h;
    const double* w3 = b2 + h;
    const double b3 = w3[h];
    double sum = 0.0;
    std::vector<double> a1(h), a2(h);
    for (std::size_t i = 0; i < x.rows; ++i) {
      for (std::size_t j = 0; j < h; ++j) {
        a1[j] = b1[j];
        for (std::size_t k = 0; k < d; ++k) a1[j] += x(i, k) * w1[k * h + j];
        a1[j] = std::max(a1[j], 0.0);
      }
      double z = b3;
      for (std::size_t j = 0; j < h; ++j) {
        a2[j] = b2[j];
        for (std::size_t k = 0; k < h; ++k) a2[j] += a1[k] * w2[k * h + j];
        z += std::max(a2[j], 0.0) * w3[j];
      }
      sum += std::log1p(std::exp(y[i] != 0 ? -z : z));
    }
    double squares = 0.0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const bool is_bias = (&w[i] >= b1 && &w[i] < w2) || (&w[i] >= b2 && &w[i] < w3) || i + 1 == w.size();
      if (!is_bias) squares += w[i] * w[i];
    }
    return (sum + 0.5 * penalty * squares) / static_cast<double>(x.rows);
  }
};

TEST(SmallMlp, StepFollowsTheGradientOfItsLoss) {
  constexpr std::size_t kInputs = 3, kHidden = 9, kRows = 21;
  const Oracle oracle{kInputs, kHidden, 0.3};
  // beta = 0 and an epsilon far above every gradient turn Adam into w -= g.
  const SmallMlpAdam plain{
      .learning_rate = 1e6, .beta1 = 0.0, .beta2 = 0.0, .epsilon = 1e6, .weight_penalty = 0.3};
  const std::vector<float> x = uniform_floats(kRows * kInputs, 2.0, 1);
  const MatrixView<const float> features(x.data(), kRows, kInputs);
  std::vector<std::uint8_t> labels(kRows);
  std::vector<std::uint32_t> rows(kRows);
  for (std::size_t i = 0; i < kRows; ++i) {
    labels[i] = i % 3 == 0;
    rows[i] = static_cast<std::uint32_t>((5 * i) % kRows);
  }
  for (const SmallMlpTarget target : present_targets()) {
    SmallMlp network(kInputs, kHidden, kRows, plain, target);
    const std::vector<float> before = uniform_floats(network.num_parameters(), 0.7, 2);
    network.set_parameters(before);
    const double loss = network.train_step(features, labels, rows);
    std::vector<float> after(before.size());
    network.get_parameters(after);

    std::vector<double> w(before.begin(), before.end());
    EXPECT_NEAR(loss, oracle.loss(w, features, labels), 2e-7);
    double largest = 0.0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      constexpr double kStep = 1e-5;
      const double centre = w[i];
      w[i] = centre + kStep;
      const double up = oracle.loss(w, features, labels);
      w[i] = centre - kStep;
      const double down = oracle.loss(w, features, labels);
      w[i] = centre;
      const double gradient = (up - down) / (2.0 * kStep);
      largest = std::max(largest, std::abs(gradient));
      EXPECT_NEAR(static_cast<double>(before[i]) - after[i], gradient, 1e-6)
          << network.target_name() << " parameter " << i;
    }
    EXPECT_GT(largest, 0.05);  // the comparison means something
  }
}

/// Rows whose label is a matter of their first column.
struct LabelledRows {
  LabelledRows(std::size_t total, std::size_t inputs)
      : x(uniform_floats(total * inputs, 1.7, inputs)),
        features(x.data(), total, inputs),
        labels(total),
        rows(total) {
    for (std::size_t i = 0; i < total; ++i) {
      labels[i] = x[i * inputs] > 0.2f;
      rows[i] = static_cast<std::uint32_t>(i);
    }
  }
  std::span<const std::uint32_t> batch(std::size_t first, std::size_t most) const {
    return std::span<const std::uint32_t>(rows).subspan(first, std::min(most, rows.size() - first));
  }

  std::vector<float> x;
  MatrixView<const float> features;
  std::vector<std::uint8_t> labels;
  std::vector<std::uint32_t> rows;
};

TEST(SmallMlp, TargetsStayTogetherOverManySteps) {
  if (!small_mlp_target_present(SmallMlpTarget::avx2)) GTEST_SKIP() << "this processor has no AVX2 and FMA";
  for (const std::size_t inputs : {1u, 2u, 5u, 7u}) {
    const std::size_t hidden = 10 * inputs;
    const std::size_t total = 531;  // the last batch has 131 rows
    const LabelledRows data(total, inputs);
    SmallMlp ref(inputs, hidden, 200, {}, SmallMlpTarget::ref);
    SmallMlp avx2(inputs, hidden, 200, {}, SmallMlpTarget::avx2);
    EXPECT_EQ(ref.target_name(), "ref");
    EXPECT_EQ(avx2.target_name(), "avx2");
    const std::vector<float> start =
        uniform_floats(ref.num_parameters(), std::sqrt(3.0 / static_cast<double>(hidden)), 50 + inputs);
    ref.set_parameters(start);
    avx2.set_parameters(start);
    for (int epoch = 0; epoch < 8; ++epoch) {
      for (std::size_t first = 0; first < total; first += 200) {
        const auto batch = data.batch(first, 200);
        EXPECT_NEAR(ref.train_step(data.features, data.labels, batch),
                    avx2.train_step(data.features, data.labels, batch), 1e-6);
      }
    }
    std::vector<float> p_ref(total), p_avx2(total);
    ref.predict(data.features, data.rows, p_ref);
    avx2.predict(data.features, data.rows, p_avx2);
    for (std::size_t i = 0; i < total; ++i) EXPECT_NEAR(p_ref[i], p_avx2[i], 1e-5);
  }
}

TEST(SmallMlp, Avx512HasTheBitsOfAvx2) {
  if (!small_mlp_target_present(SmallMlpTarget::avx512)) GTEST_SKIP() << "this processor has no AVX-512F";
  for (const auto& [inputs, hidden] :
       {std::pair<std::size_t, std::size_t>{2, 20}, {5, 50}, {10, 100}, {3, 131}}) {
    const std::size_t total = 331;  // the last batch has 131 rows
    const LabelledRows data(total, inputs);
    SmallMlp avx2(inputs, hidden, 200, {}, SmallMlpTarget::avx2);
    SmallMlp avx512(inputs, hidden, 200, {}, SmallMlpTarget::avx512);
    EXPECT_EQ(avx512.target_name(), "avx512");
    std::vector<float> weights = uniform_floats(avx2.num_parameters(), 0.3, 50 + inputs),
                       others(weights.size());
    avx2.set_parameters(weights);
    avx512.set_parameters(weights);
    for (int epoch = 0; epoch < 4; ++epoch) {
      for (std::size_t first = 0; first < total; first += 200) {
        const auto batch = data.batch(first, 200);
        EXPECT_EQ(avx2.train_step(data.features, data.labels, batch),
                  avx512.train_step(data.features, data.labels, batch));
      }
    }
    avx2.get_parameters(weights);
    avx512.get_parameters(others);
    EXPECT_EQ(weights, others) << hidden;
    std::vector<float> p_avx2(total), p_avx512(total);
    avx2.predict(data.features, data.rows, p_avx2);
    avx512.predict(data.features, data.rows, p_avx512);
    EXPECT_EQ(p_avx2, p_avx512) << hidden;
  }
}

TEST(SmallMlp, TakesTheWidestRegistersThatItFills) {
  const bool has_avx2 = small_mlp_target_present(SmallMlpTarget::avx2);
  const bool has_avx512 = small_mlp_target_present(SmallMlpTarget::avx512);
  EXPECT_EQ(SmallMlp(2, 20, 4).target_name(), has_avx2 ? "avx2" : "ref");
  EXPECT_EQ(SmallMlp(10, 100, 4).target_name(), has_avx512 ? "avx512" : has_avx2 ? "avx2" : "ref");
}

TEST(SmallMlp, LearnsAndForgetsOnSetParameters) {
  const std::vector<float> x = uniform_floats(600, 1.0, 9);
  const MatrixView<const float> features(x.data(), 300, 2);
  std::vector<std::uint8_t> labels(300);
  std::vector<std::uint32_t> rows(100);
  for (std::size_t i = 0; i < 300; ++i) labels[i] = x[2 * i] > x[2 * i + 1];
  for (std::size_t i = 0; i < 100; ++i) rows[i] = static_cast<std::uint32_t>(3 * i);
  for (const SmallMlpTarget target : present_targets()) {
    SmallMlp network(2, 20, 100, {.learning_rate = 0.01}, target);
    const std::vector<float> start = uniform_floats(network.num_parameters(), 0.3, 10);
    network.set_parameters(start);
    const double first = network.train_step(features, labels, rows);
    double last = first;
    for (int step = 0; step < 200; ++step) last = network.train_step(features, labels, rows);
    EXPECT_LT(last, 0.3 * first);
    network.set_parameters(start);
    EXPECT_EQ(network.train_step(features, labels, rows), first);
  }
}

template <class Failure, class Body>
void expect_refusal(Body body, const std::string& text) {
  try {
    body();
    FAIL() << "accepted; expected: " << text;
  } catch (const Failure& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(SmallMlp, RefusesWrongShapes) {
  expect_refusal<ShapeError>([] { SmallMlp(0, 5, 1); },
                             "num_inputs = 0, hidden = 5, max_batch = 1; each must be at least 1");
  SmallMlp network(2, 5, 4);
  EXPECT_EQ(network.num_parameters(), 10u + 5u + 25u + 5u + 5u + 1u);
  std::vector<float> short_values(50);
  expect_refusal<ShapeError>([&] { network.set_parameters(short_values); },
                             "set_parameters got 50 values; the network has 51");
  expect_refusal<ShapeError>([&] { network.get_parameters(short_values); },
                             "get_parameters got room for 50 values");
  const std::vector<float> x(12);
  const std::vector<std::uint8_t> labels(6);
  const std::vector<std::uint32_t> rows(5);
  const MatrixView<const float> features(x.data(), 6, 2);
  expect_refusal<ShapeError>([&] { network.train_step(features, labels, rows); },
                             "train_step got 5 rows; allowed are 1..4");
  expect_refusal<ShapeError>(
      [&] {
        network.train_step({x.data(), 4, 3}, labels, rows);
      },
      "features [4, 3] and 6 labels for 2 inputs");
  std::vector<float> probabilities(4);
  expect_refusal<ShapeError>([&] { network.predict(features, rows, probabilities); },
                             "5 rows and room for 4 probabilities");
}

TEST(SmallMlp, RefusesATargetThisProcessorLacks) {
  if (small_mlp_target_present(SmallMlpTarget::avx512)) GTEST_SKIP() << "this processor has AVX-512F";
  expect_refusal<UnsupportedError>([] { SmallMlp(2, 5, 4, {}, SmallMlpTarget::avx512); },
                                   "target = avx512 needs a processor");
  if (small_mlp_target_present(SmallMlpTarget::avx2)) return;
  expect_refusal<UnsupportedError>([] { SmallMlp(2, 5, 4, {}, SmallMlpTarget::avx2); },
                                   "target = avx2 needs a processor");
}

}  // namespace
}  // namespace nrec
