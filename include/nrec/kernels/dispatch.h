#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nrec {

/// One implementation of the hot kernels.
struct IsaStatus {
  std::string name;  // "avx512", "avx2", "ref"
  bool available = false;
  std::string reason;  // why not, or "" when available
};

/// All implementations of this build, best first; the last one, "ref", is always available.
std::vector<IsaStatus> isa_list();

/// The implementation a request resolves to: "auto" is the best available one, any other word that one.
/// Errors   ConfigError: unknown word (with the known ones); UnsupportedError: not available here, with the reason
std::string resolve_isa(std::string_view request);

}  // namespace nrec
