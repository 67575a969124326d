#pragma once

#include <string>
#include <string_view>

#include "nrec/core/log_sink.h"
#include "nrec/core/stop.h"

namespace nrec::app {

/// Messages on stderr. Progress is one line that rewrites itself on a terminal, and a plain line every ten
/// seconds elsewhere. Quiet leaves only warnings.
class ProgressSink final : public LogSink {
 public:
  explicit ProgressSink(bool quiet);
  ~ProgressSink() override;

  void info(std::string_view text) override;
  void warning(std::string_view text) override;
  void progress(const ProgressUpdate& update) override;
  /// A line that is printed even when quiet.
  void line(std::string_view text);

 private:
  void clear_progress();

  bool quiet_;
  bool is_terminal_;
  std::size_t shown_width_ = 0;  // letters of the progress line on the terminal
  Stopwatch watch_;
  double next_plain_line_;
};

/// Writes printable_text() of `text` to stdout: what stands in files must not steer a terminal.
void to_stdout(std::string_view text);

/// Writes to stderr, as it is. A stderr that is closed or full is no reason to end a run: errors are ignored.
void to_stderr(const std::string& text);

/// "3 h 20 min", "2 min 5 s", "0.4 s".
std::string duration_text(double seconds);

}  // namespace nrec::app
