#pragma once
// An independent, plain network in double precision: the truth for tests of the engine.

#include <cmath>
#include <vector>

#include "nrec/losses/contrastive_loss.h"
#include "nrec/networks/pair_network.h"
#include "nrec/networks/pair_step.h"

namespace nrec::testing {

struct DoubleNetwork {
  const PairNetwork& layout;  // shape and offsets
  std::vector<double> w;      // weights in the same flat places
  bool training = true;       // batch norm: statistics of the batch, else the running ones

  explicit DoubleNetwork(const PairNetwork& network)
      : layout(network), w(network.weights().begin(), network.weights().end()) {}

  using Rows = std::vector<std::vector<double>>;

  void normalise(Rows& z, std::size_t i, int which) const {
    const PairNetworkShape& shape = layout.shape();
    const auto at = layout.block(i);
    const std::size_t gain = which ? at.gain2 : at.gain1, shift = which ? at.shift2 : at.shift1,
                      h = shape.hidden_features;
    if (shape.norm == Norm::layer) {
      for (auto& row : z) {
        double mean = 0, variance = 0;
        for (double v : row) mean += v / static_cast<double>(h);
        for (double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(h);
        for (std::size_t c = 0; c < h; ++c)
          row[c] =
              w[gain + c] * (row[c] - mean) / std::sqrt(variance + PairNetwork::kLayerNormEps) + w[shift + c];
      }
    } else if (shape.norm == Norm::batch) {
      for (std::size_t c = 0; c < h; ++c) {
        double mean = layout.statistics()[layout.running_mean(i, which) + c],
               variance = layout.statistics()[layout.running_variance(i, which) + c];
        if (training) {
          mean = variance = 0;
          for (const auto& row : z) mean += row[c] / static_cast<double>(z.size());
          for (const auto& row : z)
            variance += (row[c] - mean) * (row[c] - mean) / static_cast<double>(z.size());
        }
        for (auto& row : z)
          row[c] =
              w[gain + c] * (row[c] - mean) / std::sqrt(variance + PairNetwork::kBatchNormEps) + w[shift + c];
      }
    }
  }

  Rows linear(const Rows& a, std::size_t weight, std::size_t bias) const {
    const std::size_t h = layout.shape().hidden_features, width = layout.width();
    Rows out(a.size(), std::vector<double>(h));
    for (std::size_t r = 0; r < a.size(); ++r) {
      for (std::size_t j = 0; j < h; ++j) {
        out[r][j] = w[bias + j];
        for (std::size_t k = 0; k < h; ++k) out[r][j] += a[r][k] * w[weight + k * width + j];
      }
    }
    return out;
  }

  /// Output of the input layer for one pair.
  template <class Theta>
  std::vector<double> input(std::span<Theta> theta, std::span<const float> x) const {
    const std::size_t width = layout.width();
    std::vector<double> row(layout.shape().hidden_features);
    for (std::size_t j = 0; j < row.size(); ++j) {
      row[j] = w[layout.bias_in() + j];
      for (std::size_t k = 0; k < theta.size(); ++k)
        row[j] += theta[k] * w[layout.theta_in() + k * width + j];
      for (std::size_t k = 0; k < x.size(); ++k) row[j] += x[k] * w[layout.x_in() + k * width + j];
    }
    return row;
  }

  /// Logits of all pairs, row by row.
  std::vector<double> logits(const PairBatch& batch) const {
    Rows z;
    for (std::size_t b = 0; b < batch.x.rows; ++b) {
      for (const std::uint32_t t : batch.candidates.row(b))
        z.push_back(input(batch.theta.row(t), batch.x.row(b)));
    }
    return trunk(std::move(z));
  }

  /// Logits of the rows that the input layer puts out.
  std::vector<double> trunk(Rows z) const {
    const PairNetworkShape& shape = layout.shape();
    const std::size_t h = shape.hidden_features;
    const auto relu = [](Rows& rows) {
      for (auto& row : rows) {
        for (double& v : row) v = std::max(0.0, v);
      }
    };
    for (std::size_t i = 0; i < shape.num_blocks; ++i) {
      Rows a = z;
      normalise(a, i, 0);
      relu(a);
      a = linear(a, layout.block(i).w1, layout.block(i).b1);
      normalise(a, i, 1);
      relu(a);
      a = linear(a, layout.block(i).w2, layout.block(i).b2);
      for (std::size_t r = 0; r < z.size(); ++r) {
        for (std::size_t j = 0; j < h; ++j) z[r][j] += a[r][j];
      }
    }
    std::vector<double> result(z.size(), w[layout.out_bias()]);
    for (std::size_t r = 0; r < z.size(); ++r) {
      for (std::size_t j = 0; j < h; ++j) result[r] += z[r][j] * w[layout.out_weight() + j];
    }
    return result;
  }

  /// Mean NRE-C loss with shared contrast sets (columns: own, K others).
  double loss(const PairBatch& batch, double gamma) const {
    const std::vector<double> h = logits(batch);
    const std::size_t columns = batch.candidates.cols, k = columns - 1;
    Matrix<double> m(batch.x.rows, k), j(batch.x.rows, k);
    for (std::size_t b = 0; b < batch.x.rows; ++b) {
      for (std::size_t i = 0; i < k; ++i) {
        j(b, i) = h[b * columns + i];
        m(b, i) = h[b * columns + 1 + i];
      }
    }
    return nre_c_loss(m, j, gamma, {}, {});
  }
};

}  // namespace nrec::testing
