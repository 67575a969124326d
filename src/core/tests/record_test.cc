#include "nrec/core/record.h"

#include <gtest/gtest.h>

namespace nrec {
namespace {

TEST(Record, KeepsOrderReplacesInPlaceAndMerges) {
  Record record;
  record.set("a", 1);
  record.set("b", "text");
  record.set("a", 2.5);
  Record outer;
  outer.merge("inner.", record);
  ASSERT_EQ(outer.entries().size(), 2u);
  EXPECT_EQ(outer.entries()[0].first, "inner.a");
  EXPECT_EQ(std::get<double>(*outer.find("inner.a")), 2.5);
  EXPECT_EQ(std::get<std::string>(*outer.find("inner.b")), "text");
  EXPECT_EQ(outer.find("inner.c"), nullptr);
}

}  // namespace
}  // namespace nrec
