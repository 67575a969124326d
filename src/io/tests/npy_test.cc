#include "nrec/io/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "io/tests/fuzz.h"
#include "io/tests/temporary_folder.h"
#include "nrec/core/error.h"
#include "nrec/io/file.h"

namespace nrec {
namespace {

using namespace std::string_literals;

// A .npy file put together byte by byte, independently of the writer.
std::string npy_file(const std::string& header, const std::string& data, int major = 1) {
  std::string bytes = "\x93NUMPY"s + static_cast<char>(major) + '\0';
  const std::size_t width = major == 1 ? 2 : 4;
  for (std::size_t i = 0; i < width; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

std::string header_of(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }\n";
}

std::vector<double> values_of(const std::string& descr, const std::string& shape, const std::string& data) {
  return parse_npy(npy_file(header_of(descr, shape), data), "f").values;
}

std::string io_message(const std::string& bytes) {
  return message_of<IoError>([&] { parse_npy(bytes, "f"); });
}

std::string refusal(const std::string& descr) {
  return message_of<UnsupportedError>(
      [&] { parse_npy(npy_file(header_of(descr, "(1,)"), std::string(16, '\0')), "f"); });
}

TEST(Npy, ReadsEveryNumericTypeInBothByteOrders) {
  EXPECT_EQ(values_of("|b1", "(3,)", "\x00\x01\x02"s), (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(values_of("|i1", "(2,)", "\x80\x7f"s), (std::vector<double>{-128, 127}));
  EXPECT_EQ(values_of("|u1", "(1,)", "\xff"s), (std::vector<double>{255}));
  EXPECT_EQ(values_of("<i2", "(1,)", "\xfe\xff"s), (std::vector<double>{-2}));
  EXPECT_EQ(values_of(">i2", "(1,)", "\xff\xfe"s), (std::vector<double>{-2}));
  EXPECT_EQ(values_of("<u2", "(1,)", "\xfe\xff"s), (std::vector<double>{65534}));
  EXPECT_EQ(values_of(">i4", "(1,)", "\xff\xff\xff\xf0"s), (std::vector<double>{-16}));
  EXPECT_EQ(values_of("<u4", "(1,)", "\x01\x02\x03\x04"s), (std::vector<double>{0x04030201}));
  EXPECT_EQ(values_of("<i8", "(1,)", "\x00\x00\x00\x00\x00\x00\xe0\xff"s),
            (std::vector<double>{-9007199254740992.0}));
  EXPECT_EQ(values_of(">u8", "(1,)", "\x00\x20\x00\x00\x00\x00\x00\x00"s),
            (std::vector<double>{9007199254740992.0}));
  EXPECT_EQ(values_of("<f4", "(1,)", "\x00\x00\xc0\x3f"s), (std::vector<double>{1.5}));
  EXPECT_EQ(values_of(">f4", "(1,)", "\x3f\xc0\x00\x00"s), (std::vector<double>{1.5}));
  EXPECT_EQ(values_of(">f8", "(1,)", "\xbf\xf8\x00\x00\x00\x00\x00\x00"s), (std::vector<double>{-1.5}));
}

TEST(Npy, ReadsHalfPrecisionExactly) {
  const auto values =
      values_of("<f2", "(8,)", "\x00\x3c\x01\x00\xff\x7b\x00\x7c\x00\xfc\x00\x7e\x00\x80\xff\x03"s);
  EXPECT_EQ(values[0], 1.0);
  EXPECT_EQ(values[1], std::ldexp(1.0, -24));
  EXPECT_EQ(values[2], 65504.0);
  EXPECT_EQ(values[3], INFINITY);
  EXPECT_EQ(values[4], -INFINITY);
  EXPECT_TRUE(std::isnan(values[5]));
  EXPECT_TRUE(values[6] == 0 && std::signbit(values[6]));
  EXPECT_EQ(values[7], std::ldexp(1023.0, -24));
  EXPECT_EQ(values_of(">f2", "(1,)", "\xc0\x00"s), (std::vector<double>{-2}));
}

TEST(Npy, TurnsFortranOrderIntoRowOrder) {
  const NumericArray array =
      parse_npy(npy_file(header_of("|u1", "(2, 3)", true), "\x01\x02\x03\x04\x05\x06"s), "f");
  EXPECT_EQ(array.values, (std::vector<double>{1, 3, 5, 2, 4, 6}));
  // shape (2, 2, 2): element (i, j, k) is byte i + 2 j + 4 k.
  const NumericArray cube =
      parse_npy(npy_file(header_of("|u1", "(2, 2, 2)", true), "\x00\x01\x02\x03\x04\x05\x06\x07"s), "f");
  EXPECT_EQ(cube.values, (std::vector<double>{0, 4, 2, 6, 1, 5, 3, 7}));
}

TEST(Npy, ReadsAllVersionsShapesAndSpellings) {
  EXPECT_EQ(parse_npy(npy_file(header_of("|u1", "(1,)"), "\x07"s, 2), "f").values[0], 7);
  EXPECT_EQ(parse_npy(npy_file(header_of("|u1", "(1,)"), "\x07"s, 3), "f").values[0], 7);
  EXPECT_EQ(
      parse_npy(npy_file("{\"shape\":(2L,1L),\"descr\":\"|u1\",\"fortran_order\":False}", "ab"), "f").shape,
      (std::vector<std::size_t>{2, 1}));
  EXPECT_TRUE(parse_npy(npy_file(header_of("<f8", "()"), std::string(8, '\0')), "f").shape.empty());
  EXPECT_TRUE(parse_npy(npy_file(header_of("<f8", "(0, 3)"), ""), "f").values.empty());
}

TEST(Npy, RefusesTypesThatAreNoNumbersWithTheReason) {
  EXPECT_EQ(refusal("|O"),
            "f: type \"|O\" holds Python objects, and reading them would run code; convert with "
            "numpy.asarray(a, dtype=float)");
  EXPECT_EQ(refusal("<U5"), "f: type \"<U5\" holds text; convert with a.astype(float)");
  EXPECT_EQ(refusal("|S5"), "f: type \"|S5\" holds text; convert with a.astype(float)");
  EXPECT_EQ(refusal("|V8"),
            "f: type \"|V8\" holds raw records (void); save its fields as one plain float array");
  EXPECT_EQ(refusal("<M8[ns]"),
            "f: type \"<M8[ns]\" holds dates or durations; convert to seconds or days as float first");
  EXPECT_EQ(refusal("<m8[s]"),
            "f: type \"<m8[s]\" holds dates or durations; convert to seconds or days as float first");
  EXPECT_EQ(refusal("<c16"),
            "f: type \"<c16\" holds complex numbers; save real and imaginary parts as separate columns");
  EXPECT_EQ(refusal("<f16"),
            "f: type \"<f16\" holds long doubles, whose layout differs between machines; convert with "
            "a.astype(float)");
  EXPECT_EQ(message_of<UnsupportedError>([] {
              parse_npy(npy_file("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", ""),
                        "f");
            }),
            "f: is a structured array (several named fields); save its fields as one plain float array");
  EXPECT_EQ(io_message(npy_file(header_of("<x4", "(1,)"), "abcd")),
            "f: unknown element type \"<x4\"; bool, integers and float16, float32, float64 can be read");
  EXPECT_EQ(io_message(npy_file(header_of("<f04", "(1,)"), "abcd")),
            "f: unknown element type \"<f04\"; bool, integers and float16, float32, float64 can be read");
  EXPECT_EQ(io_message(npy_file(header_of("=f4", "(1,)"), "abcd")),
            "f: type \"=f4\" does not say its byte order; write the file again with numpy.save");
}

TEST(Npy, RefusesWholeNumbersThatFloat64CannotHold) {
  EXPECT_EQ(message_of<DomainError>([] {
              values_of("<i8", "(2,)", "\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x20\x00"s);
            }),
            "f: the whole number 9007199254740993 (element 1) is beyond 2^53 and float64 cannot hold it "
            "exactly; subtract an offset or "
            "store it as float64 yourself");
  EXPECT_THROW(values_of("<i8", "(1,)", "\x00\x00\x00\x00\x00\x00\x00\x80"s), DomainError);
  EXPECT_THROW(values_of("<u8", "(1,)", std::string(8, '\xff')), DomainError);
}

TEST(Npy, RefusesDamagedFilesBeforeAllocating) {
  EXPECT_EQ(io_message(""), "f: is not a .npy file (its first bytes differ); write it with numpy.save");
  EXPECT_EQ(io_message("\x93NUMPY\x04\x00\x00\x00"s),
            "f: .npy version 4.0 is unknown; versions 1.0, 2.0 and 3.0 can be read");
  EXPECT_EQ(io_message("\x93NUMPY\x01\x00\xff\x00{}"s),
            "f: the file ends inside its .npy header; it is truncated, copy or write it again");
  EXPECT_EQ(io_message("\x93NUMPY\x02\x00\xff\xff\xff\xff{}"s),
            "f: the file ends inside its .npy header; it is truncated, copy or write it again");
  EXPECT_EQ(io_message(npy_file(header_of("<f8", "(1,)") + std::string(10000, ' '), "12345678")),
            "f: its .npy header has 10058 bytes, more than the 10000 allowed; save a plain numeric array");
  EXPECT_EQ(io_message(npy_file(header_of("<f8", "(1000000000000,)"), "12345678")),
            "f: shape (1000000000000,) of type \"<f8\" needs 8000000000000 bytes of data but the file holds "
            "8; it is truncated, copy or write it again");
  EXPECT_EQ(io_message(npy_file(header_of("<f8", "(1,)"), "123456789")),
            "f: shape (1,) of type \"<f8\" needs 8 bytes of data but the file holds 9; it is damaged, write "
            "it again with numpy.save");
  EXPECT_EQ(io_message(npy_file(header_of("|u1", "(4294967296, 4294967296)"), "")),
            "f: the .npy header is damaged: shape (4294967296, 4294967296) is too large for any memory");
  // A dimension of 0 must not hide the overflow of the others.
  EXPECT_EQ(io_message(npy_file(header_of("|u1", "(0, 4294967296, 4294967296)"), "")),
            "f: the .npy header is damaged: shape (0, 4294967296, 4294967296) is too large for any memory");
}

std::string header_damage(const std::string& header) {
  const std::string text = io_message(npy_file(header, "12345678"));
  const std::string start = "f: the .npy header is damaged: ";
  const std::string end = "); write the file again with numpy.save";
  EXPECT_TRUE(text.starts_with(start) && text.ends_with(end)) << text;
  return text.substr(start.size(), text.size() - start.size() - end.size());
}

TEST(Npy, RefusesHeadersThatBreakTheGrammar) {
  EXPECT_EQ(header_damage("{'descr': '<f8', 'descr': '<f8'"),
            "key \"descr\" appears twice (near character 25");
  EXPECT_EQ(header_damage("{'descr': '<f8', }"),
            "one of the keys descr, fortran_order, shape is missing (near character 18");
  EXPECT_EQ(header_damage("{'order': 1}"), "unknown key \"order\" (near character 9");
  EXPECT_EQ(header_damage("{'fortran_order': 1}"), "True or False expected (near character 18");
  EXPECT_EQ(header_damage("{'shape': (-1,)}"),
            "the shape holds something other than sizes (near character 11");
  EXPECT_EQ(header_damage("{'shape': (99999999999999999999,)}"),
            "the shape holds something other than sizes (near character 11");
  EXPECT_EQ(header_damage("{'shape': (1 2)}"), "')' expected (near character 13");
  EXPECT_EQ(header_damage("{'shape"), "a quote is not closed (near character 1");
  EXPECT_EQ(header_damage("{shape"), "a quoted word expected (near character 1");
  EXPECT_EQ(header_damage(header_of("<f8", "(1,)") + "x"), "text after the closing brace (near character 58");
  std::string many = "(";
  for (int i = 0; i < 33; ++i) many += "1, ";
  EXPECT_EQ(header_damage(header_of("<f8", many + ")")), "more than 32 dimensions (near character 148");
}

TEST(Npy, SurvivesEveryDamagedHeader) {
  const std::string bytes = npy_bytes({{2, 3}, {1, 2, 3, 4, 5, 6}, "<f8"});
  EXPECT_GT(count_refusals(bytes, bytes.size(), [](const std::string& damaged) { parse_npy(damaged, "f"); }),
            500);
}

TEST(Npy, WritesWhatItReadsAndPadsTheHeaderTo64Bytes) {
  const TemporaryFolder folder;
  Matrix<double> wide(2, 3, {1, -0.0, std::numeric_limits<double>::denorm_min(), INFINITY, 0.1, 1e308});
  write_npy(folder / "a.npy", wide);
  EXPECT_EQ(to_matrix(read_npy(folder / "a.npy"), "f"), wide);
  const MatrixView<const double> part(wide.data(), 2, 2, 3);
  write_npy(folder / "a.npy", part, "<f4");
  const NumericArray narrow = read_npy(folder / "a.npy");
  EXPECT_EQ(narrow.dtype, "<f4");
  EXPECT_EQ(narrow.values, (std::vector<double>{1, -0.0, INFINITY, static_cast<float>(0.1)}));
  EXPECT_EQ((read_file(folder / "a.npy").size() - 4 * 4) % 64, 0u);
  EXPECT_EQ(parse_npy(npy_bytes({{3}, {-1, 0, 5}, "<i8"}), "f").values, (std::vector<double>{-1, 0, 5}));
}

TEST(Npy, RefusesToWriteWhatATypeCannotHold) {
  EXPECT_EQ(message_of<DomainError>([] {
              npy_bytes({{2}, {1, 0.5}, "<i8"});
            }),
            "write_npy: element 1 = 0.5 is not a whole number within 2^53, so type \"<i8\" cannot hold it; "
            "use \"<f8\"");
  EXPECT_THROW(npy_bytes({{1}, {NAN}, "<i8"}), DomainError);
  EXPECT_EQ(message_of<DomainError>([] {
              npy_bytes({{2}, {1, -1e39}, "<f4"});
            }),
            "write_npy: element 1 = -1e+39 is too large for type \"<f4\"; use \"<f8\"");
  EXPECT_EQ(message_of<UnsupportedError>([] {
              npy_bytes({{1}, {1}, "<f2"});
            }),
            "write_npy: type \"<f2\" is not written; use \"<f8\", \"<f4\" or \"<i8\"");
  EXPECT_EQ(message_of<ShapeError>([] {
              npy_bytes({{2, 2}, {1}, "<f8"});
            }),
            "write_npy: shape (2, 2) does not match 1 values");
}

TEST(NumericArray, BecomesATableWithOneRowPerFirstIndex) {
  EXPECT_EQ(to_matrix({{3}, {1, 2, 3}}, "f"), Matrix<double>(3, 1, {1, 2, 3}));
  EXPECT_EQ(to_matrix({{1, 2, 2}, {1, 2, 3, 4}}, "f"), Matrix<double>(1, 4, {1, 2, 3, 4}));
  EXPECT_EQ(
      message_of<ShapeError>([] {
        to_matrix({{}, {1}}, "f");
      }),
      "f: is a single number (shape ()) but a table with rows is needed; store shape (1, number of columns)");
  const NamedArrays arrays = {{"a", {{1}, {1}}}};
  EXPECT_EQ(find_array(arrays, "a"), &arrays[0].second);
  EXPECT_EQ(find_array(arrays, "b"), nullptr);
}

}  // namespace
}  // namespace nrec
