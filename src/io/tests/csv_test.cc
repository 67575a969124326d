#include "nrec/io/csv.h"

#include <bzlib.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "io/tests/fuzz.h"
#include "io/tests/temporary_folder.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"

namespace nrec {
namespace {

using Names = std::vector<std::string>;

std::string io_message(const std::string& text) {
  return message_of<IoError>([&] { parse_csv(text, "f"); });
}

std::string compressed(const std::string& text) {
  std::string out(text.size() + 1000, '\0');
  auto length = static_cast<unsigned>(out.size());
  EXPECT_EQ(BZ2_bzBuffToBuffCompress(out.data(), &length, const_cast<char*>(text.data()),
                                     static_cast<unsigned>(text.size()), 1, 0, 0),
            BZ_OK);
  out.resize(length);
  return out;
}

TEST(Csv, ReadsTablesWithAndWithoutHeader) {
  const CsvTable table = parse_csv("a, \"b, \"\"c\"\"\"\n1,2\n-3e2,+.5\n", "f");
  EXPECT_EQ(table.columns, (Names{"a", "b, \"c\""}));
  EXPECT_EQ(table.values, Matrix<double>(2, 2, {1, 2, -300, 0.5}));
  EXPECT_TRUE(parse_csv("1,2", "f").columns.empty());
  EXPECT_EQ(parse_csv("1,2", "f").values, Matrix<double>(1, 2, {1, 2}));
  EXPECT_EQ(parse_csv("# a,b\n1,2\n", "f").columns, (Names{"a", "b"}));
  EXPECT_EQ(parse_csv("a,b\n", "f").values.rows(), 0u);
}

TEST(Csv, AcceptsMarksLineEndsSpacesSeparatorsAndQuotes) {
  const Matrix<double> expected(2, 2, {1, 2, 3, 4});
  EXPECT_EQ(parse_csv("\xEF\xBB\xBF"
                      "1,2\r\n3,4\r\n\r\n  \r\n",
                      "f")
                .values,
            expected);
  EXPECT_EQ(parse_csv(" 1 ,  2\n 3,4 ", "f").values, expected);
  EXPECT_EQ(parse_csv("1\t2\n3\t4\n", "f").values, expected);
  EXPECT_EQ(parse_csv("\n1;2\n3; 4\n", "f").values, expected);
  EXPECT_EQ(parse_csv("\"1\",\"2\"\n3,\"4\"\n", "f").values, expected);
  EXPECT_EQ(parse_csv("\"two words\",b\n1,2\n", "f").columns[0], "two words");
}

TEST(Csv, NanAndInfinityAreValuesAndDoNotMakeAHeader) {
  const CsvTable table = parse_csv("nan,inf\n-inf,-NaN\nInfinity,1e-400\n", "f");
  ASSERT_TRUE(table.columns.empty());
  EXPECT_TRUE(std::isnan(table.values(0, 0)) && std::isnan(table.values(1, 1)));
  EXPECT_EQ(table.values(0, 1), INFINITY);
  EXPECT_EQ(table.values(1, 0), -INFINITY);
  EXPECT_EQ(table.values(2, 0), INFINITY);
  EXPECT_EQ(table.values(2, 1), 0.0);
  // The decimal exponent is that of the digits and the power together.
  EXPECT_EQ(parse_csv("0." + std::string(400, '0') + "1", "f").values(0, 0), 0.0);
  EXPECT_TRUE(std::signbit(parse_csv("-1e-99999999999", "f").values(0, 0)));
  EXPECT_THROW(parse_csv("1\n1" + std::string(400, '0') + "e-1\n", "f"), IoError);
  EXPECT_THROW(parse_csv("1\n0.01e+99999999999\n", "f"), IoError);
  EXPECT_EQ(parse_csv("4.9e-324", "f").values(0, 0), std::numeric_limits<double>::denorm_min());
}

TEST(Csv, RefusesWithLineAndColumn) {
  EXPECT_EQ(io_message(""), "f: holds no table, only blank lines or nothing; check that it was written");
  EXPECT_EQ(io_message("\n \n"), "f: holds no table, only blank lines or nothing; check that it was written");
  EXPECT_EQ(io_message("a,b\n1,2\n3\n"),
            "f: line 3: has 1 cells but the first line has 2; every row needs the same number (nan for a "
            "missing value)");
  EXPECT_EQ(io_message("a,b\n1,2\n\n3,4\n"),
            "f: line 3: is blank between rows; remove it, or write nan for a missing value");
  EXPECT_EQ(io_message("a,b\n1,2x\n"),
            "f: line 2: column 2: \"2x\" is not a number that float64 can hold; write a number with a "
            "decimal point, or nan");
  EXPECT_EQ(io_message("1,2\n1,1e999\n"),
            "f: line 2: column 2: \"1e999\" is not a number that float64 can hold; write a number with a "
            "decimal point, or nan");
  EXPECT_EQ(io_message("a,b\n1,\n"), "f: line 2: column 2 is empty; write nan for a missing value");
  EXPECT_EQ(io_message(",\n"), "f: line 1: column 1 is empty; write nan for a missing value");
  EXPECT_EQ(io_message("a,b\n1,+-2\n"),
            "f: line 2: column 2: \"+-2\" is not a number that float64 can hold; write a number with a "
            "decimal point, or nan");
  EXPECT_EQ(io_message("a,\"b\n1,2\n"), "f: line 1: a quote is opened and never closed");
  EXPECT_EQ(io_message("a,\"b\"c\n1,2\n"),
            "f: line 1: text follows a closing quote; write \"\" for a quote inside quotes");
  EXPECT_EQ(io_message(",a\n0,1\n"),
            "f: line 1: column 1 has no name; name it, or leave it out if it is an index (pandas: "
            "to_csv(..., index=False))");
  EXPECT_EQ(io_message("a,b,a\n"), "f: line 1: columns 1 and 3 are both named \"a\"; rename one");
  EXPECT_EQ(io_message(std::string("1\0", 2)),
            "f: holds zero bytes and so is no text; is it a binary file with the wrong name?");
  EXPECT_EQ(io_message("\xFF\xFE"
                       "1"),
            "f: is text in UTF-16; save it as UTF-8 (plain \"CSV\" in a spreadsheet)");
}

TEST(Csv, ExplainsDecimalCommasAndSpaces) {
  const std::string commas = "decimal commas are not read; write numbers with a decimal point";
  EXPECT_EQ(io_message("1,5;2,5\n"), "f: line 1: " + commas);
  EXPECT_EQ(io_message("a;b\n1,5;2\n"),
            "f: line 2: column 1: \"1,5\" is not a number that float64 can hold; " + commas);
  EXPECT_EQ(io_message("a,b\n1,5,2,5\n"), "f: line 2: has 4 cells but the first line has 2; " + commas);
  const std::string spaces =
      "the numbers are separated by spaces; separate them by commas (numpy.savetxt(..., delimiter=\",\"))";
  EXPECT_EQ(io_message("1.0 2.0\n"), "f: line 1: " + spaces);
  EXPECT_EQ(io_message("a b\n1.0 2.0\n"),
            "f: line 2: column 1: \"1.0 2.0\" is not a number that float64 can hold; " + spaces);
}

TEST(Csv, ACommaLocaleChangesNothing) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  bool found = false;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "nl_NL.UTF-8"})
    found = found || std::setlocale(LC_ALL, name);
  if (!found) GTEST_SKIP() << "no locale with decimal commas is installed";
  const double value = parse_csv("0.5\n", "f").values(0, 0);
  const std::string text = csv_text({}, Matrix<double>(1, 1, {0.5}));
  std::setlocale(LC_ALL, before.c_str());
  EXPECT_EQ(value, 0.5);
  EXPECT_EQ(text, "0.5\n");
}

TEST(Csv, ReadsBzip2InOneOrMoreStreamsWithinABound) {
  const TemporaryFolder folder;
  write_file(folder / "t.csv.bz2", compressed("a\n1\n") + compressed("2\n"));
  EXPECT_EQ(read_csv(folder / "t.csv.bz2").values, Matrix<double>(2, 1, {1, 2}));
  const auto message = [&](std::uint64_t limit) {
    return without_path(message_of<IoError>([&] { read_csv(folder / "t.csv.bz2", limit); }), folder);
  };
  std::string zeros;
  for (int i = 0; i < 100000; ++i) zeros += "0\n";
  write_file(folder / "t.csv.bz2", compressed(zeros));
  EXPECT_EQ(message(100000), "t.csv.bz2: inflates to more than the 100000 bytes allowed; split the table");
  const std::string good = compressed("1\n");
  write_file(folder / "t.csv.bz2", good.substr(0, good.size() - 1));
  EXPECT_EQ(message(1000),
            "t.csv.bz2: the bzip2 data ends too early; it is truncated, copy or compress the file again");
  write_file(folder / "t.csv.bz2", good + "x");
  EXPECT_EQ(message(1000), "t.csv.bz2: bytes follow the bzip2 data; copy or compress the file again");
  std::string flipped = good;
  flipped[12] ^= 4;
  write_file(folder / "t.csv.bz2", flipped);
  EXPECT_EQ(message(1000), "t.csv.bz2: the bzip2 data is damaged (code -4); copy or compress the file again");
  write_file(folder / "t.csv.bz2", "1,2\n");
  EXPECT_EQ(message(1000),
            "t.csv.bz2: is named .bz2 but does not hold bzip2 data; copy it again, or rename it if it is "
            "plain text");
}

TEST(Csv, WritesNumbersThatReadBackAsTheSameBits) {
  const TemporaryFolder folder;
  const Matrix<double> values(
      3, 2, {0.1, -1e-300, 1.0 / 3, 123456789, std::numeric_limits<double>::max(), -INFINITY});
  const Names names = {"a,b", "1"};
  write_csv(folder / "t.csv", names, values);
  const CsvTable table = read_csv(folder / "t.csv");
  EXPECT_EQ(table.columns, names);
  EXPECT_EQ(table.values, values);
  EXPECT_EQ(csv_text(Names{"q\"", "b"}, Matrix<double>(1, 2, {0.1, 1e22})), "\"q\"\"\",b\n0.1,1e+22\n");
}

TEST(Csv, RefusesNamesThatDoNotFitTheTable) {
  const Matrix<double> values(1, 2, {1, 2});
  EXPECT_EQ(message_of<ShapeError>([&] { csv_text(Names{"a"}, values); }),
            "write_csv: 1 column names for 2 columns; give one name per column");
  EXPECT_EQ(message_of<ConfigError>([&] {
              csv_text(Names{"a", ""}, values);
            }),
            "write_csv: column 2 has no name; name every column");
  EXPECT_EQ(message_of<ConfigError>([&] {
              csv_text(Names{"a", "a"}, values);
            }),
            "write_csv: the column name \"a\" is used twice; rename one");
}

TEST(Csv, SurvivesEveryDamagedByte) {
  const std::string text = "\"a\",b;c\n1.5,nan\n-2e5,3\n";
  int parsed = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int replacement = 0; replacement < 256; ++replacement) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(replacement);
      for (const std::string& input : {damaged, damaged.substr(0, at + 1)}) {
        try {
          parse_csv(input, "f");
          ++parsed;
        } catch (const Error&) {
        }
      }
    }
  }
  EXPECT_GT(parsed, 100);
}

TEST(Csv, ReadsTheBenchmarksFiles) {
  const char* shared = std::getenv("NREC_SHARED");
  const std::filesystem::path root = shared ? shared : NREC_SOURCE_DIR "/../shared";
  const auto folder = root / "sbibm/tasks/gaussian_linear/files/num_observation_1";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  const CsvTable draws = read_csv(folder / "reference_posterior_samples.csv.bz2");
  EXPECT_EQ(draws.values.rows(), 10000u);
  EXPECT_EQ(draws.values.cols(), 10u);
  EXPECT_EQ(draws.columns.at(0), "parameter_1");
  EXPECT_EQ(read_csv(folder / "observation.csv").values.cols(), 10u);
}

TEST(Csv, RefusesNamesThatATerminalWouldObey) {
  EXPECT_EQ(io_message("a,\"b\nc\"\n1,2\n"),
            "f: line 1: column 2 is named \"b\\x0ac\", which holds a control character; rename it");
  EXPECT_EQ(io_message("a,b\n1,\x1b[31m\n"),
            "f: line 2: column 2: \"\\x1b[31m\" is not a number that float64 can hold; write a number with a "
            "decimal point, or nan");
  EXPECT_EQ(message_of<ConfigError>([] { csv_text(Names{"a\tb"}, Matrix<double>(1, 1, {1})); }),
            "write_csv: the column name \"a\\x09b\" holds a control character; rename it");
}

}  // namespace
}  // namespace nrec
