#include "nrec/kernels/dispatch.h"

#include "kernels/pair_kernels_isa.h"
#include "nrec/core/error.h"
#include "nrec/core/suggest.h"
#include "nrec/kernels/pair_kernels.h"

namespace nrec {

namespace {

bool cpu_has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

bool cpu_has_avx512() {
#if defined(__x86_64__)
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

const PairKernels* table_of(std::string_view isa) {
#if defined(__x86_64__)
  if (isa == "avx512") return &avx512::pair_kernels_table();
  if (isa == "avx2") return &avx2::pair_kernels_table();
#endif
  return isa == "ref" ? &ref::pair_kernels_table() : nullptr;
}

}  // namespace

std::vector<IsaStatus> isa_list() {
  std::vector<IsaStatus> list;
  list.push_back({"avx512", cpu_has_avx512(), cpu_has_avx512() ? "" : "this CPU has no AVX-512F"});
  list.push_back({"avx2", cpu_has_avx2(), cpu_has_avx2() ? "" : "this CPU has no AVX2 with FMA"});
  list.push_back({"ref", true, ""});
  return list;
}

std::string resolve_isa(std::string_view request) {
  std::vector<std::string> known = {"auto"};
  for (const IsaStatus& status : isa_list()) {
    if (request == "auto" && status.available) return status.name;
    if (request == status.name) {
      if (!status.available)
        throw UnsupportedError("isa = \"" + status.name + "\": " + status.reason + "; use \"auto\"");
      return status.name;
    }
    known.push_back(status.name);
  }
  std::string words;
  for (const std::string& word : known) words += (words.empty() ? "" : " | ") + word;
  throw ConfigError("isa = \"" + std::string(request) + "\" is unknown; it must be one of " + words);
}

const PairKernels& pair_kernels(std::string_view isa) { return *table_of(resolve_isa(isa)); }

}  // namespace nrec
