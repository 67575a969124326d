#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "nrec/core/random.h"
#include "nrec/kernels/dispatch.h"
#include "nrec/kernels/pair_kernels.h"

namespace nrec {

inline std::vector<float> random_floats(std::size_t n, std::uint64_t row) {
  RandomStream random(11, Stream::check, row);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

template <class T>
void expect_close(const std::vector<T>& actual, const std::vector<T>& expected, double tolerance,
                  const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  double scale = 1.0;
  for (const T value : expected) scale = std::max(scale, std::fabs(static_cast<double>(value)));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * scale) << what << " at " << i;
  }
}

class PairKernelParity : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const IsaStatus status = isa_status(GetParam()); !status.available)
      GTEST_SKIP() << status.name << ": " << status.reason;
    fast_ = &pair_kernels(GetParam());
  }
  const PairKernels& ref_ = pair_kernels("ref");
  const PairKernels* fast_ = nullptr;
};

/// What a product is added to.
enum class Addend { none, itself, other };
inline constexpr Addend kAddends[] = {Addend::none, Addend::itself, Addend::other};

inline const float* addend(Addend which, const std::vector<float>& c, const std::vector<float>& other) {
  return which == Addend::none ? nullptr : which == Addend::itself ? c.data() : other.data();
}

}  // namespace nrec
