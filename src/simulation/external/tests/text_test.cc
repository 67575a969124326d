// Numbers and messages of simulators as text.
#include <clocale>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "simulation/external/message_tail.h"
#include "simulation/external/number_text.h"
#include "simulation/external/tests/external_fixture.h"

namespace nrec::simulation {
namespace {

std::string text_of_number(double value) {
  std::string text;
  append_number(text, value);
  return text;
}

std::string problem_in(std::string_view text) {
  std::vector<double> values;
  return read_numbers(text, values);
}

TEST(NumberText, ReadsBackWhatItWrote) {
  std::mt19937_64 random(5);
  std::vector<double> values;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isnan(value)) value = -0.0;
    ASSERT_EQ(read_numbers(text_of_number(value), values), "");
    ASSERT_EQ(values.size(), 1u);
    ASSERT_EQ(std::memcmp(&values[0], &value, sizeof(value)), 0) << text_of_number(value);
  }
}

TEST(NumberText, IsShortestWhateverTheLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // where it is installed
  EXPECT_EQ(text_of_number(0.1), "0.1");
  EXPECT_EQ(text_of_number(1e22), "1e+22");
  std::vector<double> values;
  EXPECT_EQ(read_numbers("0.5 1e400", values), "");
  EXPECT_EQ(values, (std::vector<double>{0.5, INFINITY}));
  std::setlocale(LC_ALL, before.c_str());
}

TEST(NumberText, ReadsAllSpellings) {
  std::vector<double> values;
  EXPECT_EQ(read_numbers(" 1\t-2.5\r\n+3e2 .5 5. 1E-3\n", values), "");
  EXPECT_EQ(values, (std::vector<double>{1, -2.5, 300, 0.5, 5, 0.001}));
  EXPECT_EQ(read_numbers("nan NaN -nan inf Infinity -INF 1e999 -1e999 1e-999", values), "");
  ASSERT_EQ(values.size(), 9u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(values[static_cast<std::size_t>(i)]));
  EXPECT_EQ(std::vector<double>(values.begin() + 3, values.end()),
            (std::vector<double>{INFINITY, INFINITY, -INFINITY, INFINITY, -INFINITY, 0.0}));
  EXPECT_EQ(read_numbers("", values), "");
  EXPECT_TRUE(values.empty());
}

TEST(NumberText, SaysWhatIsNoNumber) {
  EXPECT_EQ(problem_in("1 2 mass"),
            "text \"mass\" after 2 numbers; x must be numbers only, other words belong on stderr");
  EXPECT_EQ(problem_in("1 2x"),
            "text \"2x\" after 1 number; x must be numbers only, other words belong on stderr");
  EXPECT_EQ(
      problem_in("1,5"),
      "\"1,5\" has a comma; numbers have a decimal point (LC_NUMERIC=C gives one) and blanks between them");
  for (const char* text :
       {"0x10", "1.0D+00", "--1", "+-1", "+", "-", "1e", "1..2", "1;2", "[1", "None", "\xff", "1_000"})
    EXPECT_NE(problem_in(text), "") << text;
}

TEST(MessageTail, KeepsTheLastLines) {
  MessageTail tail;
  std::string all;
  for (int i = 0; i < 5000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    all += line;
    tail.add(line);
    const std::string kept = tail.text();
    ASSERT_LE(kept.size(), MessageTail::kBytes);
    ASSERT_TRUE(all.ends_with(kept));
    ASSERT_TRUE(kept.starts_with("line "));
    ASSERT_GT(kept.size() + 20, std::min(all.size(), MessageTail::kBytes));
  }
  tail.add(std::string(100000, 'x'));
  EXPECT_EQ(tail.text(), std::string(MessageTail::kBytes, 'x'));
  tail.add("\nend");
  EXPECT_EQ(tail.text(), "end");
  tail.forget();
  EXPECT_EQ(tail.text(), "");
}

}  // namespace
}  // namespace nrec::simulation
