#include "simulation/external/row_answer.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <utility>

#include "nrec/core/error.h"
#include "nrec/io/npy.h"
#include "simulation/external/number_text.h"

namespace nrec::simulation {
namespace {

constexpr std::size_t kFixedBytes = 1'000'000;
constexpr std::size_t kBytesPerValue = 64;
// Before the shape is known: more than any simulator writes for one row, less than would hurt.
constexpr std::size_t kBytesOfUnknown = 64'000'000;

std::size_t product(const std::vector<std::size_t>& shape) {
  std::size_t count = 1;
  for (const std::size_t extent : shape) count *= extent;
  return count;
}

std::string numbers_text(std::size_t count) {
  return fmt::format("{} number{}", count, count == 1 ? "" : "s");
}

}  // namespace

std::size_t XShape::num_values() const { return shape_ ? product(*shape_) : 0; }

std::size_t XShape::most_bytes() const {
  return shape_ ? kFixedBytes + kBytesPerValue * num_values() : kBytesOfUnknown;
}

void XShape::set_values(RowResult& result, std::vector<double> values,
                        const std::vector<std::size_t>& shape) {
  const bool is_finite =
      std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  if (!shape_ && is_finite) shape_ = shape;
  result.status = is_finite ? RowStatus::ok : RowStatus::non_finite;
  result.reason.clear();
  if (!is_finite) {
    const auto bad =
        std::find_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
    result.reason = fmt::format("x[{}] = {}", bad - values.begin(), *bad);
  }
  result.x = std::move(values);
}

void XShape::accept(RowResult& result, std::vector<double> values) {
  if (shape_ ? values.size() != num_values() : values.empty()) {
    set_failure(
        result, RowStatus::wrong_shape,
        shape_ ? fmt::format("{}, {} expected", numbers_text(values.size()), num_values()) : "no numbers");
    return;
  }
  const std::vector<std::size_t> shape = shape_.value_or(std::vector<std::size_t>{values.size()});
  set_values(result, std::move(values), shape);
}

void XShape::accept(RowResult& result, NumericArray array) {
  // A single number is an x of one value.
  const std::vector<std::size_t> shape = array.shape.empty() ? std::vector<std::size_t>{1} : array.shape;
  if (shape_ ? shape != *shape_ : array.values.empty()) {
    set_failure(result, RowStatus::wrong_shape,
                fmt::format("an array of shape {}, {} expected", shape_text(array.shape),
                            shape_ ? shape_text(*shape_) : std::string("numbers")));
    return;
  }
  set_values(result, std::move(array.values), shape);
}

void XShape::accept_text(RowResult& result, std::string_view text) {
  std::vector<double> values;
  std::string problem = read_numbers(text, values);
  if (!problem.empty()) {
    set_failure(result, RowStatus::wrong_shape, std::move(problem));
  } else if (values.empty()) {
    set_failure(result, RowStatus::wrong_shape,
                shape_ ? fmt::format("no numbers, {} expected", num_values()) : "no numbers");
  } else {
    accept(result, std::move(values));
  }
}

void XShape::accept_bytes(RowResult& result, std::string_view bytes) {
  if (!bytes.starts_with("\x93NUMPY")) {
    accept_text(result, bytes);
    return;
  }
  try {
    accept(result, parse_npy(bytes, "x"));
  } catch (const Error& error) {
    set_failure(result, RowStatus::wrong_shape, error.what());
  }
}

void set_failure(RowResult& result, RowStatus status, std::string reason) {
  result.status = status;
  result.reason = std::move(reason);
  result.x.clear();
}

std::string ending_text(int wait_status) {
  if (WIFEXITED(wait_status)) return fmt::format("exit code {}", WEXITSTATUS(wait_status));
  const int number = WTERMSIG(wait_status);
  const char* name = sigabbrev_np(number);
  return name != nullptr ? fmt::format("signal {} (SIG{})", number, name) : fmt::format("signal {}", number);
}

bool is_interruption(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return false;
  const int number = WTERMSIG(wait_status);
  return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP;
}

void set_ending(RowResult& result, int wait_status) {
  const bool is_refusal = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kRefusedExitCode;
  set_failure(result, is_refusal ? RowStatus::refused : RowStatus::failed, ending_text(wait_status));
}

std::string seconds_text(double seconds) {
  if (seconds < 100.0) return fmt::format("{:.3g} s", seconds);
  const auto minutes = static_cast<long>(std::lround(seconds / 60.0));
  if (minutes < 100) return fmt::format("{} min", minutes);
  return fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

}  // namespace nrec::simulation
