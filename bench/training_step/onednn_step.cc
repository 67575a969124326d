#include "onednn_step.h"

#include "nrec/core/error.h"

#if NREC_HAS_ONEDNN
#include <omp.h>

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>
#endif

namespace nrec::bench {

#if NREC_HAS_ONEDNN

namespace {

using Dims = dnnl::memory::dims;
constexpr std::size_t kTilePairs = 200;

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t cols, std::int64_t row_step,
                          std::int64_t col_step = 1) {
  return {Dims{rows, cols}, dnnl::memory::data_type::f32, Dims{row_step, col_step}};
}

/// C (+)= A B (+ bias) of fixed sizes; B in the order that oneDNN likes best if it is packed.
class Product {
 public:
  Product() = default;
  Product(const dnnl::engine& engine, const dnnl::memory::desc& a, const dnnl::memory::desc& b,
          const dnnl::memory::desc& c, bool has_bias, bool accumulate)
      : a_(a), b_(b), c_(c), has_bias_(has_bias) {
    dnnl::primitive_attr attributes;
    if (accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    const dnnl::memory::desc bias({1, c.dims()[1]}, dnnl::memory::data_type::f32, Dims{c.dims()[1], 1});
    bias_ = bias;
    const auto desc = has_bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    primitive_ = dnnl::matmul(dnnl::matmul::primitive_desc(desc, attributes, engine));
  }
  void run(dnnl::stream& stream, const dnnl::engine& engine, const float* a, const float* b,
           const float* bias, float* c) const {
    const auto of = [&](const dnnl::memory::desc& desc, const float* data) {
      return dnnl::memory(desc, engine, const_cast<float*>(data));
    };
    std::unordered_map<int, dnnl::memory> arguments = {
        {DNNL_ARG_SRC, of(a_, a)}, {DNNL_ARG_WEIGHTS, of(b_, b)}, {DNNL_ARG_DST, of(c_, c)}};
    if (has_bias_) arguments.emplace(DNNL_ARG_BIAS, of(bias_, bias));
    primitive_.execute(stream, arguments);
  }

 private:
  dnnl::memory::desc a_, b_, c_, bias_;
  dnnl::matmul primitive_;
  bool has_bias_ = false;
};

/// relu(norm(z)) and its way back over the rows of a tile.
class Activation {
 public:
  Activation() = default;
  Activation(const dnnl::engine& engine, std::int64_t rows, std::int64_t width, bool is_layer)
      : tile_(matrix(rows, width, width)), is_layer_(is_layer) {
    row_ = dnnl::memory::desc({rows}, dnnl::memory::data_type::f32, Dims{1});
    column_ = dnnl::memory::desc({width}, dnnl::memory::data_type::f32, Dims{1});
    const auto relu = dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_training,
                                                  dnnl::algorithm::eltwise_relu, tile_, 0.0f);
    const dnnl::eltwise_forward::primitive_desc relu_desc(relu, engine);
    relu_ = dnnl::eltwise_forward(relu_desc);
    relu_back_ = dnnl::eltwise_backward(dnnl::eltwise_backward::primitive_desc(
        dnnl::eltwise_backward::desc(dnnl::algorithm::eltwise_relu, tile_, tile_, 0.0f), engine, relu_desc));
    if (!is_layer) return;
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    const dnnl::layer_normalization_forward::primitive_desc norm(
        dnnl::layer_normalization_forward::desc(dnnl::prop_kind::forward_training, tile_,
                                                PairNetwork::kLayerNormEps, flags),
        engine);
    norm_ = dnnl::layer_normalization_forward(norm);
    norm_back_ = dnnl::layer_normalization_backward(dnnl::layer_normalization_backward::primitive_desc(
        dnnl::layer_normalization_backward::desc(dnnl::prop_kind::backward, tile_, tile_,
                                                 PairNetwork::kLayerNormEps, flags),
        engine, norm));
  }
  /// y = the normalised rows (z itself without norm), a = relu(y).
  void forward(dnnl::stream& stream, const dnnl::engine& engine, float* z, float* gain, float* shift,
               float* mean, float* variance, float* y, float* a) const {
    if (is_layer_)
      norm_.execute(stream, {{DNNL_ARG_SRC, {tile_, engine, z}},
                             {DNNL_ARG_SCALE, {column_, engine, gain}},
                             {DNNL_ARG_SHIFT, {column_, engine, shift}},
                             {DNNL_ARG_MEAN, {row_, engine, mean}},
                             {DNNL_ARG_VARIANCE, {row_, engine, variance}},
                             {DNNL_ARG_DST, {tile_, engine, y}}});
    relu_.execute(stream,
                  {{DNNL_ARG_SRC, {tile_, engine, is_layer_ ? y : z}}, {DNNL_ARG_DST, {tile_, engine, a}}});
  }
  /// d becomes the gradient of z; d_gain and d_shift are overwritten.
  void backward(dnnl::stream& stream, const dnnl::engine& engine, float* z, float* y, float* gain,
                float* shift, float* mean, float* variance, float* d, float* d_gain, float* d_shift) const {
    relu_back_.execute(stream, {{DNNL_ARG_SRC, {tile_, engine, is_layer_ ? y : z}},
                                {DNNL_ARG_DIFF_DST, {tile_, engine, d}},
                                {DNNL_ARG_DIFF_SRC, {tile_, engine, d}}});
    if (is_layer_)
      norm_back_.execute(stream, {{DNNL_ARG_SRC, {tile_, engine, z}},
                                  {DNNL_ARG_SCALE, {column_, engine, gain}},
                                  {DNNL_ARG_SHIFT, {column_, engine, shift}},
                                  {DNNL_ARG_MEAN, {row_, engine, mean}},
                                  {DNNL_ARG_VARIANCE, {row_, engine, variance}},
                                  {DNNL_ARG_DIFF_DST, {tile_, engine, d}},
                                  {DNNL_ARG_DIFF_SRC, {tile_, engine, d}},
                                  {DNNL_ARG_DIFF_SCALE, {column_, engine, d_gain}},
                                  {DNNL_ARG_DIFF_SHIFT, {column_, engine, d_shift}}});
  }

 private:
  dnnl::memory::desc tile_, row_, column_;
  dnnl::eltwise_forward relu_;
  dnnl::eltwise_backward relu_back_;
  dnnl::layer_normalization_forward norm_;
  dnnl::layer_normalization_backward norm_back_;
  bool is_layer_ = false;
};

/// Everything of one thread: primitives keep scratch memory, so that each has its own.
struct Worker {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  Product linear, linear_sum, back, weights, column_sums, theta_weights, out, out_back, out_weights;
  Activation activation;
  std::vector<std::vector<float>> z, t, a, y, mean, variance;
  std::vector<float> d, dz, logits, d_logits, theta, ones, d_gain, d_shift, gradient;
  double loss = 0.0;
};

class OneDnnStep final : public PairNetworkStep {
 public:
  OneDnnStep(Norm norm, ThreadPool& pool)
      : norm_(norm), pool_(pool), workers_(static_cast<std::size_t>(pool.num_threads())) {}

  double loss_and_gradient(PairNetwork& network, const PairBatch& batch, const RowLoss& loss,
                           std::span<float> gradient) override {
    prepare(network, batch);
    for (Worker& worker : workers_) {
      std::ranges::fill(worker.gradient, 0.0f);
      worker.loss = 0.0;
    }
    pool_.run(batch.x.rows / rows_per_tile_, [&](std::size_t tile, int worker) {
      omp_set_num_threads(1);
      run_tile(network, batch, loss, tile, workers_[static_cast<std::size_t>(worker)]);
    });
    double sum = 0.0;
    std::ranges::fill(gradient, 0.0f);
    for (const Worker& worker : workers_) {
      sum += worker.loss;
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += worker.gradient[i];
    }
    x_gradient(network, batch, gradient);
    return sum / static_cast<double>(batch.x.rows);
  }

  void logits(const PairNetwork&, const PairBatch&, MatrixView<float>) override {
    throw UnsupportedError("the oneDNN contender has no logits(); it is there to be timed");
  }
  std::string_view isa() const override { return "onednn"; }

 private:
  void prepare(const PairNetwork& network, const PairBatch& batch) {
    width_ = network.width();
    const std::size_t dim = network.shape().dim_theta, blocks = network.shape().num_blocks;
    u_.assign(batch.theta.rows * width_, 0.0f);
    v_.assign(batch.x.rows * width_, 0.0f);
    d_v_.assign(batch.x.rows * width_, 0.0f);
    const float* w = network.weights().data();
    project(batch.theta, w + network.theta_in(), w + network.bias_in(), u_);
    project(batch.x, w + network.x_in(), nullptr, v_);
    if (columns_ == batch.candidates.cols) return;
    columns_ = batch.candidates.cols;
    rows_per_tile_ = 1;
    while (2 * rows_per_tile_ * columns_ <= kTilePairs && batch.x.rows % (2 * rows_per_tile_) == 0)
      rows_per_tile_ *= 2;
    const auto rows = static_cast<std::int64_t>(rows_per_tile_ * columns_),
               h = static_cast<std::int64_t>(width_), d = static_cast<std::int64_t>(dim);
    for (Worker& k : workers_) {
      const dnnl::engine& e = k.engine;
      const dnnl::memory::desc tile = matrix(rows, h, h), turned = matrix(h, rows, 1, h),
                               w_in = matrix(h, h, h), w_turned = matrix(h, h, 1, h);
      k.linear = Product(e, tile, w_in, tile, true, false);
      k.linear_sum = Product(e, tile, w_in, tile, true, true);
      k.back = Product(e, tile, w_turned, tile, false, false);
      k.weights = Product(e, turned, tile, w_in, false, true);
      k.column_sums = Product(e, matrix(1, rows, rows), tile, matrix(1, h, h), false, true);
      k.theta_weights = Product(e, matrix(d, rows, 1, d), tile, matrix(d, h, h), false, true);
      k.out = Product(e, tile, matrix(h, 1, 1), matrix(rows, 1, 1), false, false);
      k.out_back = Product(e, matrix(rows, 1, 1), matrix(1, h, h), tile, false, false);
      k.out_weights = Product(e, matrix(1, rows, rows), tile, matrix(1, h, h), false, true);
      k.activation = Activation(e, rows, static_cast<std::int64_t>(width_), norm_ == Norm::layer);
      const auto size = static_cast<std::size_t>(rows) * width_;
      k.z.assign(blocks + 1, std::vector<float>(size));
      k.t.assign(blocks, std::vector<float>(size));
      for (auto* list : {&k.a, &k.y}) list->assign(2 * blocks, std::vector<float>(size));
      for (auto* list : {&k.mean, &k.variance})
        list->assign(2 * blocks, std::vector<float>(static_cast<std::size_t>(rows)));
      k.d.resize(size);
      k.dz.resize(size);
      k.logits.resize(static_cast<std::size_t>(rows));
      k.d_logits.resize(static_cast<std::size_t>(rows));
      k.theta.resize(static_cast<std::size_t>(rows) * dim);
      k.ones.assign(static_cast<std::size_t>(rows), 1.0f);
      k.d_gain.resize(width_);
      k.d_shift.resize(width_);
      k.gradient.resize(network.weights().size());
    }
  }

  void project(MatrixView<const float> rows, const float* weights, const float* bias,
               std::vector<float>& out) const {
    for (std::size_t r = 0; r < rows.rows; ++r) {
      float* to = out.data() + r * width_;
      if (bias) std::copy_n(bias, width_, to);
      for (std::size_t i = 0; i < rows.cols; ++i) {
        const float value = rows(r, i);
        for (std::size_t c = 0; c < width_; ++c) to[c] += value * weights[i * width_ + c];
      }
    }
  }

  void run_tile(PairNetwork& network, const PairBatch& batch, const RowLoss& loss, std::size_t tile,
                Worker& k) {
    float* w = network.weights().data();
    float* g = k.gradient.data();
    const std::size_t blocks = network.shape().num_blocks, dim = network.shape().dim_theta;
    for (std::size_t r = 0, row = 0; r < rows_per_tile_; ++r) {
      const std::size_t b = tile * rows_per_tile_ + r;
      for (std::size_t c = 0; c < columns_; ++c, ++row) {
        const std::size_t theta = batch.candidates(b, c);
        const float* u = u_.data() + theta * width_;
        const float* v = v_.data() + b * width_;
        for (std::size_t i = 0; i < width_; ++i) k.z[0][row * width_ + i] = u[i] + v[i];
        for (std::size_t i = 0; i < dim; ++i) k.theta[row * dim + i] = batch.theta(theta, i);
      }
    }
    const auto activate = [&](std::size_t at, float* z, std::size_t gain, std::size_t shift) {
      k.activation.forward(k.stream, k.engine, z, w + gain, w + shift, k.mean[at].data(),
                           k.variance[at].data(), k.y[at].data(), k.a[at].data());
    };
    for (std::size_t i = 0; i < blocks; ++i) {
      const PairNetwork::BlockOffsets at = network.block(i);
      activate(2 * i, k.z[i].data(), at.gain1, at.shift1);
      k.linear.run(k.stream, k.engine, k.a[2 * i].data(), w + at.w1, w + at.b1, k.t[i].data());
      activate(2 * i + 1, k.t[i].data(), at.gain2, at.shift2);
      k.z[i + 1] = k.z[i];
      k.linear_sum.run(k.stream, k.engine, k.a[2 * i + 1].data(), w + at.w2, w + at.b2, k.z[i + 1].data());
    }
    k.out.run(k.stream, k.engine, k.z[blocks].data(), w + network.out_weight(), nullptr, k.logits.data());
    const float scale = 1.0f / static_cast<float>(batch.x.rows);
    for (float& logit : k.logits) logit += w[network.out_bias()];
    for (std::size_t r = 0; r < rows_per_tile_; ++r) {
      const std::span<float> d = std::span(k.d_logits).subspan(r * columns_, columns_);
      k.loss += loss.call(loss.context, tile * rows_per_tile_ + r,
                          std::span<const float>(k.logits).subspan(r * columns_, columns_), d);
      for (float& value : d) {
        value *= scale;
        g[network.out_bias()] += value;
      }
    }
    k.out_weights.run(k.stream, k.engine, k.d_logits.data(), k.z[blocks].data(), nullptr,
                      g + network.out_weight());
    k.out_back.run(k.stream, k.engine, k.d_logits.data(), w + network.out_weight(), nullptr, k.dz.data());
    const auto go_back = [&](std::size_t at, float* z, std::size_t gain, std::size_t shift) {
      k.activation.backward(k.stream, k.engine, z, k.y[at].data(), w + gain, w + shift, k.mean[at].data(),
                            k.variance[at].data(), k.d.data(), k.d_gain.data(), k.d_shift.data());
      if (norm_ != Norm::layer) return;
      for (std::size_t c = 0; c < width_; ++c) {
        g[gain + c] += k.d_gain[c];
        g[shift + c] += k.d_shift[c];
      }
    };
    for (std::size_t i = blocks; i-- > 0;) {
      const PairNetwork::BlockOffsets at = network.block(i);
      k.weights.run(k.stream, k.engine, k.a[2 * i + 1].data(), k.dz.data(), nullptr, g + at.w2);
      k.column_sums.run(k.stream, k.engine, k.ones.data(), k.dz.data(), nullptr, g + at.b2);
      k.back.run(k.stream, k.engine, k.dz.data(), w + at.w2, nullptr, k.d.data());
      go_back(2 * i + 1, k.t[i].data(), at.gain2, at.shift2);
      k.weights.run(k.stream, k.engine, k.a[2 * i].data(), k.d.data(), nullptr, g + at.w1);
      k.column_sums.run(k.stream, k.engine, k.ones.data(), k.d.data(), nullptr, g + at.b1);
      std::swap(k.t[i], k.d);  // t is not needed any more
      k.back.run(k.stream, k.engine, k.t[i].data(), w + at.w1, nullptr, k.d.data());
      go_back(2 * i, k.z[i].data(), at.gain1, at.shift1);
      for (std::size_t c = 0; c < k.dz.size(); ++c) k.dz[c] += k.d[c];
    }
    k.theta_weights.run(k.stream, k.engine, k.theta.data(), k.dz.data(), nullptr, g + network.theta_in());
    k.column_sums.run(k.stream, k.engine, k.ones.data(), k.dz.data(), nullptr, g + network.bias_in());
    for (std::size_t row = 0; row < rows_per_tile_ * columns_; ++row) {
      float* to = d_v_.data() + (tile * rows_per_tile_ + row / columns_) * width_;
      for (std::size_t c = 0; c < width_; ++c) to[c] += k.dz[row * width_ + c];
    }
  }

  void x_gradient(const PairNetwork& network, const PairBatch& batch, std::span<float> gradient) const {
    for (std::size_t b = 0; b < batch.x.rows; ++b) {
      for (std::size_t i = 0; i < batch.x.cols; ++i) {
        float* to = gradient.data() + network.x_in() + i * width_;
        for (std::size_t c = 0; c < width_; ++c) to[c] += batch.x(b, i) * d_v_[b * width_ + c];
      }
    }
  }

  const Norm norm_;
  ThreadPool& pool_;
  std::vector<Worker> workers_;
  std::size_t width_ = 0, columns_ = 0, rows_per_tile_ = 1;
  std::vector<float> u_, v_, d_v_;
};

}  // namespace

bool has_onednn() { return true; }

std::unique_ptr<PairNetworkStep> make_onednn_step(Norm norm, ThreadPool& pool) {
  if (norm == Norm::batch) throw UnsupportedError("the oneDNN contender has no batch norm");
  return std::make_unique<OneDnnStep>(norm, pool);
}

#else

bool has_onednn() { return false; }

std::unique_ptr<PairNetworkStep> make_onednn_step(Norm, ThreadPool&) {
  throw UnsupportedError("this program was built without oneDNN");
}

#endif

}  // namespace nrec::bench
