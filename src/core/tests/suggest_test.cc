#include "nrec/core/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace nrec {
namespace {

TEST(NearestWord, FindsSwapsDashesAndParts) {
  const std::vector<std::string> known = {"num_classes", "gamma", "learning_rate", "max_num_epochs"};
  EXPECT_EQ(nearest_word("gama", known), "gamma");
  EXPECT_EQ(nearest_word("num-clases", known), "num_classes");
  EXPECT_EQ(nearest_word("epochs", known), "max_num_epochs");
  EXPECT_EQ(nearest_word("xyzzy", known), "");
}

TEST(EditDistance, CountsSwapsAsOne) {
  EXPECT_EQ(edit_distance("abcd", "abdc"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
}

}  // namespace
}  // namespace nrec
