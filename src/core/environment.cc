#include "nrec/core/environment.h"

#include <cstdlib>

namespace nrec {

std::string environment_isa() {
  const char* isa = std::getenv("NREC_ISA");
  return isa ? isa : "";
}

}  // namespace nrec
