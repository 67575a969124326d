#include "core/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace nrec {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

std::uint64_t system_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::uint64_t kilobytes = 0;
  std::string rest;
  while (file >> name >> kilobytes) {
    if (name == "MemAvailable:") return kilobytes * 1024;
    std::getline(file, rest);
  }
  return kUnknown;
}

/// The one number that a file of the control group holds; "max" is no limit.
std::uint64_t group_number(const char* path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? value : kUnknown;
}

std::uint64_t group_bytes() {
  const std::uint64_t most = group_number("/sys/fs/cgroup/memory.max");
  const std::uint64_t used = group_number("/sys/fs/cgroup/memory.current");
  if (most == kUnknown || used == kUnknown) return kUnknown;
  return most > used ? most - used : 1;
}

}  // namespace

std::uint64_t available_memory() {
  const std::uint64_t bytes = std::min(system_bytes(), group_bytes());
  return bytes == kUnknown ? 0 : bytes;
}

}  // namespace nrec
