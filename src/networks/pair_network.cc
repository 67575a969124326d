#include "nrec/networks/pair_network.h"

#include <algorithm>
#include <cmath>

#include "nrec/core/error.h"
#include "nrec/core/random.h"
#include "nrec/core/suggest.h"
#include "nrec/kernels/pair_kernels.h"

namespace nrec {

Norm norm_kind(std::string_view name) {
  for (const Norm norm : {Norm::batch, Norm::layer, Norm::none}) {
    if (name == norm_name(norm)) return norm;
  }
  throw ConfigError("norm = \"" + std::string(name) +
                    "\" is unknown; it must be one of batch | layer | none");
}

std::string_view norm_name(Norm norm) {
  switch (norm) {
    case Norm::batch:
      return "batch";
    case Norm::layer:
      return "layer";
    case Norm::none:
      break;
  }
  return "none";
}

/// Where one named array lies in a flat buffer: `in` rows of `width_` numbers, of which the first `out` are real.
struct PairNetwork::Place {
  std::string name;
  bool in_statistics;
  std::size_t offset;
  std::size_t in;
  std::size_t out;
  bool matrix;
};

PairNetwork::PairNetwork(const PairNetworkShape& shape)
    : shape_(shape), width_(padded_features(shape.hidden_features)) {
  if (shape.dim_theta == 0 || shape.dim_x == 0 || shape.hidden_features == 0) {
    throw DomainError("network: dim_theta = " + std::to_string(shape.dim_theta) +
                      ", dim_x = " + std::to_string(shape.dim_x) + ", hidden_features = " +
                      std::to_string(shape.hidden_features) + "; each must be at least 1");
  }
  if (shape.hidden_features > kMostFeatures)
    throw DomainError("network: hidden_features = " + std::to_string(shape.hidden_features) + "; at most " +
                      std::to_string(kMostFeatures));
  weights_.assign(x_in() + shape.dim_x * width_, 0.0f);
  if (shape.norm == Norm::batch) statistics_.assign(4 * shape.num_blocks * width_, 0.0f);
  for (const Place& place : places()) {
    const bool is_gain = place.name.ends_with(".gain") || place.name.ends_with("running_variance");
    if (is_gain)
      std::fill_n(
          (place.in_statistics ? statistics_ : weights_).begin() + static_cast<std::ptrdiff_t>(place.offset),
          place.out, 1.0f);
  }
}

std::size_t PairNetwork::block_size() const {
  const std::size_t norms = shape_.norm == Norm::none ? 0 : 4 * width_;
  return norms + 2 * (width_ * width_ + width_);
}

PairNetwork::BlockOffsets PairNetwork::block(std::size_t i) const {
  const std::size_t first = bias_in() + width_ + i * block_size();
  const std::size_t norm = shape_.norm == Norm::none ? 0 : width_;
  BlockOffsets at{};
  at.gain1 = first;
  at.shift1 = first + norm;
  at.w1 = at.shift1 + norm;
  at.b1 = at.w1 + width_ * width_;
  at.gain2 = at.b1 + width_;
  at.shift2 = at.gain2 + norm;
  at.w2 = at.shift2 + norm;
  at.b2 = at.w2 + width_ * width_;
  return at;
}

std::size_t PairNetwork::out_weight() const { return bias_in() + width_ + shape_.num_blocks * block_size(); }
std::size_t PairNetwork::x_in() const { return out_bias() + kFeatureBlock; }

std::vector<PairNetwork::Place> PairNetwork::places() const {
  const std::size_t h = shape_.hidden_features;
  std::vector<Place> list;
  const auto vector = [&](const std::string& name, std::size_t offset, std::size_t size) {
    list.push_back({name, false, offset, 1, size, false});
  };
  const auto matrix = [&](const std::string& name, std::size_t offset, std::size_t in) {
    list.push_back({name, false, offset, in, h, true});
  };
  const auto running = [&](const std::string& name, std::size_t offset) {
    list.push_back({name, true, offset, 1, h, false});
  };
  matrix("input.theta.weight", theta_in(), shape_.dim_theta);
  matrix("input.x.weight", x_in(), shape_.dim_x);
  vector("input.bias", bias_in(), h);
  for (std::size_t i = 0; i < shape_.num_blocks; ++i) {
    const BlockOffsets at = block(i);
    const std::string start = "blocks." + std::to_string(i) + ".";
    for (const int which : {0, 1}) {
      const std::string number = std::to_string(which + 1);
      if (shape_.norm != Norm::none) {
        vector(start + "norm" + number + ".gain", which ? at.gain2 : at.gain1, h);
        vector(start + "norm" + number + ".shift", which ? at.shift2 : at.shift1, h);
      }
      if (shape_.norm == Norm::batch) {
        running(start + "norm" + number + ".running_mean", running_mean(i, which));
        running(start + "norm" + number + ".running_variance", running_variance(i, which));
      }
      matrix(start + "linear" + number + ".weight", which ? at.w2 : at.w1, h);
      vector(start + "linear" + number + ".bias", which ? at.b2 : at.b1, h);
    }
  }
  vector("output.weight", out_weight(), h);
  vector("output.bias", out_bias(), 1);
  return list;
}

std::size_t PairNetwork::num_parameters() const {
  std::size_t count = 0;
  for (const Place& place : places()) count += place.in_statistics ? 0 : place.in * place.out;
  return count;
}

PairNetwork PairNetwork::initialised(const PairNetworkShape& shape, std::uint64_t seed) {
  constexpr double kSmallStart = 1e-3;
  PairNetwork network(shape);
  std::uint64_t row = 0;
  for (const Place& place : network.places()) {
    RandomStream random(seed, Stream::initial_weights, row++);
    if (place.in_statistics || place.name.find("norm") != std::string::npos) continue;
    double bound = 1.0 / std::sqrt(static_cast<double>(shape.hidden_features));
    if (place.name.starts_with("input."))
      bound = 1.0 / std::sqrt(static_cast<double>(shape.dim_theta + shape.dim_x));
    if (place.name.find("linear2") != std::string::npos) bound = kSmallStart;
    for (std::size_t i = 0; i < place.in; ++i) {
      for (std::size_t j = 0; j < place.out; ++j) {
        network.weights_[place.offset + i * network.width_ + j] =
            static_cast<float>(random.uniform(-bound, bound));
      }
    }
  }
  return network;
}

std::vector<NetworkTensor> PairNetwork::tensors() const {
  std::vector<NetworkTensor> list;
  for (const Place& place : places()) {
    const std::vector<float>& buffer = place.in_statistics ? statistics_ : weights_;
    NetworkTensor tensor;
    tensor.name = place.name;
    tensor.shape =
        place.matrix ? std::vector<std::size_t>{place.out, place.in} : std::vector<std::size_t>{place.out};
    tensor.values.reserve(place.in * place.out);
    for (std::size_t j = 0; j < place.out; ++j) {
      for (std::size_t i = 0; i < place.in; ++i)
        tensor.values.push_back(buffer[place.offset + i * width_ + j]);
    }
    list.push_back(std::move(tensor));
  }
  return list;
}

void PairNetwork::set_tensors(std::span<const NetworkTensor> tensors) {
  const std::vector<Place> wanted = places();
  std::vector<std::string> names;
  for (const Place& place : wanted) names.push_back(place.name);
  for (const NetworkTensor& tensor : tensors) {
    if (std::find(names.begin(), names.end(), tensor.name) == names.end()) {
      const std::string nearest = nearest_word(tensor.name, names);
      throw IoError("network: unknown array \"" + tensor.name + "\"" +
                    (nearest.empty() ? "" : "; the nearest known one is \"" + nearest + "\""));
    }
  }
  for (const Place& place : wanted) {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const NetworkTensor& t) { return t.name == place.name; });
    if (found == tensors.end())
      throw IoError("network: the array \"" + place.name +
                    "\" is missing; the file is not a complete estimator");
    const std::vector<std::size_t> shape =
        place.matrix ? std::vector<std::size_t>{place.out, place.in} : std::vector<std::size_t>{place.out};
    if (found->shape != shape || found->values.size() != place.in * place.out) {
      throw IoError("network: the array \"" + place.name +
                    "\" has another shape than the header of the file says; the file is damaged");
    }
    std::vector<float>& buffer = place.in_statistics ? statistics_ : weights_;
    for (std::size_t j = 0; j < place.out; ++j) {
      for (std::size_t i = 0; i < place.in; ++i) {
        const float value = found->values[j * place.in + i];
        if (!std::isfinite(value))
          throw IoError("network: the array \"" + place.name +
                        "\" holds a number that is not finite; the file is damaged");
        buffer[place.offset + i * width_ + j] = value;
      }
    }
  }
}

}  // namespace nrec
