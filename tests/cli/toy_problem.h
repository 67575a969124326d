#pragma once

#include <string>

#include "nrec/core/array.h"
#include "program.h"

namespace nrec::cli {

/// theta ~ U(0, 5)^2 and x = theta + 0.3 normal noise, with a third column of x that is noise alone.
struct Toy {
  Matrix<double> theta, x;
};
Toy toy_simulations(std::size_t rows);

/// Section by section, so that a test can replace one.
inline const std::string kParameters =
    "[parameters]\nmass = { prior = \"uniform\", low = 0, high = 5 }\nrate = { prior = \"uniform\", low = 0, "
    "high = 5 }\n";
inline const std::string kSimulations = "[simulations]\nfiles = [\"sims.npz\"]\n";
inline const std::string kObservation = "[observation]\nfile = \"x_o.csv\"\n";
/// A network and a training so small that a run takes a fraction of a second.
inline const std::string kSmall =
    "[network]\nhidden_features = 16\nnum_blocks = 1\nnorm = \"layer\"\n"
    "[training]\nnum_classes = 9\ntraining_batch_size = 64\nlearning_rate = 3e-3\n"
    "learning_rate_schedule = \"constant\"\nmax_num_epochs = 6\n"
    "[sampling]\nnum_samples = 200\n";

class ToyTest : public ProgramTest {
 protected:
  void SetUp() override;
  /// sims.npz in the folder.
  void write_simulations(const Toy& toy, const std::string& name = "sims.npz") const;
  /// Writes `text` as p.toml and runs infer on it.
  Outcome infer(const std::string& text, const Words& more = {}) const;
  /// Replaces the simulations by `toy` and runs infer on the whole problem.
  Outcome infer_on(const Toy& toy, const Words& more = {}) const;

  const std::string whole_ = kParameters + kSimulations + kObservation + kSmall;
};

}  // namespace nrec::cli
