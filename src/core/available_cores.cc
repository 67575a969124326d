#include "core/available_cores.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace nrec {

int cores_of_quota(std::string_view text) {
  std::istringstream words{std::string(text)};
  long long time = 0, period = 0;
  if (!(words >> time >> period) || time <= 0 || period <= 0) return 0;  // "max 100000" is no limit
  constexpr long long kMost = 1 << 20;
  return static_cast<int>(std::min(kMost, (time - 1) / period + 1));
}

int available_cores() {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string line;
  std::getline(file, line);
  const int quota = cores_of_quota(line);
  return quota > 0 ? std::min(cores, quota) : cores;
}

}  // namespace nrec
