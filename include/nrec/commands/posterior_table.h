#pragma once

#include <span>
#include <string>

#include "nrec/inference/summarise.h"

namespace nrec {

/// A table of marginals for people: name, mean, sd, 5 %, 50 %, 95 %, ESS; as many digits as the sd supports.
std::string posterior_table(std::span<const MarginalSummary> marginals);

}  // namespace nrec
