#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/io/numeric_array.h"
#include "nrec/simulation/row_runner.h"

namespace nrec::simulation {

// Exit code, and first word of an answer, by which a simulator says that it does not simulate this theta.
inline constexpr int kRefusedExitCode = 77;
inline constexpr std::string_view kRefusedWord = "refused";

// The shape that x of every row must have. While it is unknown, the first good row sets it.
class XShape {
 public:
  explicit XShape(std::optional<std::vector<std::size_t>> shape) : shape_(std::move(shape)) {}

  bool is_known() const { return shape_.has_value(); }
  const std::vector<std::size_t>& shape() const { return *shape_; }
  std::size_t num_values() const;  // 0 while unknown
  // Most bytes that an answer of one row may have, as text or array: 1 MB and 64 per value.
  std::size_t most_bytes() const;

  // x as numbers in a row, or as an array: sets status, x and reason of `result`.
  void accept(RowResult& result, std::vector<double> values);
  void accept(RowResult& result, NumericArray array);
  // x as text: numbers only.
  void accept_text(RowResult& result, std::string_view text);
  // x as text, or as the bytes of a .npy file.
  void accept_bytes(RowResult& result, std::string_view bytes);

 private:
  void set_values(RowResult& result, std::vector<double> values, const std::vector<std::size_t>& shape);

  std::optional<std::vector<std::size_t>> shape_;
};

// Makes `result` one without x.
void set_failure(RowResult& result, RowStatus status, std::string reason);

// How a program ended, from the status of waitpid: "exit code 3", "signal 11 (SIGSEGV)".
std::string ending_text(int wait_status);
// Whether it ended by a signal that says nothing about the row: SIGKILL (the system was out of memory, an operator),
// SIGTERM, SIGINT, SIGHUP.
bool is_interruption(int wait_status);

// The result of a row whose program ended in another way than by exit code 0.
void set_ending(RowResult& result, int wait_status);

// Seconds for people: "0.25 s", "1 h 5 min".
std::string seconds_text(double seconds);

}  // namespace nrec::simulation
