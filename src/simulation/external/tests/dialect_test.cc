// Requests and answers as bytes.
#include "simulation/external/dialect.h"

#include <algorithm>

#include "nrec/io/npy.h"
#include "simulation/external/simulator_setup.h"
#include "simulation/external/tests/external_fixture.h"

namespace nrec::simulation {
namespace {

using Kind = Answer::Kind;

Answer read(const Dialect& dialect, const std::string& output, const Rows& rows, XShape& shape) {
  return dialect.read_answer(output, rows.tasks, shape);
}

std::string frame(std::vector<std::size_t> shape, const std::string& dtype = "<f8") {
  NumericArray array{std::move(shape), {}, dtype};
  std::size_t count = 1;
  for (const std::size_t extent : array.shape) count *= extent;
  for (std::size_t i = 0; i < count; ++i) array.values.push_back(static_cast<double>(i));
  return npy_bytes(array);
}

TEST(NpyDialect, AsksWithSeedsAndTheta) {
  const Rows rows({1.5, 2.5, 3.5});
  std::string bytes;
  make_npy_dialect(256)->append_request(bytes, rows.tasks);
  const std::size_t second = bytes.find("\x93NUMPY", 1);
  const NumericArray seeds = parse_npy(bytes.substr(0, second), "seeds");
  const NumericArray theta = parse_npy(bytes.substr(second), "theta");
  EXPECT_EQ(seeds.dtype, "<i8");
  EXPECT_EQ(seeds.shape, std::vector<std::size_t>{3});
  EXPECT_EQ(seeds.values, (std::vector<double>{11, 12, 13}));
  EXPECT_EQ(theta.dtype, "<f8");
  EXPECT_EQ(theta.shape, (std::vector<std::size_t>{3, 2}));
  EXPECT_EQ(theta.values, rows.theta.values());
}

TEST(NpyDialect, ReadsFramesOfAllTypesAndShapes) {
  const Rows rows({1.0, 2.0});
  const auto dialect = make_npy_dialect(256);
  for (const char* dtype : {"<f8", "<f4", "<i8"}) {
    XShape shape(std::nullopt);
    const Answer answer = read(*dialect, frame({2, 3, 2}, dtype) + "rest", rows, shape);
    ASSERT_EQ(answer.kind, Kind::rows) << answer.problem;
    EXPECT_EQ(answer.bytes, frame({2, 3, 2}, dtype).size());
    EXPECT_EQ(shape.shape(), (std::vector<std::size_t>{3, 2}));
    EXPECT_EQ(answer.rows[1].x, (std::vector<double>{6, 7, 8, 9, 10, 11}));
  }
  XShape scalar(std::nullopt);
  const Answer answer = read(*dialect, frame({2}), rows, scalar);
  EXPECT_EQ(answer.rows[1].x, std::vector<double>{1});
  EXPECT_EQ(scalar.shape(), std::vector<std::size_t>{1});
}

TEST(NpyDialect, WaitsForTheLastByte) {
  const Rows rows({1.0, 2.0});
  const auto dialect = make_npy_dialect(256);
  const std::string whole = frame({2, 3});
  XShape shape(std::vector<std::size_t>{3});
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    ASSERT_EQ(read(*dialect, whole.substr(0, bytes), rows, shape).kind, Kind::incomplete) << bytes;
  EXPECT_EQ(read(*dialect, whole, rows, shape).kind, Kind::rows);
}

TEST(NpyDialect, JudgesTheHeaderBeforeTheDataAreThere) {
  const Rows rows({1.0, 2.0});
  const auto dialect = make_npy_dialect(256);
  XShape shape(std::vector<std::size_t>{3});
  const auto problem = [&](const std::string& output) { return read(*dialect, output, rows, shape).problem; };
  const auto header = [](const std::vector<std::size_t>& extents) { return frame(extents).substr(0, 128); };
  EXPECT_EQ(problem(header({3, 3})), "a frame of shape (3, 3), (2, 3) expected");
  EXPECT_EQ(problem(header({2, 4})), "a frame of shape (2, 4), (2, 3) expected");
  EXPECT_EQ(problem(header({6})), "a frame of shape (6,), (2, 3) expected");
  EXPECT_EQ(problem(header({})), "a frame of shape (), (2, 3) expected");
  std::string huge = header({2, 3});
  huge.replace(huge.find("(2, 3), }"), 27, "(2, 4611686018427387904), }");
  XShape unknown(std::nullopt);
  EXPECT_EQ(read(*dialect, huge, rows, unknown).problem,
            "a frame of shape (2, 4611686018427387904), more than any x has");
  std::string objects = header({2, 3});
  objects.replace(objects.find("<f8"), 3, "|O8");
  expect_in(problem(objects), "holds Python objects");
}

TEST(NpyDialect, TakesNothingElseForAFrame) {
  const Rows rows({1.0, 2.0});
  const auto dialect = make_npy_dialect(256);
  XShape shape(std::vector<std::size_t>{3});
  EXPECT_EQ(read(*dialect, "hello", rows, shape).problem, "\"hello\" instead of a .npy frame");
  EXPECT_EQ(read(*dialect, "\n", rows, shape).kind, Kind::violation);
  // Any damaged byte of the header: a violation, or still the same numbers; never other numbers, never an exception.
  const std::string whole = frame({2, 3});
  for (std::size_t place = 0; place < 128; ++place) {
    for (const char byte : {'\0', '\xff', '9', '(', ' '}) {
      std::string damaged = whole;
      damaged[place] = byte;
      const Answer answer = read(*dialect, damaged, rows, shape);
      if (answer.kind != Kind::rows) continue;
      EXPECT_EQ(answer.rows[1].x, (std::vector<double>{3, 4, 5})) << place;
    }
  }
}

// Sizes of the requests for `left` rows, when a request for n rows takes seconds(n).
std::vector<std::size_t> request_sizes(Dialect& dialect, std::size_t left, double (*seconds)(double)) {
  std::vector<std::size_t> sizes;
  for (std::size_t before = 0; left > 0; left -= before) {
    before = dialect.request_rows(left, before);
    sizes.push_back(before);
    dialect.note_time(before, seconds(static_cast<double>(before)));
  }
  return sizes;
}

TEST(NpyDialect, AsksForAsManyRowsAsPayOff) {
  const auto largest = [](double (*seconds)(double)) {
    const auto dialect = make_npy_dialect(256);
    const std::vector<std::size_t> sizes = request_sizes(*dialect, 5000, seconds);
    return *std::max_element(sizes.begin(), sizes.end());
  };
  EXPECT_EQ(largest([](double rows) { return 1e-5 * rows; }), 256u);
  EXPECT_EQ(largest([](double) { return 10.0; }), 256u) << "all rows at once in the same time";
  EXPECT_LE(largest([](double rows) { return 0.3 * rows; }), 8u);
  EXPECT_EQ(largest([](double rows) { return 100.0 * rows; }), 2u);
}

TEST(NpyDialect, NeighboursDifferInTheirNumberOfRows) {
  for (const std::size_t batch_rows : {1u, 2u, 7u, 256u}) {
    const auto dialect = make_npy_dialect(batch_rows);
    const std::vector<std::size_t> sizes =
        request_sizes(*dialect, 3000, [](double rows) { return 1e-4 * rows; });
    std::size_t equal = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_GE(sizes[i], 1u);
      EXPECT_LE(sizes[i], batch_rows);
      if (i > 0 && sizes[i] == sizes[i - 1]) ++equal;
    }
    // Ones cannot differ.
    EXPECT_LE(equal, batch_rows == 1 ? 2999u : 1u) << batch_rows;
  }
  EXPECT_TRUE(make_npy_dialect(256)->vouches(2, 1));
  EXPECT_FALSE(make_npy_dialect(256)->vouches(2, 2));
}

// A dialect of lines with this template.
std::unique_ptr<Dialect> lines(const std::string& line) {
  ExternalSimulatorOptions options;
  options.command = "cat";
  options.line = line;
  return make_lines_dialect(read_setup(options, {"a", "b"}));
}

TEST(LinesDialect, AsksByItsTemplate) {
  const Rows rows({1.5}, 77);
  std::string bytes;
  lines("{row}: {b};{a} seed={seed} \\")->append_request(bytes, rows.tasks);
  EXPECT_EQ(bytes, "77: 0.3333333333333333;1.5 seed=11 \\\n");
}

TEST(LinesDialect, WaitsForTheEndOfTheLine) {
  const Rows rows({1.5}, 77);
  XShape shape(std::vector<std::size_t>{2});
  const auto dialect = lines("{row} {theta}");
  EXPECT_EQ(read(*dialect, "", rows, shape).kind, Kind::incomplete);
  EXPECT_EQ(read(*dialect, "77 1 2.5", rows, shape).kind, Kind::incomplete);
  const Answer answer = read(*dialect, "77 1 2.5\r\n78 3", rows, shape);
  EXPECT_EQ(answer.kind, Kind::rows);
  EXPECT_EQ(answer.bytes, 10u);
  EXPECT_EQ(answer.rows[0].x, (std::vector<double>{1, 2.5}));
}

TEST(LinesDialect, TellsRowsThatFailFromLinesThatAreNoAnswer) {
  const Rows rows({1.5}, 77);
  XShape shape(std::vector<std::size_t>{2});
  const auto with_row = lines("{row} {theta}");
  const auto without = lines("{theta}");
  EXPECT_EQ(read(*with_row, "77 1\n", rows, shape).rows[0].reason, "1 number, 2 expected");
  EXPECT_EQ(read(*without, "1\n", rows, shape).kind, Kind::violation);
  EXPECT_EQ(read(*without, "\n", rows, shape).problem, "no numbers, 2 expected");
  EXPECT_EQ(read(*with_row, "76 1 2\n", rows, shape).kind, Kind::repeat);
  EXPECT_EQ(read(*with_row, "78 1 2\n", rows, shape).kind, Kind::violation);
  for (const char* text : {"\n", "row 77 1 2\n", "77.0 1 2\n", "-77 1 2\n", "+77 1 2\n", "77, 1 2\n"})
    expect_in(read(*with_row, text, rows, shape).problem, "does not begin with the number of the row");
  EXPECT_EQ(read(*without, "refused\n", rows, shape).rows[0].reason, "refused");
  EXPECT_EQ(read(*with_row, "77 refused by\x1bme\n", rows, shape).rows[0].reason, "refused: by\\x1bme");
}

}  // namespace
}  // namespace nrec::simulation
