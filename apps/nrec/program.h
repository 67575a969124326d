#pragma once

#include <string>
#include <vector>

namespace nrec::app {

/// The whole program: words after its name -> exit code.
int run_program(const std::vector<std::string>& words);

}  // namespace nrec::app
