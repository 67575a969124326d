// Files as other programs write them: the same numbers give the same estimator, whatever the layout; damaged
// ones are refused.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "nrec/io/csv.h"
#include "nrec/io/npy.h"
#include "toy_problem.h"

namespace nrec::cli {
namespace {

/// A .npy file of version 1.0 made by hand, since nrec writes no such layouts.
std::string npy_file(const std::string& dtype, bool fortran, std::size_t rows, std::size_t cols,
                     const std::string& data) {
  std::string header = "{'descr': '" + dtype + "', 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': (" + std::to_string(rows) + ", " + std::to_string(cols) + "), }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  const auto length = static_cast<std::uint16_t>(header.size());
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length & 0xff) +
         static_cast<char>(length >> 8) + header + data;
}

std::string bytes_of(double value, bool big_endian) {
  char bytes[8];
  std::memcpy(bytes, &value, 8);
  std::string text(bytes, 8);
  return big_endian ? std::string(text.rbegin(), text.rend()) : text;
}

class FileFormat : public ToyTest {
 protected:
  void SetUp() override {
    ToyTest::SetUp();
    // Whole numbers up to 5: they are the same in every type.
    toy_ = toy_simulations(300);
    for (double& value : toy_.x.values()) value = std::floor(value + 0.5);
    write_npy(folder_ / "theta.npy", toy_.theta);
    write_npy(folder_ / "x.npy", toy_.x);
  }
  Outcome train() const {
    write("p.toml", kParameters + "[simulations]\nfiles = [\"theta.npy\", \"x.npy\"]\n" + kSmall);
    return run({"train", "p.toml", "--overwrite"});
  }
  std::string estimator() const {
    const Outcome outcome = train();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return content("p_run/estimator.safetensors");
  }
  Toy toy_;
};

TEST_F(FileFormat, LayoutsAndTypesOfNpyMakeNoDifference) {
  const std::string expected = estimator();
  std::string fortran, big, halves, ints;
  for (std::size_t j = 0; j < 3; ++j) {
    for (std::size_t i = 0; i < 300; ++i) fortran += bytes_of(toy_.x(i, j), false);
  }
  for (const double value : toy_.x.values()) {
    big += bytes_of(value, true);
    const auto whole = static_cast<std::int32_t>(value);
    ints.append(reinterpret_cast<const char*>(&whole), 4);
    // float16 of a whole number below 2048: sign, exponent + 15, and the leading bits of the magnitude.
    const auto size = static_cast<std::uint32_t>(std::abs(whole));
    const int exponent = std::bit_width(size) - 1;
    const std::uint32_t half =
        (whole < 0 ? 0x8000u : 0u) |
        (size ? (static_cast<std::uint32_t>(exponent + 15) << 10) | ((size << (10 - exponent)) & 0x3ffu)
              : 0u);
    halves += static_cast<char>(half & 0xff);
    halves += static_cast<char>(half >> 8);
  }
  write("x.npy", npy_file("<f8", true, 300, 3, fortran));
  EXPECT_EQ(estimator(), expected) << "Fortran order";
  write("x.npy", npy_file(">f8", false, 300, 3, big));
  EXPECT_EQ(estimator(), expected) << "big-endian";
  write("x.npy", npy_file("<f2", false, 300, 3, halves));
  EXPECT_EQ(estimator(), expected) << "float16";
  write("x.npy", npy_file("<i4", false, 300, 3, ints));
  EXPECT_EQ(estimator(), expected) << "int32";
}

TEST_F(FileFormat, ObjectArraysAndDamagedFilesAreRefused) {
  write("x.npy", npy_file("|O", false, 300, 3, std::string(100, 'x')));
  const Outcome object = train();
  EXPECT_EQ(object.code, 3);
  expect_in(object.err, "x.npy");
  expect_in(object.err, "object");
  write("x.npy", npy_file("<f8", false, 300, 3, std::string(100, 'x')));
  EXPECT_EQ(train().code, 3);
  const std::string archive = content("sims.npz");
  write("sims.npz", archive.substr(0, archive.size() / 2));
  const Outcome truncated = infer(whole_);
  EXPECT_EQ(truncated.code, 3);
  expect_in(truncated.err, "sims.npz");
}

TEST_F(FileFormat, CsvLineEndsAndBlankLinesMakeNoDifference) {
  std::vector<std::string> columns = {"mass", "rate", "a", "b", "c"};
  Matrix<double> table(300, 5);
  for (std::size_t i = 0; i < 300; ++i) {
    for (std::size_t j = 0; j < 5; ++j) table(i, j) = j < 2 ? toy_.theta(i, j) : toy_.x(i, j - 2);
  }
  const std::string text = csv_text(columns, table);
  std::string crlf;
  for (const char c : text) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  write("x_o.csv", "a,b,c\r\n2.0,3.0,0.1\r\n\r\n");
  const auto estimator_of = [&](const std::string& csv) {
    write("sims.csv", csv);
    const Outcome outcome = infer(
        kParameters + "[simulations]\nfiles = [\"sims.csv\"]\n" + kObservation + kSmall, {"--overwrite"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return content("p_run/estimator.safetensors");
  };
  const std::string expected = estimator_of(text);
  EXPECT_EQ(estimator_of(crlf + "\r\n"), expected);
  write("x_o.csv", "b,a,c\n3.0,2.0,0.1\n");
  const Outcome permuted =
      infer(kParameters + "[simulations]\nfiles = [\"sims.csv\"]\n" + kObservation + kSmall, {"--overwrite"});
  EXPECT_EQ(permuted.code, 3);
  expect_in(permuted.err, "are those of the simulations in another order; write them as a, b, c");
}

TEST_F(FileFormat, AColumnOfStatusIsADatumAndSaidToBe) {
  const std::vector<std::string> columns = {"mass", "rate", "a", "b", "status"};
  Matrix<double> table(300, 5);
  for (std::size_t i = 0; i < 300; ++i) {
    for (std::size_t j = 0; j < 5; ++j) table(i, j) = j < 2 ? toy_.theta(i, j) : toy_.x(i, j - 2);
  }
  write("sims.csv", csv_text(columns, table));
  const Outcome outcome =
      infer(kParameters + "[simulations]\nfiles = [\"sims.csv\"]\n" + kObservation + kSmall);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_in(outcome.err, "warning: sims.csv: the column \"status\" is taken for a datum of x");
}

TEST_F(FileFormat, ACommaDecimalLocaleChangesNothing) {
  // LOCPATH lets the test bring the locale along where localedef and its sources are installed.
  const std::string make =
      "localedef -i de_DE -f UTF-8 '" + (folder_ / "de_DE.UTF-8").string() + "' > /dev/null 2>&1";
  if (std::system(make.c_str()) != 0) GTEST_SKIP() << "the locale de_DE.UTF-8 cannot be made here";
  const Environment german = {{"LOCPATH", folder_.string()}, {"LC_ALL", "de_DE.UTF-8"}};
  write("p.toml", whole_);
  const Outcome plain = run({"infer", "p.toml"});
  const Outcome local = run({"infer", "p.toml", "--overwrite"}, german);
  ASSERT_EQ(local.code, 0) << local.err;
  EXPECT_EQ(local.out, plain.out);
}

TEST_F(FileFormat, SeveralFilesAreOneSetAndNumSimulationsTakesTheFirst) {
  const Toy toy = toy_simulations(400);
  const auto part = [&](const std::string& name, std::size_t first, std::size_t count) {
    Toy some{Matrix<double>(count, 2), Matrix<double>(count, 3)};
    std::copy_n(toy.theta.values().begin() + static_cast<std::ptrdiff_t>(2 * first), 2 * count,
                some.theta.values().begin());
    std::copy_n(toy.x.values().begin() + static_cast<std::ptrdiff_t>(3 * first), 3 * count,
                some.x.values().begin());
    write_simulations(some, name);
  };
  part("a.npz", 0, 150);
  part("b.npz", 150, 250);
  const auto loss = [&](const std::string& simulations) {
    const Outcome outcome =
        infer(kParameters + simulations + kObservation + kSmall, {"--overwrite", "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::size_t at = outcome.out.find("\"training.best_validation_loss\"");
    return outcome.out.substr(at, outcome.out.find('\n', at) - at);
  };
  EXPECT_EQ(loss("[simulations]\nfiles = [\"a.npz\", \"b.npz\"]\n"), loss(kSimulations));
  EXPECT_EQ(loss("[simulations]\nfiles = [\"a.npz\", \"b.npz\"]\nnum_simulations = 150\n"),
            loss("[simulations]\nfiles = [\"a.npz\"]\n"));
  const Outcome too_many = infer(
      kParameters + "[simulations]\nfiles = [\"a.npz\"]\nnum_simulations = 151\n" + kObservation + kSmall,
      {"--overwrite"});
  EXPECT_EQ(too_many.code, 3);
  expect_in(too_many.err, "a.npz: holds 150 simulations, fewer than num_simulations = 151");
}

}  // namespace
}  // namespace nrec::cli
