#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace nrec::simulation {

// A folder for temporary files of one runner, inside which every program gets one of its own. It is locked (flock)
// as long as its owner lives, so that what a killed owner left behind can be told from what is in use, also between
// machines and containers that share a disk.
class ScratchFolder {
 public:
  // Nothing is made before it is needed.
  explicit ScratchFolder(std::filesystem::path base) : base_(std::move(base)) {}
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // Makes an empty folder; the one given out before is removed with everything in it.
  // Errors   IoError: cannot be made (disk full, no permission)
  const std::filesystem::path& fresh();
  // Removes the folder given out last.
  void clear();

 private:
  void make_own();

  std::filesystem::path base_;
  std::filesystem::path own_;      // of this runner, with our lock
  std::filesystem::path current_;  // of the program that runs
  int lock_ = -1;
  std::uint64_t count_ = 0;
};

// Removes scratch folders of this user in `base` whose owners are gone. Never throws: what cannot be removed stays.
void remove_stale_scratch(const std::filesystem::path& base) noexcept;

}  // namespace nrec::simulation
