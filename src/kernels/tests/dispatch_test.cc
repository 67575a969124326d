#include "nrec/kernels/dispatch.h"

#include <gtest/gtest.h>

#include "nrec/core/error.h"
#include "nrec/kernels/pair_kernels.h"

namespace nrec {
namespace {

TEST(Dispatch, ForcedImplementationIsTheActiveOne) {
  for (const IsaStatus& status : isa_list()) {
    if (!status.available) {
      EXPECT_THROW(resolve_isa(status.name), UnsupportedError);
      EXPECT_FALSE(status.reason.empty());
      continue;
    }
    EXPECT_EQ(resolve_isa(status.name), status.name);
    EXPECT_EQ(isa_status(status.name).precision, precision_of(status.name));
    EXPECT_EQ(std::string(pair_kernels(status.name).name), status.name);
  }
}

TEST(Dispatch, AutoIsTheBestAvailableAndRefIsAlwaysThere) {
  for (const IsaStatus& status : isa_list()) {
    if (status.available) {
      EXPECT_EQ(resolve_isa("auto"), status.name);
      break;
    }
  }
  EXPECT_EQ(precision_of("auto"), "f32");
  EXPECT_EQ(resolve_isa("ref"), "ref");
  EXPECT_EQ(resolve_isa("ref_bf16"), "ref_bf16");
}

TEST(Dispatch, UnknownWordNamesTheKnownOnes) {
  EXPECT_THROW(isa_status("sse9"), ConfigError);
  EXPECT_THROW(isa_status("auto"), ConfigError);
  try {
    resolve_isa("sse9");
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()),
              "isa = \"sse9\" is unknown; it must be one of auto | avx512 | avx2 | ref | amx | "
              "avx2_bf16 | ref_bf16");
  }
}

TEST(Dispatch, PrecisionAndInstructionSetMustAgree) {
  EXPECT_EQ(resolve_isa("ref", "auto"), "ref");
  EXPECT_EQ(resolve_isa("ref", "f32"), "ref");
  EXPECT_EQ(resolve_isa("ref", "bf16"), "ref_bf16");
  EXPECT_EQ(resolve_isa("ref_bf16", "auto"), "ref_bf16");
  EXPECT_EQ(resolve_isa("ref_bf16", "bf16"), "ref_bf16");
  EXPECT_EQ(resolve_isa("auto", "f32"), resolve_isa("auto"));
  EXPECT_THROW(resolve_isa("ref_bf16", "f32"), ConfigError);
  EXPECT_THROW(resolve_isa("ref", "f16"), ConfigError);
  if (isa_status("avx2").available) {
    EXPECT_EQ(resolve_isa("avx2", "bf16"), "avx2_bf16");
  }
  if (isa_status("avx512").available) {
    EXPECT_THROW(resolve_isa("avx512", "bf16"), ConfigError);
  }
  if (isa_status("amx").available) {
    EXPECT_EQ(resolve_isa("auto", "bf16"), "amx");
    EXPECT_THROW(resolve_isa("amx", "f32"), ConfigError);
  } else {
    EXPECT_THROW(resolve_isa("auto", "bf16"), UnsupportedError);
  }
}

}  // namespace
}  // namespace nrec
