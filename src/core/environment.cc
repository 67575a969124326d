#include "nrec/core/environment.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace nrec {

namespace {

std::optional<std::uint64_t> environment_number(const char* name) {
  const char* text = std::getenv(name);
  if (!text) return std::nullopt;
  std::uint64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

}  // namespace

std::string environment_isa() {
  const char* isa = std::getenv("NREC_ISA");
  return isa ? isa : "";
}

std::optional<ArrayTask> environment_array_task() {
  const auto id = environment_number("SLURM_ARRAY_TASK_ID");
  const auto count = environment_number("SLURM_ARRAY_TASK_COUNT");
  if (!id || !count) return std::nullopt;
  const std::uint64_t first = environment_number("SLURM_ARRAY_TASK_MIN").value_or(0);
  const std::uint64_t step = environment_number("SLURM_ARRAY_TASK_STEP").value_or(1);
  if (step == 0 || *id < first || (*id - first) / step >= *count) return ArrayTask{0, 0};
  return ArrayTask{(*id - first) / step, *count};
}

std::vector<std::string> environment_entries() {
  std::vector<std::string> entries;
  if (environ == nullptr) return entries;  // after clearenv()
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

}  // namespace nrec
