#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nrec {

/// One implementation of the hot kernels.
struct IsaStatus {
  std::string name;       // "avx512", "avx2", "ref"; "amx", "avx2_bf16", "ref_bf16"
  std::string precision;  // of the operands of hidden layers: "f32", "bf16"
  bool available = false;
  std::string reason;  // why not, or "" when available
};

/// All implementations of this build, best first within a precision, and f32 first; "ref" and "ref_bf16" are always available.
std::vector<IsaStatus> isa_list();

/// The implementation of that name, available or not.
/// Errors   ConfigError: not the name of one; "auto" is not, either
IsaStatus isa_status(std::string_view isa);

/// The implementation a request resolves to: "auto" is the best available one of precision f32, any other word that one.
/// Errors   ConfigError: unknown word (with the known ones); UnsupportedError: not available here, with the reason
std::string resolve_isa(std::string_view request);

/// The same with a wish for the precision: "auto" is that of the instruction set, "f32" or "bf16" must be that of it. With bf16, "auto" is
/// amx, and "avx2" and "ref" round in software.
/// Errors   ConfigError: no such precision, or the instruction set has another; else as above
std::string resolve_isa(std::string_view request, std::string_view precision);

/// Precision of an implementation, "f32" or "bf16". Errors as resolve_isa.
std::string precision_of(std::string_view isa);

}  // namespace nrec
