#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nrec/simulation/row_runner.h"
#include "simulation/external/program_life.h"

namespace nrec::simulation {

// What was seen of a program, for the pre-flight runs.
struct ProgramNotes {
  bool ended_early = false;           // by itself, with exit code 0 and before all requests were answered
  bool answered_after_close = false;  // the first answer came only after its stdin had been closed
  double startup_seconds = -1.0;      // to the first answer, less what a row takes
  double seconds_per_row = -1.0;      // mean without the first answer
  double slowest_row = 0.0;           // without the first answer
};

// protocols "lines", "npy" and the library workers: one program answers row after row.
//
// Rows are asked for ahead, answers are matched by order, and a row is reported when it is sure that the answer is its
// own (Dialect::proof). When something breaks, all that is not sure is void and done again in smaller stretches, in
// the end row by row, each by a program of its own that is closed behind it; so only the row that does it fails.
class PersistentRunner final : public RowRunner {
 public:
  PersistentRunner(std::shared_ptr<const SimulatorSetup> setup, const RunnerSettings& settings);
  ~PersistentRunner() override;

  void run(std::span<const RowTask> tasks, const std::function<void(RowResult&&)>& done,
           const StopRequest& stop) override;

  ProgramHost& host() { return host_; }
  const XShape& x_shape() const { return x_shape_; }
  const ProgramNotes& notes() const { return notes_; }
  void forget_notes() { notes_ = {}; }
  // Called when the program says something that is no answer; may throw, which ends run().
  std::function<void(const std::string& problem)> on_violation = [](const std::string&) {};
  // Closes the program's stdin when its first answer has not come after so many seconds: it may sit in a buffer.
  void set_close_after(double seconds) { close_after_ = seconds; }

 private:
  // Rows begin .. end - 1 of the tasks, still to be done.
  struct Stretch {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool is_closed = false;  // by a program of its own
    Attempts attempts;       // of a single row
    std::size_t rows() const { return end - begin; }
  };
  struct LastWords {
    std::string messages;
    double seconds = 0.0;  // of the program
  };
  using Done = std::function<void(RowResult&&)>;

  bool serve(Stretch stretch);
  void prepare_life(const Stretch& stretch);
  void ask_ahead(const Stretch& stretch);
  void take_answer(const Stretch& stretch);
  void note_times(const std::vector<RowResult>& rows);
  void note_row_time(std::size_t rows, double seconds);
  void close_if_late();
  bool should_retire(const Stretch& stretch);
  bool waits_too_long() const;
  bool settle(const Stretch& stretch);
  void after_breach(const Stretch& stretch);
  void after_doubt(const Stretch& stretch, bool was_closing);
  void report_held(const Stretch& stretch);
  void conclude(std::size_t index, RowResult&& result, bool is_interruption, Attempts attempts);
  LastWords end_life();
  void conclude_breach(const Stretch& stretch, LastWords words);
  void abandon();
  void push(std::size_t begin, std::size_t end, bool is_closed);
  void push_halves(std::size_t begin, std::size_t end);
  bool must_close(const Stretch& stretch) const;
  double startup_allowance() const;
  double longest_hold() const;

  ProgramHost host_;
  std::unique_ptr<Dialect> dialect_;
  XShape x_shape_;
  RowTimeLimit limit_;
  std::unique_ptr<ProgramLife> life_;
  ProgramNotes notes_;
  double close_after_ = 0.0;  // 0: never

  // Of the present call of run().
  std::span<const RowTask> tasks_;
  const Done* done_ = nullptr;
  const StopRequest* stop_ = nullptr;
  std::deque<Stretch> todo_;
  Breach breach_;

  // Of the present stretch: rows before first_held_ are reported, those of held_ are answered, those before next_
  // are asked for.
  std::size_t first_held_ = 0;
  std::size_t next_ = 0;
  std::vector<RowResult> held_;
  std::size_t held_requests_ = 0;
  std::size_t last_answer_rows_ = 0;
  std::size_t last_request_rows_ = 0;
  std::size_t asked_in_life_ = 0;
  Stopwatch since_held_;
  bool is_retiring_ = false;

  double startup_seconds_;
  double seconds_per_row_;  // < 0: unknown
  double busy_seconds_ = 0.0;
  double busy_rows_ = 0.0;
  double first_answer_rows_ = 1.0;
};

}  // namespace nrec::simulation
