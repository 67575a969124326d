#include "simulation/external/persistent_runner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "nrec/core/error.h"

namespace nrec::simulation {
namespace {

constexpr std::size_t kMostUnsentBytes = std::size_t{1} << 16;
// Answers that are not sure yet are kept no longer than this, or than twenty starts of the program take: then it is
// ended, which makes them sure. Starting it again costs a twentieth of the time at most.
constexpr double kLongestHold = 1.0;
constexpr double kHoldPerStartup = 20.0;
constexpr std::size_t kMostHeldBytes = 64'000'000;
// What the first answer of a program may take beyond a row's time limit.
constexpr double kAllowancePerStartup = 5.0;
constexpr double kLeastAllowance = 1.0;
constexpr double kUnknownAllowance = 60.0;
// A stop request waits so long for the program to make sure what it has already answered.
constexpr double kLastWords = 1.0;
constexpr double kRowsOfMean = 4096.0;

std::unique_ptr<Dialect> make_dialect(const std::shared_ptr<const SimulatorSetup>& setup) {
  if (setup->protocol == Protocol::lines) return make_lines_dialect(setup);
  if (setup->protocol == Protocol::npy)
    return make_npy_dialect(static_cast<std::size_t>(setup->options.batch_rows));
  return make_library_dialect(setup);
}

}  // namespace

PersistentRunner::PersistentRunner(std::shared_ptr<const SimulatorSetup> setup,
                                   const RunnerSettings& settings)
    : host_(setup),
      dialect_(make_dialect(setup)),
      x_shape_(settings.x_shape),
      limit_(settings.row_time_limit),
      startup_seconds_(settings.startup_seconds),
      seconds_per_row_(settings.seconds_per_row) {}

PersistentRunner::~PersistentRunner() {
  if (!life_) return;
  const SigpipeBlocked no_signal;
  const StopRequest never;
  if (!life_->has_ended()) life_->leave(kGrace, never);
  life_.reset();
}

void PersistentRunner::run(std::span<const RowTask> tasks, const Done& done, const StopRequest& stop) {
  const SigpipeBlocked no_signal;
  tasks_ = tasks;
  done_ = &done;
  stop_ = &stop;
  todo_.clear();
  push(0, tasks.size(), false);
  try {
    while (!todo_.empty()) {
      const Stretch stretch = todo_.front();
      todo_.pop_front();
      if (!serve(stretch)) break;
    }
  } catch (...) {
    life_.reset();  // its requests refer to `tasks`
    throw;
  }
}

void PersistentRunner::push(std::size_t begin, std::size_t end, bool is_closed) {
  if (begin < end) todo_.push_front({begin, end, is_closed, {}});
}

void PersistentRunner::push_halves(std::size_t begin, std::size_t end) {
  const std::size_t middle = begin + (end - begin + 1) / 2;
  push(middle, end, true);
  push(begin, middle, true);
}

bool PersistentRunner::must_close(const Stretch& stretch) const {
  return stretch.is_closed || life_->input_closed() ||
         (dialect_->proof() != Dialect::Proof::at_once && !dialect_->names_rows());
}

double PersistentRunner::startup_allowance() const {
  if (startup_seconds_ < 0.0) return kUnknownAllowance;
  // In whole seconds: messages say it, and equal failures should have equal reasons.
  return std::ceil(std::max(kLeastAllowance, kAllowancePerStartup * startup_seconds_));
}

double PersistentRunner::longest_hold() const {
  return std::max(kLongestHold, kHoldPerStartup * startup_seconds_);
}

// Does one stretch, or a part of it: what is left goes back to todo_. False when a stop is requested.
bool PersistentRunner::serve(Stretch stretch) {
  if (stop_->requested()) {
    abandon();
    return false;
  }
  prepare_life(stretch);
  const Stopwatch since_start;
  double stopped_at = -1.0;
  for (;;) {
    if (stop_->requested()) {
      if (stopped_at < 0.0) stopped_at = since_start.seconds();
      if (dialect_->names_rows()) report_held(stretch);
      if (held_.empty() || since_start.seconds() - stopped_at > kLastWords) {
        abandon();
        return false;
      }
      is_retiring_ = true;
    }
    ask_ahead(stretch);
    if (life_->requests() == 0) return settle(stretch);
    close_if_late();
    const ProgramLife::Event event =
        life_->step(kLongestWait, {limit_.seconds(), startup_allowance(), seconds_per_row_});
    if (event == ProgramLife::Event::answer) take_answer(stretch);
    // The number of the row is right; a second answer would have come by now.
    if (event == ProgramLife::Event::nothing && dialect_->names_rows() &&
        since_held_.seconds() > kLongestHold)
      report_held(stretch);
    if (event == ProgramLife::Event::breach) {
      after_breach(stretch);
      return true;
    }
    if (event == ProgramLife::Event::not_started) {
      todo_.push_front(stretch);
      host_.after_failed_start(life_->child(), *stop_);
      life_.reset();
      return true;
    }
  }
}

void PersistentRunner::prepare_life(const Stretch& stretch) {
  first_held_ = next_ = stretch.begin;
  held_.clear();
  held_requests_ = 0;
  if (life_ && (life_->has_ended() || !life_->is_quiet() || must_close(stretch))) life_.reset();
  if (life_) return;
  life_ = std::make_unique<ProgramLife>(host_, *dialect_, x_shape_);
  is_retiring_ = false;
  asked_in_life_ = last_answer_rows_ = last_request_rows_ = 0;
}

void PersistentRunner::ask_ahead(const Stretch& stretch) {
  const std::int64_t most_in_life = host_.setup().options.rows_per_process;
  while (next_ < stretch.end && !is_retiring_ && !life_->has_ended() && !life_->input_closed() &&
         life_->requests() < dialect_->most_requests(seconds_per_row_) &&
         life_->unsent_bytes() < kMostUnsentBytes) {
    std::size_t left = stretch.end - next_;
    if (most_in_life > 0) left = std::min(left, static_cast<std::size_t>(most_in_life) - asked_in_life_);
    const std::size_t rows = dialect_->request_rows(left, last_request_rows_);
    life_->ask(tasks_.subspan(next_, rows));
    next_ += rows;
    last_request_rows_ = rows;
    asked_in_life_ += rows;
    if (most_in_life > 0 && asked_in_life_ >= static_cast<std::size_t>(most_in_life)) is_retiring_ = true;
  }
  life_->child().flush();
}

void PersistentRunner::take_answer(const Stretch& stretch) {
  host_.after_good_start();
  std::vector<RowResult> rows = life_->take_answer();
  note_times(rows);
  if (!held_.empty() && dialect_->proof() == Dialect::Proof::by_next &&
      dialect_->vouches(last_answer_rows_, rows.size()))
    report_held(stretch);
  last_answer_rows_ = rows.size();
  if (held_.empty()) since_held_ = Stopwatch();
  std::move(rows.begin(), rows.end(), std::back_inserter(held_));
  ++held_requests_;
  if (dialect_->proof() == Dialect::Proof::at_once) report_held(stretch);
  if (should_retire(stretch)) is_retiring_ = true;
}

void PersistentRunner::note_times(const std::vector<RowResult>& rows) {
  notes_.answered_after_close |= life_->input_closed();
  const double seconds = rows.front().seconds;
  const bool is_first = life_->rows_answered() == rows.size();
  if (is_first) first_answer_rows_ = static_cast<double>(rows.size());
  if (!is_first) note_row_time(rows.size(), seconds);
  const double of_rows = first_answer_rows_ * std::max(0.0, seconds_per_row_);
  startup_seconds_ = std::max(0.0, life_->seconds_to_first_answer() - of_rows);
  notes_.startup_seconds = startup_seconds_;
}

void PersistentRunner::note_row_time(std::size_t rows, double seconds) {
  limit_.note(seconds);
  dialect_->note_time(rows, seconds * static_cast<double>(rows));
  busy_seconds_ += seconds * static_cast<double>(rows);
  busy_rows_ += static_cast<double>(rows);
  seconds_per_row_ = busy_seconds_ / busy_rows_;
  notes_.slowest_row = std::max(notes_.slowest_row, seconds);
  notes_.seconds_per_row = seconds_per_row_;
  if (busy_rows_ < kRowsOfMean) return;
  busy_seconds_ /= 2.0;
  busy_rows_ /= 2.0;
}

void PersistentRunner::close_if_late() {
  if (close_after_ <= 0.0 || life_->rows_answered() > 0 || life_->input_closed()) return;
  if (life_->child().seconds() > close_after_) life_->close_input();
}

bool PersistentRunner::should_retire(const Stretch& stretch) {
  return (stretch.rows() > 1 && waits_too_long()) || life_->has_grown();
}

// What is held would not be sure soon if the program went on.
bool PersistentRunner::waits_too_long() const {
  if (dialect_->names_rows() || held_.empty()) return false;
  const bool next_vouches = dialect_->proof() == Dialect::Proof::by_next && held_requests_ == 1;
  const double next_answer = static_cast<double>(last_request_rows_) * std::max(0.0, seconds_per_row_);
  const double wait = next_answer + (next_vouches ? 0.0 : since_held_.seconds());
  const std::size_t bytes = held_.size() * (sizeof(RowResult) + sizeof(double) * x_shape_.num_values());
  return wait > longest_hold() || (!next_vouches && bytes > kMostHeldBytes);
}

void PersistentRunner::report_held(const Stretch& stretch) {
  std::vector<RowResult> rows = std::exchange(held_, {});
  held_requests_ = 0;
  for (RowResult& result : rows)
    conclude(first_held_++, std::move(result), false, stretch.rows() == 1 ? stretch.attempts : Attempts());
}

void PersistentRunner::conclude(std::size_t index, RowResult&& result, bool is_interruption,
                                Attempts attempts) {
  if (attempts.try_again(result, is_interruption, host_.setup().options.retries)) {
    todo_.push_front({index, index + 1, true, attempts});
  } else {
    (*done_)(std::move(result));
  }
}

// All requests are answered: makes sure of what is held.
bool PersistentRunner::settle(const Stretch& stretch) {
  const bool is_closing = must_close(stretch);
  const bool ended_early = next_ < stretch.end && !is_retiring_ && life_->has_ended();
  const double patience = std::clamp(limit_.seconds(), 1.0, kMostSecondsOfLeaving);
  const bool is_good = is_closing ? life_->leave(patience, *stop_) : life_->is_quiet();
  if (!is_good && stop_->requested()) {
    abandon();
    return false;
  }
  if (!is_good) {
    after_doubt(stretch, is_closing);
    return true;
  }
  notes_.ended_early |= ended_early;
  report_held(stretch);
  push(next_, stretch.end, stretch.is_closed);
  if (!is_closing && is_retiring_ && !life_->has_ended()) life_->leave(patience, *stop_);
  if (is_closing || is_retiring_ || life_->has_ended()) life_.reset();
  return true;
}

// Ends the program after a breach and keeps what it said.
PersistentRunner::LastWords PersistentRunner::end_life() {
  breach_ = life_->breach();
  const double seconds = life_->child().seconds();
  const bool was_over = life_->has_ended();
  life_->end(breach_.status == RowStatus::timed_out ? kGrace : 0.0);
  notes_.ended_early |= was_over && !breach_.is_violation && !breach_.is_interruption &&
                        life_->rows_answered() > 0 && life_->child().wait_status() == 0;
  LastWords words{life_->child().messages().text(), seconds};
  life_.reset();
  if (breach_.is_violation) on_violation(breach_.reason);
  return words;
}

// The answer to the first request did not come: everything that is not sure is void, and what was asked is suspected.
void PersistentRunner::after_breach(const Stretch& stretch) {
  const std::size_t suspects = life_->first_request_rows();
  // A program that was asked for other rows before may suffer from one of them.
  const bool was_alone = stretch.rows() == 1 && asked_in_life_ == 1;
  LastWords words = end_life();
  if (dialect_->names_rows() && !breach_.is_repeat) report_held(stretch);
  if (was_alone && held_.empty()) {
    conclude_breach(stretch, std::move(words));
    return;
  }
  const std::size_t suspect = first_held_ + held_.size();
  push(suspect + suspects, stretch.end, stretch.is_closed);
  if (suspects == 1) {
    push(suspect, suspect + 1, stretch.is_closed || breach_.is_violation);
    if (stretch.rows() == 1) todo_.front().attempts = stretch.attempts;
  } else {
    push_halves(suspect, suspect + suspects);
  }
  push(first_held_, suspect, true);
  held_.clear();
}

// The program had answered everything, but what came then makes the answers doubtful.
void PersistentRunner::after_doubt(const Stretch& stretch, bool was_closing) {
  LastWords words = end_life();
  // As after a breach: an answer with the number of its row counts, whatever the program says or does afterwards.
  if (dialect_->names_rows() && !breach_.is_repeat) report_held(stretch);
  const std::size_t begin = first_held_;
  const std::size_t end = begin + held_.size();
  held_.clear();
  push(end, stretch.end, stretch.is_closed);
  if (begin == end) return;
  if (stretch.rows() == 1 && was_closing) {
    conclude_breach(stretch, std::move(words));
  } else if (end - begin == 1) {
    todo_.push_front({begin, end, true, stretch.rows() == 1 ? stretch.attempts : Attempts()});
  } else {
    push_halves(begin, end);
  }
}

void PersistentRunner::conclude_breach(const Stretch& stretch, LastWords words) {
  RowResult result;
  result.row = tasks_[stretch.begin].row;
  set_failure(result, breach_.status, breach_.reason);
  result.messages = std::move(words.messages);
  result.seconds = words.seconds;
  conclude(stretch.begin, std::move(result), breach_.is_interruption, stretch.attempts);
}

void PersistentRunner::abandon() {
  if (life_) life_->end(kStopGrace);
  life_.reset();
  held_.clear();
  todo_.clear();
}

}  // namespace nrec::simulation
