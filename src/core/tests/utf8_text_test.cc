#include "core/utf8_text.h"

#include <gtest/gtest.h>

namespace nrec {
namespace {

TEST(Utf8Text, KeepsWhatIsValid) {
  const std::string valid = std::string("a\0\n", 3) + "\xC3\xA9 \xE6\xBC\xA2 \xF0\x9F\x98\x80 \xED\x9F\xBF";
  EXPECT_EQ(utf8_text(valid), valid);
  EXPECT_EQ(utf8_text(""), "");
}

TEST(Utf8Text, ReplacesEveryByteThatIsNot) {
  EXPECT_EQ(utf8_text("\xFF"
                      "a\x80"),
            "?a?");
  EXPECT_EQ(utf8_text("cut \xE6\xBC"), "cut ??");
  EXPECT_EQ(utf8_text("\xC0\xAF"), "??") << "a longer form than needed";
  EXPECT_EQ(utf8_text("\xE0\x80\xAF"), "???") << "a longer form than needed";
  EXPECT_EQ(utf8_text("\xED\xA0\x80"), "???") << "half of a pair of UTF-16";
  EXPECT_EQ(utf8_text("\xF4\x90\x80\x80"), "????") << "beyond U+10FFFF";
}

}  // namespace
}  // namespace nrec
