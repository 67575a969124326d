#include <cmath>

#include "kernels/small_mlp/small_mlp_kernels.h"

namespace nrec::small_mlp::ref {
namespace {

void forward_hidden(const ForwardHidden& op) {
  for (std::size_t i = 0; i < op.rows; ++i) {
    for (std::size_t j = 0; j < op.cols; ++j) {
      double sum = op.bias[j];
      for (std::size_t k = 0; k < op.inner; ++k) {
        sum += static_cast<double>(op.src[i * op.ld_src + k]) * op.weights[k * op.ld + j];
      }
      op.dst[i * op.ld + j] = sum > 0.0 ? static_cast<float>(sum) : 0.0f;
    }
  }
}

void forward_logits(const ForwardLogits& op) {
  for (std::size_t i = 0; i < op.rows; ++i) {
    double sum = op.bias;
    for (std::size_t j = 0; j < op.cols; ++j)
      sum += static_cast<double>(op.src[i * op.ld + j]) * op.weights[j];
    op.logits[i] = static_cast<float>(sum);
  }
}

// diff_dst[i][j] of the operations around the output layer.
template <class Op>
double diff_dst(const Op& op, std::size_t i, std::size_t j) {
  return op.dst[i * op.ld + j] > 0.0f ? static_cast<double>(op.diff_logits[i]) * op.weights[j] : 0.0;
}

void backward_logits(const BackwardLogits& op) {
  for (std::size_t j = 0; j < op.cols; ++j) {
    double weight_sum = 0.0;
    double bias_sum = 0.0;
    for (std::size_t i = 0; i < op.rows; ++i) {
      weight_sum += static_cast<double>(op.dst[i * op.ld + j]) * op.diff_logits[i];
      bias_sum += diff_dst(op, i, j);
    }
    op.diff_weights[j] = static_cast<float>(weight_sum);
    op.diff_bias[j] = static_cast<float>(bias_sum);
  }
}

void backward_hidden(const BackwardHidden& op) {
  for (std::size_t i = 0; i < op.rows; ++i) {
    for (std::size_t j = 0; j < op.cols; ++j) {
      double sum = 0.0;
      for (std::size_t k = 0; k < op.cols; ++k) sum += diff_dst(op, i, k) * op.weights_t[k * op.ld + j];
      op.diff_src[i * op.ld + j] = op.src[i * op.ld + j] > 0.0f ? static_cast<float>(sum) : 0.0f;
    }
  }
}

void hidden_weight_gradient(const HiddenWeightGradient& op) {
  for (std::size_t k = 0; k < op.cols; ++k) {
    for (std::size_t j = 0; j < op.cols; ++j) {
      double sum = 0.0;
      for (std::size_t i = 0; i < op.rows; ++i) sum += diff_dst(op, i, k) * op.src[i * op.ld + j];
      op.diff_weights_t[k * op.ld + j] = static_cast<float>(sum);
    }
  }
}

void weight_gradient(const WeightGradient& op) {
  for (std::size_t k = 0; k < op.inner; ++k) {
    for (std::size_t j = 0; j < op.cols; ++j) {
      double sum = 0.0;
      for (std::size_t i = 0; i < op.rows; ++i) {
        sum += static_cast<double>(op.src[i * op.ld_src + k]) * op.diff_dst[i * op.ld + j];
      }
      op.diff_weights[k * op.ld + j] = static_cast<float>(sum);
    }
  }
}

void column_sums(const ColumnSums& op) {
  for (std::size_t j = 0; j < op.cols; ++j) {
    double sum = 0.0;
    for (std::size_t i = 0; i < op.rows; ++i) sum += op.src[i * op.ld + j];
    op.sums[j] = static_cast<float>(sum);
  }
}

void transpose(const Transpose& op) {
  for (std::size_t i = 0; i < op.size; ++i) {
    for (std::size_t j = 0; j < op.size; ++j) op.dst[j * op.ld + i] = op.src[i * op.ld + j];
  }
}

double adam_step(const AdamStep& op) {
  double sum_of_squares = 0.0;
  for (std::size_t i = 0; i < op.count; ++i) {
    const double w = op.weights[i];
    sum_of_squares += w * w;
    const double g = (op.grad[i] + op.weight_penalty * w) * op.scale;
    op.m[i] = static_cast<float>(op.beta1 * static_cast<double>(op.m[i]) + op.one_minus_beta1 * g);
    op.v[i] = static_cast<float>(op.beta2 * static_cast<double>(op.v[i]) + op.one_minus_beta2 * g * g);
    op.weights[i] = static_cast<float>(w - op.step * static_cast<double>(op.m[i]) /
                                               (std::sqrt(static_cast<double>(op.v[i])) + op.epsilon));
  }
  return sum_of_squares;
}

}  // namespace

const Kernels kKernels = {"ref",
                          8,
                          forward_hidden,
                          forward_logits,
                          backward_logits,
                          backward_hidden,
                          hidden_weight_gradient,
                          weight_gradient,
                          column_sums,
                          transpose,
                          adam_step};

}  // namespace nrec::small_mlp::ref
