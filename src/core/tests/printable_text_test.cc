#include "nrec/core/printable_text.h"

#include <gtest/gtest.h>

namespace nrec {
namespace {

TEST(PrintableText, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable_text("a\tb\nc \xC3\xA9 \xE6\xBC\xA2"), "a\tb\nc \xC3\xA9 \xE6\xBC\xA2");
  EXPECT_EQ(printable_text(std::string_view("\x00\x1b[1m\x7f\r", 7)), "\\x00\\x1b[1m\\x7f\\x0d");
  // Cut sequences, overlong forms, surrogates, numbers beyond the last character, C1 controls.
  EXPECT_EQ(printable_text("\xC3"), "\\xc3");
  EXPECT_EQ(printable_text("\xC0\xAF \xED\xA0\x80 \xF5\x80\x80\x80 \xC2\x85"),
            "\\xc0\\xaf \\xed\\xa0\\x80 \\xf5\\x80\\x80\\x80 \\xc2\\x85");
}

TEST(PrintableText, IsOnOneLineInQuotes) {
  EXPECT_EQ(one_line_text("a\tb\nc"), "a\\x09b\\x0ac");
  EXPECT_EQ(quoted_text("a\x1b[2J"), "\"a\\x1b[2J\"");
  EXPECT_EQ(quoted_excerpt("a\nb"), "\"a\\x0ab\"");
  EXPECT_EQ(quoted_excerpt(std::string(100, 'a')), "\"" + std::string(40, 'a') + "\" ...");
}

TEST(PrintableText, FindsControlCharacters) {
  for (const char* text : {"a\nb", "\t", "\x1b[31m", "a\x7f", "\xC2\x9B", "\xFF\r"})
    EXPECT_TRUE(has_control_character(text)) << one_line_text(text);
  EXPECT_TRUE(has_control_character(std::string_view("a\0b", 3)));
  for (const char* text : {"", "a b", "log \xCE\xB8", "\xC2\xA0", "\xE9t\xE9", "\xC2"})
    EXPECT_FALSE(has_control_character(text)) << text;
}

}  // namespace
}  // namespace nrec
