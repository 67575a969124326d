#pragma once

#include <span>
#include <string>
#include <vector>

#include "nrec/inference/summarise.h"

namespace nrec {

/// A table of marginals for people: name, mean, sd, 5 %, 50 %, 95 %, ESS; as many digits as the sd supports.
std::string posterior_table(std::span<const MarginalSummary> marginals);

/// What a check said, in the words of a record.
struct SaidVerdict {
  struct Item {
    std::string name, verdict, sentence;
  };
  std::string verdict, sentence;
  std::vector<Item> items;
};

/// "verdict: ..." with its sentence, and a line for each item that the sentence does not repeat.
std::string verdict_text(const SaidVerdict& said);

}  // namespace nrec
