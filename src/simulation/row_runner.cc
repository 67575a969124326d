#include "nrec/simulation/row_runner.h"

#include "nrec/core/random.h"

namespace nrec {

std::uint32_t row_seed(std::uint64_t seed, std::uint64_t row) {
  return RandomStream(seed, Stream::row_seed, row).bits32() >> 1;
}

}  // namespace nrec
