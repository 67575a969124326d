#include "problem.h"

#include <algorithm>
#include <cmath>

#include "nrec/core/random.h"
#include "nrec/io/npz.h"
#include "onednn_step.h"

namespace nrec::bench {

namespace {

constexpr std::size_t kDimTheta = 5, kDimX = 8;  // those of slcp

NumericArray array_of(const std::vector<std::size_t>& shape, std::span<const float> values) {
  return {.shape = shape, .values = {values.begin(), values.end()}, .dtype = "<f4"};
}

}  // namespace

StepProblem::StepProblem(const Setting& setting, Norm norm)
    : network(PairNetwork::initialised({kDimTheta, kDimX, setting.hidden, setting.blocks, norm}, 1)),
      theta_(setting.batch, kDimTheta),
      x_(setting.batch, kDimX),
      candidates_(setting.batch, setting.num_classes + 1),
      loss_(LossKind::nre_c, setting.num_classes, 1.0, true) {
  RandomStream random(1, Stream::check);
  for (float& value : theta_.values()) value = static_cast<float>(random.normal());
  for (float& value : x_.values()) value = static_cast<float>(random.normal());
  for (std::size_t b = 0; b < candidates_.rows(); ++b) {
    for (std::size_t c = 0; c < candidates_.cols(); ++c)
      candidates_(b, c) = static_cast<std::uint32_t>((b + c) % candidates_.rows());
  }
}

RowLoss StepProblem::row_loss() const {
  return {[](const void* context, std::size_t, std::span<const float> logits, std::span<float> d_logits) {
            return static_cast<const ContrastiveLoss*>(context)->row(logits, d_logits);
          },
          &loss_};
}

void StepProblem::dump(const std::filesystem::path& path, double loss,
                       std::span<const float> gradient) const {
  NamedArrays arrays = {{"theta", array_of({theta_.rows(), theta_.cols()}, theta_.values())},
                        {"x", array_of({x_.rows(), x_.cols()}, x_.values())},
                        {"loss", {.shape = {1}, .values = {loss}}}};
  NumericArray candidates{.shape = {candidates_.rows(), candidates_.cols()}};
  candidates.values.assign(candidates_.values().begin(), candidates_.values().end());
  arrays.emplace_back("candidates", std::move(candidates));
  PairNetwork with_gradient = network;
  std::ranges::copy(gradient, with_gradient.weights().begin());
  const std::vector<NetworkTensor> weights = network.tensors(), gradients = with_gradient.tensors();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    arrays.emplace_back("network." + weights[i].name, array_of(weights[i].shape, weights[i].values));
    arrays.emplace_back("gradient." + weights[i].name, array_of(gradients[i].shape, gradients[i].values));
  }
  write_npz(path, arrays, false);
}

std::unique_ptr<PairNetworkStep> make_contender(const std::string& name, Norm norm, ThreadPool& pool) {
  return name == "onednn" ? make_onednn_step(norm, pool) : make_pair_step(name, pool);
}

StepDifference difference_from_ref(const std::string& name, const Setting& setting, Norm norm,
                                   ThreadPool& pool) {
  const Setting small = {setting.hidden, setting.blocks, std::min<std::size_t>(setting.num_classes, 9), 64};
  std::vector<float> gradients[2];
  double losses[2] = {};
  for (int i = 0; i < 2; ++i) {
    StepProblem problem(small, norm);
    gradients[i].resize(problem.gradient_size());
    losses[i] = make_contender(i == 0 ? "ref" : name, norm, pool)
                    ->loss_and_gradient(problem.network, problem.batch(), problem.row_loss(), gradients[i]);
  }
  StepDifference difference{.loss = std::fabs(losses[1] - losses[0]) / std::fabs(losses[0])};
  double largest = 0.0;
  for (std::size_t i = 0; i < gradients[0].size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(gradients[0][i])));
    difference.gradient =
        std::max(difference.gradient, std::fabs(static_cast<double>(gradients[0][i]) - gradients[1][i]));
  }
  difference.gradient /= largest;
  return difference;
}

}  // namespace nrec::bench
