#include "nrec/core/environment.h"

#include <unistd.h>

#include <cstdlib>

namespace nrec {

std::string environment_isa() {
  const char* isa = std::getenv("NREC_ISA");
  return isa ? isa : "";
}

std::vector<std::string> environment_entries() {
  std::vector<std::string> entries;
  if (environ == nullptr) return entries;  // after clearenv()
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

}  // namespace nrec
