#include "simulation/external/program_life.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nrec/core/printable_text.h"
#include "simulation/external/descendants.h"

namespace nrec::simulation {
namespace {

// More than comes in one go besides the answer that is waited for: see kMostChunks of child_process.cc, and the largest
// pipe.
constexpr std::size_t kRoomBehindAnswer = std::size_t{4} << 20;

// How much slower than the average the rows of a request may be.
constexpr double kSlownessOfOthers = 20.0;

// Looking through /proc at the memory of programs takes 1 ms on a quiet machine.
constexpr double kSecondsBetweenLooks = 0.2;
constexpr double kWaitPerCost = 100.0;
constexpr std::uint64_t kMemoryForGranted = 256'000'000;
constexpr std::uint64_t kGrowthForGranted = 4;

// What is wrong with output that nobody asked for. Equal failures have equal reasons, so numbers are not quoted.
std::string stray_text(std::string_view output) {
  return is_numbers_only(output) ? "more numbers after the answer"
                                 : fmt::format("{} after the answer", quoted_excerpt(output.substr(0, 80)));
}

LaunchPlan plan_of(ProgramHost& host) {
  const std::filesystem::path& scratch = host.fresh_scratch();
  return launch_plan(host.setup(), {}, scratch);
}

}  // namespace

// One slow row among others as usual: a request with more of them is repeated in smaller ones, where each has its time.
double TimesAllowed::of_request(std::size_t rows) const {
  const double count = static_cast<double>(rows);
  if (expected_row < 0.0) return count * row;
  return std::min(count * row, row + kSlownessOfOthers * count * expected_row);
}

ProgramLife::ProgramLife(ProgramHost& host, const Dialect& dialect, XShape& x_shape)
    : host_(host),
      dialect_(dialect),
      x_shape_(x_shape),
      child_(host.start(plan_of(host), ChildProcess::Input::pipe)),
      greeted_(!dialect.has_greeting()) {}

ProgramLife::~ProgramLife() {
  child_.reset();
  host_.clear_scratch();
}

void ProgramLife::ask(std::span<const RowTask> tasks) {
  is_alone_ = asked_.empty();
  if (is_alone_) {
    since_ = Stopwatch();
    child_->messages().forget();
  }
  std::string bytes;
  dialect_.append_request(bytes, tasks);
  child_->send(bytes);
  asked_.push_back({tasks});
}

void ProgramLife::close_input() {
  child_->close_input();
  input_closed_ = true;
}

// Says the limit that was passed, and what it is made of.
std::string ProgramLife::late_text(double limit, const TimesAllowed& allowed) const {
  const std::string text = fmt::format("no answer after {}", seconds_text(limit));
  if (first_answer_at_ >= 0.0 || allowed.startup <= 0.0) return text;
  return fmt::format("{}: {} for the row and {} for the program to start", text,
                     seconds_text(limit - allowed.startup), seconds_text(allowed.startup));
}

ProgramLife::Event ProgramLife::step(double seconds, const TimesAllowed& allowed) {
  if (const Event event = read_answer(); event != Event::nothing) return event;
  if (child_->is_over()) return judge_end();
  const double limit =
      allowed.of_request(first_request_rows()) + (first_answer_at_ < 0.0 ? allowed.startup : 0.0);
  const double left = limit - since_.seconds();
  drop_read_bytes();
  // What is unread is part of one answer. The room for more than that is never full unless it is too much.
  child_->limit_output(dialect_.most_bytes(first_request_rows(), x_shape_) + kRoomBehindAnswer);
  child_->pump(asked_.empty() ? seconds : std::clamp(left, 0.0, seconds));
  host_.on_wait();
  const Event event = read_answer();
  // We may have been away: an answer that lay there is in time.
  if (event == Event::nothing && !child_->is_over() && !asked_.empty() && left <= 0.0)
    return broken({RowStatus::timed_out, late_text(limit, allowed)});
  return event;
}

void ProgramLife::drop_read_bytes() {
  child_->output().erase(0, taken_);
  taken_ = 0;
}

ProgramLife::Event ProgramLife::read_answer() {
  if (!greeted_) {
    taken_ = dialect_.read_greeting(child_->output());
    greeted_ = taken_ > 0;
  }
  if (unread().empty() || !greeted_) return Event::nothing;
  if (asked_.empty())
    return broken({RowStatus::wrong_shape, stray_text(unread()), false, true, is_numbers_only(unread())});
  Answer answer = dialect_.read_answer(unread(), asked_.front(), x_shape_);
  if (answer.kind == Answer::Kind::rows) {
    note_answer(answer);
    return Event::answer;
  }
  if (answer.kind != Answer::Kind::incomplete)
    return broken({RowStatus::wrong_shape, std::move(answer.problem), false, true,
                   answer.kind == Answer::Kind::repeat});
  const std::size_t most = dialect_.most_bytes(first_request_rows(), x_shape_);
  if (unread().size() > most)
    return broken(
        {RowStatus::wrong_shape, fmt::format("more than {} bytes in one answer", most), false, true});
  return Event::nothing;
}

void ProgramLife::note_answer(Answer& answer) {
  taken_ += answer.bytes;
  const double seconds = since_.seconds() / static_cast<double>(answer.rows.size());
  since_ = Stopwatch();
  if (first_answer_at_ < 0.0) first_answer_at_ = child_->seconds();
  rows_answered_ += answer.rows.size();
  answer_ = std::move(answer.rows);
  for (RowResult& result : answer_) {
    result.seconds = seconds;
    // With more than one row asked, what it said may be of another one, which it has come to meanwhile.
    if (result.status != RowStatus::ok && is_alone_ && answer_.size() == 1)
      result.messages = child_->messages().text();
  }
  asked_.pop_front();
  is_alone_ = false;
}

ProgramLife::Event ProgramLife::broken(Breach breach) {
  breach_ = std::move(breach);
  return Event::breach;
}

ProgramLife::Event ProgramLife::judge_end() {
  if (child_->state() == ChildProcess::State::not_started) return Event::not_started;
  if (child_->state() == ChildProcess::State::lost)
    return broken({RowStatus::failed, "its supervising process was killed", true});
  if (asked_.empty()) return Event::nothing;
  const int status = child_->wait_status();
  if (status == 0) {
    return broken({RowStatus::wrong_shape, unread().empty() ? "exit code 0 without an answer"
                                                            : "exit code 0 in the middle of an answer"});
  }
  RowResult ending;
  set_ending(ending, status);
  return broken({ending.status, ending.reason, is_interruption(status)});
}

bool ProgramLife::leave(double seconds, const StopRequest& stop) {
  close_input();
  for (const Stopwatch waiting; !child_->is_over();) {
    if (stop.requested()) seconds = std::min(seconds, kStopGrace);
    if (waiting.seconds() > seconds) {
      broken({RowStatus::timed_out, fmt::format("it answered but went on for {} after its input was closed",
                                                seconds_text(seconds))});
      return false;
    }
    drop_read_bytes();
    child_->limit_output(kRoomBehindAnswer);
    child_->pump(kLongestWait);
    host_.on_wait();
    if (read_answer() != Event::nothing) return false;
  }
  return read_answer() == Event::nothing && judge_leaving() == Event::nothing;
}

ProgramLife::Event ProgramLife::judge_leaving() {
  if (child_->state() == ChildProcess::State::lost)
    return broken({RowStatus::failed, "its supervising process was killed", true});
  const int status = child_->wait_status();
  if (status == 0) return Event::nothing;
  return broken(
      {RowStatus::failed, ending_text(status) + " after its input was closed", is_interruption(status)});
}

bool ProgramLife::is_quiet() {
  drop_read_bytes();
  child_->limit_output(kRoomBehindAnswer);
  child_->pump(0.0);
  return read_answer() == Event::nothing;
}

bool ProgramLife::has_grown() {
  if (child_->process() == 0 || since_look_.seconds() < next_look_) return false;
  const Stopwatch cost;
  const std::uint64_t memory = session_memory(child_->process());
  next_look_ = since_look_.seconds() + std::max(kSecondsBetweenLooks, kWaitPerCost * cost.seconds());
  if (first_memory_ == 0) first_memory_ = memory;
  const auto limit = static_cast<std::uint64_t>(host_.setup().options.memory_limit * 1e6);
  if (limit == 0) return memory > kMemoryForGranted + kGrowthForGranted * first_memory_;
  // A program that needs much of its limit from the start is not restarted for that.
  return memory > (first_memory_ < limit / 3 ? limit / 2 : (first_memory_ + limit) / 2);
}

}  // namespace nrec::simulation
