#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "io/byte_source.h"
#include "io/npy_header.h"
#include "io/sizes.h"
#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"
#include "nrec/io/npy.h"
#include "simulation/external/dialect.h"
#include "simulation/external/message_tail.h"

namespace nrec::simulation {
namespace {

// A request that takes longer does not grow without need: what is lost or repeated when the program fails is then
// little.
constexpr double kShortRequest = 1.0;
// Less than this share of a row's former time is a gain.
constexpr double kCheaper = 0.8;
constexpr std::size_t kMostHeaderBytes = 16384;

// Bytes up to the data of the .npy frame at the front, 0 while they are not all there.
// Errors   IoError: it is no .npy frame
std::size_t header_bytes(std::string_view output) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  const std::size_t common = std::min(output.size(), kMagic.size());
  if (output.substr(0, common) != kMagic.substr(0, common))
    throw IoError(fmt::format("{} instead of a .npy frame", quoted_excerpt(output.substr(0, 64))));
  constexpr std::size_t kVersionPlace = 6, kLengthPlace = 8;
  if (output.size() <= kVersionPlace) return 0;
  const std::size_t width = output[kVersionPlace] == 1 ? 2 : 4;
  if (output.size() < kLengthPlace + width) return 0;
  std::size_t length = 0;
  for (std::size_t i = width; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(output[kLengthPlace + i]);
  if (length > kMostHeaderBytes) throw IoError("a .npy frame with a damaged header");
  const std::size_t bytes = kLengthPlace + width + length;
  return output.size() < bytes ? 0 : bytes;
}

// protocol = "npy": seeds [n] and theta [n, D] in, x [n, ...] out.
class NpyDialect final : public Dialect {
 public:
  explicit NpyDialect(std::size_t batch_rows) : batch_rows_(batch_rows) {}

  Proof proof() const override { return Proof::by_next; }
  bool names_rows() const override { return false; }
  // A frame has as many rows as a request that the program has read. After a stray frame, the next to be read is the
  // real answer to the earlier request, which has the wrong number of rows, when requests differ in it.
  bool vouches(std::size_t rows_before, std::size_t rows) const override { return rows_before != rows; }

  std::size_t request_rows(std::size_t rows_left, std::size_t rows_before) const override {
    const std::size_t rows = std::min({rows_, batch_rows_, rows_left});
    return rows == rows_before && rows > 1 ? rows - 1 : rows;  // neighbours differ
  }

  // Grows as long as requests are short, or rows get cheaper by it: a program that works on all rows at once.
  void note_time(std::size_t rows, double seconds) override {
    last_seconds_ = seconds;
    if (rows_ >= batch_rows_ || 2 * rows < rows_) return;
    const double seconds_per_row = seconds / static_cast<double>(rows);
    if (rows_ > 1 && seconds > kShortRequest && seconds_per_row > kCheaper * cheapest_row_) return;
    cheapest_row_ = seconds_per_row;
    rows_ *=
        2;  // powers of two and one less: programs that compile anew for every number of rows meet few of them
  }

  // One is worked on, one waits; where a request takes long, the pause between two does not matter.
  std::size_t most_requests(double) const override { return last_seconds_ > kShortRequest ? 1 : 2; }

  void append_request(std::string& bytes, std::span<const RowTask> tasks) const override {
    NumericArray seeds{{tasks.size()}, {}, "<i8"};
    NumericArray theta{{tasks.size(), tasks[0].theta.size()}, {}};
    for (const RowTask& task : tasks) {
      seeds.values.push_back(task.seed);
      theta.values.insert(theta.values.end(), task.theta.begin(), task.theta.end());
    }
    bytes += npy_bytes(seeds);
    bytes += npy_bytes(theta);
  }

  Answer read_answer(std::string_view output, std::span<const RowTask> tasks,
                     XShape& x_shape) const override {
    Answer answer;
    try {
      const std::size_t before = output.empty() ? 0 : header_bytes(output);
      if (before != 0) read_frame(answer, output, before, tasks, x_shape);
    } catch (const Error& error) {
      answer.kind = Answer::Kind::violation;
      answer.problem = error.what();
    }
    return answer;
  }

 private:
  // Header, type, shape and size are judged before anything is waited for or allocated.
  static void read_frame(Answer& answer, std::string_view output, std::size_t before,
                         std::span<const RowTask> tasks, XShape& x_shape) {
    io::MemorySource source(output.substr(0, before));
    const io::NpyHeader header = io::read_npy_header(source, "x");
    const io::NpyType type = io::parse_npy_type(header.dtype, "x");
    const std::vector<std::size_t>& shape = header.shape;
    const bool has_rows = !shape.empty() && shape[0] == tasks.size();
    const std::vector<std::size_t> of_row = row_shape(shape);
    if (!has_rows || (x_shape.is_known() && of_row != x_shape.shape())) {
      throw ShapeError(fmt::format("a frame of shape {}, {} expected", shape_text(shape),
                                   expected_text(tasks.size(), x_shape)));
    }
    const auto count = io::element_count(shape, type.bytes);
    if (!count || *count == 0 || *count * type.bytes > tasks.size() * x_shape.most_bytes())
      throw ShapeError(fmt::format("a frame of shape {}, more than any x has", shape_text(shape)));
    if (output.size() < before + *count * type.bytes) return;
    answer.bytes = before + *count * type.bytes;
    const NumericArray frame = parse_npy(output.substr(0, answer.bytes), "x");
    const std::size_t per_row = *count / tasks.size();
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      RowResult& result = answer.rows.emplace_back();
      result.row = tasks[i].row;
      const auto start = frame.values.begin() + static_cast<std::ptrdiff_t>(i * per_row);
      x_shape.accept(result, NumericArray{of_row, {start, start + static_cast<std::ptrdiff_t>(per_row)}});
    }
    answer.kind = Answer::Kind::rows;
  }

  // Of one row; a number per row is an x of one value.
  static std::vector<std::size_t> row_shape(const std::vector<std::size_t>& shape) {
    if (shape.size() <= 1) return {1};
    return {shape.begin() + 1, shape.end()};
  }
  static std::string expected_text(std::size_t rows, const XShape& x_shape) {
    if (!x_shape.is_known()) return fmt::format("({}, ...)", rows);
    std::vector<std::size_t> shape = x_shape.shape();
    shape.insert(shape.begin(), rows);
    return shape_text(shape);
  }

  std::size_t batch_rows_;
  std::size_t rows_ = 1;
  double cheapest_row_ = std::numeric_limits<double>::infinity();
  double last_seconds_ = 0.0;
};

}  // namespace

std::unique_ptr<Dialect> make_npy_dialect(std::size_t batch_rows) {
  return std::make_unique<NpyDialect>(batch_rows);
}

}  // namespace nrec::simulation
