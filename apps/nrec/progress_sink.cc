#include "progress_sink.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "nrec/core/printable_text.h"

namespace nrec::app {

namespace {

constexpr double kSecondsBetweenPlainLines = 10.0;

std::size_t terminal_width() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10 ? size.ws_col : 80;
}

std::string progress_text(const ProgressUpdate& update) {
  const char* precision = update.unit == "epoch" ? "{:.1f}" : "{:.0f}";
  std::string text =
      fmt::format("{}: {} {}", update.stage, update.unit, fmt::format(fmt::runtime(precision), update.done));
  if (update.total > 0) text += fmt::format(" of {:.0f}", update.total);
  // The time comes before the details: a narrow terminal cuts the end. Epochs may end early, so theirs is a
  // bound.
  if (update.seconds_left >= 0 && std::isfinite(update.seconds_left))
    text +=
        (update.unit == "epoch" ? ", at most " : ", about ") + duration_text(update.seconds_left) + " left";
  if (!update.detail.empty()) text += ", " + update.detail;
  return text;
}

}  // namespace

void to_stdout(std::string_view text) { fmt::print("{}", printable_text(text)); }

void to_stderr(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

std::string duration_text(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long long>(std::llround(std::min(seconds, 1e15)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

ProgressSink::ProgressSink(bool quiet)
    : quiet_(quiet), is_terminal_(isatty(STDERR_FILENO) == 1), next_plain_line_(kSecondsBetweenPlainLines) {}

ProgressSink::~ProgressSink() { clear_progress(); }

void ProgressSink::clear_progress() {
  if (shown_width_ == 0) return;
  to_stderr(fmt::format("\r{:{}}\r", "", shown_width_));
  shown_width_ = 0;
}

void ProgressSink::line(std::string_view text) {
  clear_progress();
  to_stderr(printable_text(text) + "\n");
}

void ProgressSink::info(std::string_view text) {
  if (!quiet_) line(text);
}

void ProgressSink::warning(std::string_view text) { line(fmt::format("warning: {}", text)); }

void ProgressSink::progress(const ProgressUpdate& update) {
  if (quiet_) return;
  std::string text = one_line_text(progress_text(update));
  if (!is_terminal_) {
    if (watch_.seconds() < next_plain_line_) return;
    next_plain_line_ = watch_.seconds() + kSecondsBetweenPlainLines;
    line(text);
    return;
  }
  text.resize(std::min(text.size(), terminal_width() - 1));
  to_stderr(fmt::format("\r{:<{}}", text, shown_width_));
  shown_width_ = std::max(shown_width_, text.size());
}

}  // namespace nrec::app
