#include "nrec/kernels/small_mlp.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>

#include "kernels/small_mlp/small_mlp_dispatch.h"
#include "nrec/core/error.h"
#include "nrec/core/thread_pool.h"

namespace nrec {
namespace {

struct Free {
  void operator()(void* data) const { std::free(data); }
};
template <class T>
using Buffer = std::unique_ptr<T[], Free>;

// `count` zeros, starting at a cache line.
template <class T>
Buffer<T> zeros(std::size_t count) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t bytes = (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  auto* data = static_cast<T*>(std::aligned_alloc(kAlignment, bytes));
  if (data == nullptr) throw std::bad_alloc();
  std::fill_n(data, bytes / sizeof(T), T{0});
  return Buffer<T>(data);
}

std::size_t vectors_of(std::size_t count, std::size_t lanes) { return (count + lanes - 1) / lanes; }

// Where each weight array starts in a buffer of all weights; the same for gradients and Adam averages. W2 is
// kept transposed, as its gradient comes out.
struct Layout {
  std::size_t weights1, bias1, weights2_t, bias2, weights3, bias3, end;

  Layout(std::size_t num_inputs, std::size_t cols, std::size_t ld, std::size_t lanes)
      : weights1(0),
        bias1(num_inputs * ld),
        weights2_t(bias1 + ld),
        bias2(weights2_t + cols * ld),
        weights3(bias2 + ld),
        bias3(weights3 + ld),
        end(bias3 + lanes) {}
};

// Below, two registers of sixteen columns take longer than three of eight.
SmallMlpTarget target_for(SmallMlpTarget wanted, std::size_t hidden) {
  constexpr std::size_t kLeastForSixteen = 25;
  return wanted == SmallMlpTarget::best && hidden < kLeastForSixteen &&
                 small_mlp_target_present(SmallMlpTarget::avx2)
             ? SmallMlpTarget::avx2
             : wanted;
}

// `text` makes the message, only when it is needed: a training step must not allocate.
template <class Text>
void require_shape(bool ok, Text text) {
  if (!ok) throw ShapeError("SmallMlp: " + text());
}

}  // namespace

struct SmallMlp::State {
  const small_mlp::Kernels& kernels;
  SmallMlpAdam adam;
  std::size_t num_inputs, hidden, max_batch;
  std::size_t cols;  // hidden, rounded up to whole vectors
  std::size_t
      ld;  // floats from row to row: an odd number of vectors, so that rows spread over all cache sets
  Layout at;
  Buffer<float> weights, grad, m, v;
  Buffer<float> weights2;             // W2 [cols, ld], made anew from its transpose for every pass
  Buffer<float> src;                  // [max_batch, num_inputs], the gathered batch
  Buffer<float> dst1, dst2;           // [max_batch, ld], hidden activations
  Buffer<float> diff1;                // [max_batch, ld], gradient of the first hidden layer before the ReLU
  Buffer<float> logits, diff_logits;  // [max_batch]
  Buffer<std::int32_t> active_by_column;  // see small_mlp::ActiveBits
  Buffer<std::uint8_t> active_by_row;
  Buffer<float> table;
  std::int64_t step_number = 0;

  State(std::size_t num_inputs_, std::size_t hidden_, std::size_t max_batch_, const SmallMlpAdam& adam_,
        SmallMlpTarget target)
      : kernels(small_mlp::kernels_of(target_for(target, hidden_))),
        adam(adam_),
        num_inputs(num_inputs_),
        hidden(hidden_),
        max_batch(max_batch_),
        cols(vectors_of(hidden, kernels.lanes) * kernels.lanes),
        ld(cols / kernels.lanes % 2 == 1 ? cols : cols + kernels.lanes),
        at(num_inputs, cols, ld, kernels.lanes),
        weights(zeros<float>(at.end)),
        grad(zeros<float>(at.end)),
        m(zeros<float>(at.end)),
        v(zeros<float>(at.end)),
        weights2(zeros<float>(cols * ld)),
        src(zeros<float>(max_batch * num_inputs)),
        dst1(zeros<float>(max_batch * ld)),
        dst2(zeros<float>(max_batch * ld)),
        diff1(zeros<float>(max_batch * ld)),
        logits(zeros<float>(max_batch)),
        diff_logits(zeros<float>(max_batch)),
        active_by_column(zeros<std::int32_t>((max_batch + 3) / 4 * ld)),
        active_by_row(zeros<std::uint8_t>(max_batch * cols / 8)),
        table(zeros<float>(small_mlp::kTableFloats)) {}

  // Calls visit(place in the caller's flat array, place in `weights`) for every parameter.
  template <class Visit>
  void for_each_parameter(Visit visit) const {
    std::size_t flat = 0;
    for (std::size_t i = 0; i < num_inputs; ++i) {
      for (std::size_t j = 0; j < hidden; ++j) visit(flat++, at.weights1 + i * ld + j);
    }
    for (std::size_t j = 0; j < hidden; ++j) visit(flat++, at.bias1 + j);
    for (std::size_t i = 0; i < hidden; ++i) {
      for (std::size_t j = 0; j < hidden; ++j) visit(flat++, at.weights2_t + j * ld + i);
    }
    for (std::size_t j = 0; j < hidden; ++j) visit(flat++, at.bias2 + j);
    for (std::size_t j = 0; j < hidden; ++j) visit(flat++, at.weights3 + j);
    visit(flat, at.bias3);
  }

  void gather(MatrixView<const float> features, std::span<const std::uint32_t> rows) {
    float* to = src.get();
    for (const std::uint32_t row : rows) {
      const float* from = features.data + row * features.stride;
      for (std::size_t j = 0; j < num_inputs; ++j) *to++ = from[j];
    }
  }

  void forward(std::size_t rows) {
    const float* w = weights.get();
    kernels.transpose({cols, ld, w + at.weights2_t, weights2.get()});
    kernels.forward_hidden(
        {rows, num_inputs, cols, ld, src.get(), num_inputs, w + at.weights1, w + at.bias1, dst1.get()});
    kernels.forward_hidden(
        {rows, hidden, cols, ld, dst1.get(), ld, weights2.get(), w + at.bias2, dst2.get()});
    kernels.forward_logits({rows, cols, ld, dst2.get(), w + at.weights3, w[at.bias3], logits.get()});
  }

  static float probability(float logit) {
    return static_cast<float>(1.0 / (1.0 + std::exp(-static_cast<double>(logit))));
  }

  // Fills diff_logits; returns the sum of the cross-entropies.
  double cross_entropy(std::span<const std::uint8_t> labels, std::span<const std::uint32_t> rows) {
    constexpr float kEps = std::numeric_limits<float>::epsilon();
    double sum = 0.0;
    double diff_sum = 0.0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool is_one = labels[rows[i]] != 0;
      const float p = probability(logits[i]);
      diff_logits[i] = is_one ? p - 1.0f : p;
      diff_sum += diff_logits[i];
      const float clipped = std::clamp(p, kEps, 1.0f - kEps);
      sum -= std::log(static_cast<double>(is_one ? clipped : 1.0f - clipped));
    }
    grad[at.bias3] = static_cast<float>(diff_sum);
    return sum;
  }

  void backward(std::size_t rows) {
    const float* w = weights.get();
    float* g = grad.get();
    const small_mlp::ActiveBits active{active_by_row.get(), active_by_column.get()};
    const float* w3 = w + at.weights3;
    kernels.backward_logits(
        {rows, cols, ld, dst2.get(), w3, diff_logits.get(), g + at.weights3, g + at.bias2, active});
    kernels.hidden_weight_gradient({rows, cols, ld, dst2.get(), w3, diff_logits.get(), active, dst1.get(),
                                    g + at.weights2_t, table.get()});
    kernels.backward_hidden({rows, cols, ld, dst2.get(), w3, diff_logits.get(), active, w + at.weights2_t,
                             dst1.get(), diff1.get(), table.get()});
    kernels.weight_gradient(
        {rows, num_inputs, cols, ld, src.get(), num_inputs, diff1.get(), g + at.weights1});
    kernels.column_sums({rows, cols, ld, diff1.get(), g + at.bias1});
  }

  // Returns the sum of squares of the penalised weights before the step.
  double update(std::size_t rows) {
    ++step_number;
    const auto t = static_cast<double>(step_number);
    const double step =
        adam.learning_rate * std::sqrt(1.0 - std::pow(adam.beta2, t)) / (1.0 - std::pow(adam.beta1, t));
    double sum_of_squares = 0.0;
    const auto adam_step = [&](std::size_t first, std::size_t last, double penalty) {
      const double sum =
          kernels.adam_step({last - first, static_cast<float>(penalty), 1.0f / static_cast<float>(rows),
                             static_cast<float>(step), static_cast<float>(adam.beta1),
                             static_cast<float>(1.0 - adam.beta1), static_cast<float>(adam.beta2),
                             static_cast<float>(1.0 - adam.beta2), static_cast<float>(adam.epsilon),
                             grad.get() + first, weights.get() + first, m.get() + first, v.get() + first});
      return sum;
    };
    sum_of_squares += adam_step(at.weights1, at.bias1, adam.weight_penalty);
    adam_step(at.bias1, at.weights2_t, 0.0);
    sum_of_squares += adam_step(at.weights2_t, at.bias2, adam.weight_penalty);
    adam_step(at.bias2, at.weights3, 0.0);
    sum_of_squares += adam_step(at.weights3, at.bias3, adam.weight_penalty);
    adam_step(at.bias3, at.end, 0.0);
    return sum_of_squares;
  }
};

SmallMlp::SmallMlp(std::size_t num_inputs, std::size_t hidden, std::size_t max_batch,
                   const SmallMlpAdam& adam, SmallMlpTarget target) {
  require_shape(num_inputs > 0 && hidden > 0 && max_batch > 0, [&] {
    return "num_inputs = " + std::to_string(num_inputs) + ", hidden = " + std::to_string(hidden) +
           ", max_batch = " + std::to_string(max_batch) + "; each must be at least 1";
  });
  state_ = std::make_unique<State>(num_inputs, hidden, max_batch, adam, target);
}
SmallMlp::~SmallMlp() = default;
SmallMlp::SmallMlp(SmallMlp&&) noexcept = default;
SmallMlp& SmallMlp::operator=(SmallMlp&&) noexcept = default;

std::string_view SmallMlp::target_name() const { return state_->kernels.name; }

std::size_t SmallMlp::num_parameters() const {
  return (state_->num_inputs + 1) * state_->hidden + (state_->hidden + 1) * state_->hidden + state_->hidden +
         1;
}

void SmallMlp::set_parameters(std::span<const float> values) {
  require_shape(values.size() == num_parameters(), [&] {
    return "set_parameters got " + std::to_string(values.size()) + " values; the network has " +
           std::to_string(num_parameters());
  });
  State& s = *state_;
  s.for_each_parameter([&](std::size_t flat, std::size_t place) { s.weights[place] = values[flat]; });
  std::fill_n(s.m.get(), s.at.end, 0.0f);
  std::fill_n(s.v.get(), s.at.end, 0.0f);
  s.step_number = 0;
}

void SmallMlp::get_parameters(std::span<float> values) const {
  require_shape(values.size() == num_parameters(), [&] {
    return "get_parameters got room for " + std::to_string(values.size()) + " values; the network has " +
           std::to_string(num_parameters());
  });
  state_->for_each_parameter(
      [&](std::size_t flat, std::size_t place) { values[flat] = state_->weights[place]; });
}

double SmallMlp::train_step(MatrixView<const float> features, std::span<const std::uint8_t> labels,
                            std::span<const std::uint32_t> rows) {
  State& s = *state_;
  require_shape(features.cols == s.num_inputs && labels.size() == features.rows, [&] {
    return "train_step got features [" + std::to_string(features.rows) + ", " +
           std::to_string(features.cols) + "] and " + std::to_string(labels.size()) + " labels for " +
           std::to_string(s.num_inputs) + " inputs";
  });
  require_shape(!rows.empty() && rows.size() <= s.max_batch, [&] {
    return "train_step got " + std::to_string(rows.size()) + " rows; allowed are 1.." +
           std::to_string(s.max_batch);
  });
  const FlushDenormals flush;
  s.gather(features, rows);
  s.forward(rows.size());
  const double entropy = s.cross_entropy(labels, rows);
  s.backward(rows.size());
  const double sum_of_squares = s.update(rows.size());
  return (entropy + 0.5 * s.adam.weight_penalty * sum_of_squares) / static_cast<double>(rows.size());
}

void SmallMlp::predict(MatrixView<const float> features, std::span<const std::uint32_t> rows,
                       std::span<float> probabilities) {
  State& s = *state_;
  require_shape(features.cols == s.num_inputs && probabilities.size() == rows.size(), [&] {
    return "predict got features [" + std::to_string(features.rows) + ", " + std::to_string(features.cols) +
           "], " + std::to_string(rows.size()) + " rows and room for " +
           std::to_string(probabilities.size()) + " probabilities for " + std::to_string(s.num_inputs) +
           " inputs";
  });
  const FlushDenormals flush;
  for (std::size_t first = 0; first < rows.size(); first += s.max_batch) {
    const auto chunk = rows.subspan(first, std::min(s.max_batch, rows.size() - first));
    s.gather(features, chunk);
    s.forward(chunk.size());
    for (std::size_t i = 0; i < chunk.size(); ++i) probabilities[first + i] = State::probability(s.logits[i]);
  }
}

}  // namespace nrec
