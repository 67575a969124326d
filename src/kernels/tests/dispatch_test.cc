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
  EXPECT_TRUE(isa_list().back().available);
  EXPECT_EQ(isa_list().back().name, "ref");
}

TEST(Dispatch, UnknownWordNamesTheKnownOnes) {
  try {
    resolve_isa("sse9");
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()), "isa = \"sse9\" is unknown; it must be one of auto | avx512 | avx2 | ref");
  }
}

}  // namespace
}  // namespace nrec
