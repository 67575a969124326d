#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/core/stop.h"
#include "nrec/simulation/row_runner.h"
#include "simulation/external/dialect.h"
#include "simulation/external/program_host.h"

namespace nrec::simulation {

// How the exchange with a program broke.
struct Breach {
  RowStatus status = RowStatus::failed;  // of the row that was asked, if it was that row alone
  std::string reason;
  bool is_interruption = false;  // says nothing about the row
  bool is_violation = false;     // the program said something that is no answer
  bool is_repeat = false;        // ... namely the answer before once more, or more of it
};

// How long a request may take.
struct TimesAllowed {
  double row = 0.0;            // the time limit of a row
  double startup = 0.0;        // besides, for the first answer
  double expected_row = -1.0;  // what a row takes on the average; < 0: unknown
  double of_request(std::size_t rows) const;
};

// One run of a persistent program from its start to its end: requests go out, answers are matched to them in order.
class ProgramLife {
 public:
  ProgramLife(ProgramHost& host, const Dialect& dialect, XShape& x_shape);
  // Ends the program.
  ~ProgramLife();

  // Sends a request. `tasks` stay where they are until they are answered or the life ends.
  void ask(std::span<const RowTask> tasks);
  std::size_t requests() const { return asked_.size(); }  // not answered yet
  std::size_t first_request_rows() const { return asked_.empty() ? 1 : asked_.front().size(); }
  std::size_t unsent_bytes() const { return child_->unsent(); }

  enum class Event { nothing, answer, breach, not_started };
  // Waits at most `seconds` and says what happened. After `answer`, take_answer() has it; after `breach`, breach().
  Event step(double seconds, const TimesAllowed& allowed);
  std::vector<RowResult> take_answer() { return std::move(answer_); }
  const Breach& breach() const { return breach_; }

  // Closes the program's stdin, waits for its end and says whether it was a good one: exit code 0 and not a byte
  // more on stdout. Else breach() tells. False also when a stop is requested.
  bool leave(double seconds, const StopRequest& stop);
  void close_input();
  bool input_closed() const { return input_closed_; }

  // Without waiting: nothing came since the last answer, as it should be between requests.
  bool is_quiet();
  bool has_ended() const { return child_->is_over(); }
  void end(double grace_seconds) { child_->end(grace_seconds); }
  ChildProcess& child() { return *child_; }

  std::size_t rows_answered() const { return rows_answered_; }
  double seconds_to_first_answer() const { return first_answer_at_; }  // < 0: none yet
  // Memory of its processes is more than what they had after the first answer explains. Looks now and then only.
  bool has_grown();

 private:
  std::string_view unread() const { return std::string_view(child_->output()).substr(taken_); }
  void drop_read_bytes();
  Event read_answer();
  void note_answer(Answer& answer);
  std::string late_text(double limit, const TimesAllowed& allowed) const;
  Event broken(Breach breach);
  Event judge_end();
  Event judge_leaving();

  ProgramHost& host_;
  const Dialect& dialect_;
  XShape& x_shape_;
  std::unique_ptr<ChildProcess> child_;
  std::deque<std::span<const RowTask>> asked_;
  bool is_alone_ = false;  // the only request since the program had nothing to do
  Stopwatch since_;        // the first of asked_ is what the program works on
  std::size_t taken_ = 0;  // bytes of its output that have been read
  std::vector<RowResult> answer_;
  Breach breach_;
  bool greeted_;
  bool input_closed_ = false;
  std::size_t rows_answered_ = 0;
  double first_answer_at_ = -1.0;
  Stopwatch since_look_;
  double next_look_ = 0.0;
  std::uint64_t first_memory_ = 0;
};

}  // namespace nrec::simulation
