#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "nrec/core/printable_text.h"
#include "simulation/external/dialect.h"
#include "simulation/external/message_tail.h"
#include "simulation/external/number_text.h"
#include "simulation/external/simulator_setup.h"

namespace nrec::simulation {
namespace {

constexpr double kSecondsAhead = 0.02;
constexpr double kMostRowsAhead = 4096;

// The row number at the start of an answer, moved over; false when there is none.
bool read_row(std::string_view& text, std::uint64_t& row) {
  const std::string_view word = next_word(text);
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), row);
  return code == std::errc() && end == word.data() + word.size();
}

// protocol = "lines": a line per request, a line per answer.
class LinesDialect final : public Dialect {
 public:
  explicit LinesDialect(std::shared_ptr<const SimulatorSetup> setup)
      : setup_(std::move(setup)), names_rows_(uses(setup_->line, Blank::row)) {}

  Proof proof() const override { return names_rows_ ? Proof::by_next : Proof::by_end; }
  bool names_rows() const override { return names_rows_; }
  bool vouches(std::size_t, std::size_t) const override { return names_rows_; }
  std::size_t request_rows(std::size_t, std::size_t) const override { return 1; }
  // Without row numbers an answer can only be told from a later one when the later one has not been asked for.
  std::size_t most_requests(double seconds_per_row) const override {
    return names_rows_ ? rows_ahead(seconds_per_row) : 1;
  }

  void append_request(std::string& bytes, std::span<const RowTask> tasks) const override {
    append_filled(bytes, setup_->line, {tasks[0].theta, tasks[0].seed, tasks[0].row, "", ""});
    bytes += '\n';
  }

  Answer read_answer(std::string_view output, std::span<const RowTask> tasks,
                     XShape& x_shape) const override {
    Answer answer;
    const std::size_t end = output.find('\n');
    if (end == std::string_view::npos) return answer;
    answer.bytes = end + 1;
    std::string_view line = output.substr(0, end);
    const std::uint64_t row = tasks[0].row;
    if (names_rows_ && !check_row(answer, line, row)) return answer;
    RowResult result;
    result.row = row;
    read_x(result, line, x_shape);
    // Without a row number a line that is no answer may be one too many: then all that follows belongs elsewhere.
    if (!names_rows_ && result.status == RowStatus::wrong_shape) {
      answer.kind = Answer::Kind::violation;
      answer.problem = std::move(result.reason);
      return answer;
    }
    answer.kind = Answer::Kind::rows;
    answer.rows.push_back(std::move(result));
    return answer;
  }

 private:
  static bool check_row(Answer& answer, std::string_view& line, std::uint64_t wanted) {
    std::uint64_t row = 0;
    const std::string_view whole = line;
    const bool has_row = read_row(line, row);
    if (has_row && row == wanted) return true;
    const bool is_repeat = has_row ? row < wanted : is_numbers_only(whole);
    answer.kind = is_repeat ? Answer::Kind::repeat : Answer::Kind::violation;
    // Equal failures have equal reasons: no row numbers in them.
    answer.problem = !has_row
                         ? fmt::format("{} does not begin with the number of the row", quoted_excerpt(whole))
                         : "an answer with the number of another row";
    return false;
  }

  static void read_x(RowResult& result, std::string_view line, XShape& x_shape) {
    std::string_view rest = line;
    if (next_word(rest) != kRefusedWord) {
      x_shape.accept_text(result, line);
      return;
    }
    const std::size_t start = std::min(rest.find_first_not_of(" \t\r"), rest.size());
    const std::size_t end = rest.find_last_not_of(" \t\r") + 1;
    const std::string_view why = start < end ? rest.substr(start, end - start) : std::string_view();
    set_failure(result, RowStatus::refused,
                why.empty() ? "refused" : "refused: " + printable_text(why.substr(0, 200)));
  }

  std::shared_ptr<const SimulatorSetup> setup_;
  bool names_rows_;
};

}  // namespace

std::size_t rows_ahead(double seconds_per_row) {
  if (seconds_per_row < 0.0) return 2;  // one that is worked on, one that waits
  return static_cast<std::size_t>(
      std::clamp(kSecondsAhead / std::max(seconds_per_row, 1e-9), 2.0, kMostRowsAhead));
}

std::unique_ptr<Dialect> make_lines_dialect(std::shared_ptr<const SimulatorSetup> setup) {
  return std::make_unique<LinesDialect>(std::move(setup));
}

}  // namespace nrec::simulation
