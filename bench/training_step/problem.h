#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "nrec/core/array.h"
#include "nrec/losses/contrastive_loss.h"
#include "nrec/networks/pair_network.h"
#include "nrec/networks/pair_step.h"

namespace nrec::bench {

/// Size of a training step.
struct Setting {
  std::size_t hidden = 128, blocks = 3, num_classes = 99, batch = 1024;

  /// Multiply-adds of the hidden layers, forward and twice backward, as floating-point operations: 6 * 2 R H^2 per pair. Input layer,
  /// norms and loss are not counted.
  double flops() const {
    return 12.0 * static_cast<double>(blocks * hidden * hidden * batch * (num_classes + 1));
  }
};

/// A mini-batch with a network and a loss, made of random numbers: everything that a step is given.
class StepProblem {
 public:
  StepProblem(const Setting& setting, Norm norm);

  PairNetwork network;
  PairBatch batch() const { return {theta_, x_, candidates_}; }
  RowLoss row_loss() const;
  std::size_t gradient_size() const { return network.weights().size(); }
  /// Writes theta, x, candidates, every array of the network as "network.NAME", loss and gradient ("gradient.NAME"), for others to
  /// compare with. Errors   IoError
  void dump(const std::filesystem::path& path, double loss, std::span<const float> gradient) const;

 private:
  Matrix<float> theta_, x_;
  Matrix<std::uint32_t> candidates_;
  ContrastiveLoss loss_;
};

/// nrec's step on the kernels of an instruction set, or "onednn".
std::unique_ptr<PairNetworkStep> make_contender(const std::string& name, Norm norm, ThreadPool& pool);

/// Largest difference of the gradients of a contender and of `ref`, over the largest element, and the relative difference of the losses; on a
/// mini-batch of 64 rows with at most 9 contrastive parameters, because `ref` is slow.
struct StepDifference {
  double gradient = 0.0, loss = 0.0;
};
StepDifference difference_from_ref(const std::string& name, const Setting& setting, Norm norm,
                                   ThreadPool& pool);

}  // namespace nrec::bench
