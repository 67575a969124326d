#include "nrec/kernels/dispatch.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

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

#if defined(__x86_64__) && defined(__linux__)
constexpr int kAskSupported = 0x1021;   // arch_prctl: ARCH_GET_XCOMP_SUPP
constexpr int kAskPermission = 0x1023;  // arch_prctl: ARCH_REQ_XCOMP_PERM
constexpr int kTileData = 18;           // the state component of tiles

bool cpu_has_amx() {
  std::uint64_t components = 0;
  return cpu_has_avx512() && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("amx-tile") &&
         __builtin_cpu_supports("amx-bf16") && syscall(SYS_arch_prctl, kAskSupported, &components) == 0 &&
         (components >> kTileData & 1U) != 0;
}

/// Linux wants to be asked once per process before tiles are used.
bool may_use_tiles() {
  static const bool granted = syscall(SYS_arch_prctl, kAskPermission, kTileData) == 0;
  return granted;
}
#else
bool cpu_has_amx() { return false; }
bool may_use_tiles() { return false; }
#endif

const PairKernels* table_of(std::string_view isa) {
#if defined(__x86_64__)
  if (isa == "amx") return &amx::pair_kernels_table();
  if (isa == "avx512") return &avx512::pair_kernels_table();
  if (isa == "avx2") return &avx2::pair_kernels_table();
  if (isa == "avx2_bf16") return &rounded::avx2_table();
#endif
  return isa == "ref" ? &ref::pair_kernels_table() : &rounded::ref_table();
}

IsaStatus status_of(std::string name, std::string precision, bool available, std::string_view reason) {
  return {std::move(name), std::move(precision), available, available ? "" : std::string(reason)};
}

/// "a | b | c", of one precision or of all.
std::string known_words(std::string_view precision) {
  std::string words = "auto";
  for (const IsaStatus& status : isa_list()) {
    if (precision.empty() || status.precision == precision) words += " | " + status.name;
  }
  return words;
}

}  // namespace

std::vector<IsaStatus> isa_list() {
  constexpr std::string_view kNoAvx2 = "this CPU has no AVX2 with FMA";
  return {
      status_of("avx512", "f32", cpu_has_avx512(), "this CPU has no AVX-512F"),
      status_of("avx2", "f32", cpu_has_avx2(), kNoAvx2),
      status_of("ref", "f32", true, ""),
      status_of("amx", "bf16", cpu_has_amx(), "this CPU or this kernel of the system has no AMX with bf16"),
      status_of("avx2_bf16", "bf16", cpu_has_avx2(), kNoAvx2),
      status_of("ref_bf16", "bf16", true, "")};
}

IsaStatus isa_status(std::string_view isa) {
  for (IsaStatus& status : isa_list()) {
    if (status.name == isa) return std::move(status);
  }
  throw ConfigError("isa = \"" + std::string(isa) + "\" is unknown; it must be one of " + known_words(""));
}

std::string resolve_isa(std::string_view request) {
  if (request == "auto") {
    const std::vector<IsaStatus> list = isa_list();
    return std::ranges::find_if(list, &IsaStatus::available)->name;  // "ref" is always there
  }
  const IsaStatus status = isa_status(request);
  if (!status.available)
    throw UnsupportedError("isa = \"" + status.name + "\": " + status.reason + "; use \"auto\"");
  return status.name;
}

std::string resolve_isa(std::string_view request, std::string_view precision) {
  if (precision != "auto" && precision != "f32" && precision != "bf16")
    throw ConfigError("precision = \"" + std::string(precision) +
                      "\" is unknown; it must be auto, f32 or bf16");
  if (precision == "bf16" && (request == "avx2" || request == "ref"))
    return resolve_isa(std::string(request) + "_bf16");
  if (precision == "bf16" && request == "auto") {
    if (cpu_has_amx()) return "amx";
    throw UnsupportedError(
        "precision = \"bf16\": this CPU or this kernel of the system has no AMX with bf16; use \"f32\", "
        "which is faster here than bf16 in software (isa = \"avx2\")");
  }
  const std::string isa = resolve_isa(request);
  if (precision != "auto" && precision_of(isa) != precision) {
    throw ConfigError("isa = \"" + isa + "\" is not of precision \"" + std::string(precision) +
                      "\"; with that it must be one of " +
                      (precision == "bf16" ? "auto | amx | avx2 | ref" : known_words(precision)));
  }
  return isa;
}

std::string precision_of(std::string_view isa) { return isa_status(resolve_isa(isa)).precision; }

const PairKernels& pair_kernels(std::string_view isa) {
  const std::string resolved = resolve_isa(isa);
  if (resolved == "amx" && !may_use_tiles())
    throw UnsupportedError("isa = \"amx\": the system does not give this process the tiles; use \"auto\"");
  return *table_of(resolved);
}

}  // namespace nrec
