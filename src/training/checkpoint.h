#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include "nrec/core/stop.h"
#include "nrec/io/safetensors.h"
#include "training/trainer.h"

namespace nrec {

/// Everything that changes while training runs; a checkpoint is this and nothing else.
struct TrainingState {
  TrainerState ratio;
  std::optional<TrainerState> success;  // where P(ok | theta) is learnt
};

/// Atomic. `fingerprint` names problem and settings: resuming under another one is refused.
void save_checkpoint(const TrainingState& state, const std::string& fingerprint,
                     const std::filesystem::path& path);
/// Refuses what is no checkpoint, or one of another version of the format. `where` starts the message.
/// Errors: IoError, UnsupportedError
void check_checkpoint_format(const TensorFile& file, const std::string& where);
/// Replaces `state`, whose networks (and gradient_sum and average, where there are any) have the shapes that are wanted, by the one of the file.
/// Errors: those of check_checkpoint_format(); IoError: damaged, or made for other data or settings; `state` is then left as it was.
void load_checkpoint(const std::string& fingerprint, const std::filesystem::path& path, TrainingState& state);

/// Saves a state that changes, not more than once a second unless it must.
class CheckpointKeeper {
 public:
  /// No path: saves nothing. `state` and `watch` must outlive it.
  CheckpointKeeper(std::filesystem::path path, std::string fingerprint, const TrainingState& state,
                   const Stopwatch& watch)
      : path_(std::move(path)), fingerprint_(std::move(fingerprint)), state_(state), watch_(watch) {}

  void save_if_due() {
    constexpr double kSecondsBetweenCheckpoints = 1.0;
    if (watch_.seconds() - last_ >= kSecondsBetweenCheckpoints) save();
  }
  void save() {
    if (path_.empty()) return;
    save_checkpoint(state_, fingerprint_, path_);
    last_ = watch_.seconds();
  }

 private:
  std::filesystem::path path_;
  std::string fingerprint_;
  const TrainingState& state_;
  const Stopwatch& watch_;
  double last_ = -std::numeric_limits<double>::infinity();
};

}  // namespace nrec
