#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nrec/simulation/row_runner.h"
#include "simulation/external/row_answer.h"

namespace nrec::simulation {

// What stands at the front of a program's output.
struct Answer {
  enum class Kind {
    incomplete,  // not a whole answer yet
    rows,        // the answer to the request, one result per row
    violation,   // something that cannot be the answer
    repeat,      // a violation: the answer to the request before once more, or more numbers of it
  };
  Kind kind = Kind::incomplete;
  std::size_t bytes = 0;        // of the answer
  std::vector<RowResult> rows;  // row, status, x and reason
  std::string problem;          // of a violation
};

// How a persistent program is asked and how it answers. A request is for one row or for several; answers come in the
// order of the requests.
class Dialect {
 public:
  // When it is sure that an answer belongs to its request, and not to another one because the program wrote something
  // too many: at once (answers name their rows, and the program is ours), when the answer after it fits, too, or only
  // when the program has ended and has written as many answers as there were requests.
  enum class Proof { at_once, by_next, by_end };

  virtual ~Dialect() = default;
  virtual Proof proof() const = 0;
  // Answers name their rows: what fits is right even when the program ends badly afterwards, and the program need not
  // be ended to be sure.
  virtual bool names_rows() const = 0;
  // Whether an answer to `rows` rows that fits shows that the one to `rows_before` rows before it was no stray one.
  virtual bool vouches(std::size_t rows_before, std::size_t rows) const = 0;
  // Rows of the next request.
  virtual std::size_t request_rows(std::size_t rows_left, std::size_t rows_before) const = 0;
  // A request for so many rows took so long.
  virtual void note_time(std::size_t /*rows*/, double /*seconds*/) {}
  // Most requests in flight, when a row takes so long.
  virtual std::size_t most_requests(double seconds_per_row) const = 0;

  virtual void append_request(std::string& bytes, std::span<const RowTask> tasks) const = 0;
  virtual Answer read_answer(std::string_view output, std::span<const RowTask> tasks,
                             XShape& x_shape) const = 0;
  // Most bytes of one answer to so many rows.
  virtual std::size_t most_bytes(std::size_t rows, const XShape& x_shape) const {
    return rows * x_shape.most_bytes();
  }

  // What the program says before the first request: bytes of it, 0 while it is incomplete. Errors   ConfigError
  virtual bool has_greeting() const { return false; }
  virtual std::size_t read_greeting(std::string_view /*output*/) const { return 0; }
};

struct SimulatorSetup;
std::unique_ptr<Dialect> make_lines_dialect(std::shared_ptr<const SimulatorSetup> setup);
std::unique_ptr<Dialect> make_npy_dialect(std::size_t batch_rows);
std::unique_ptr<Dialect> make_library_dialect(std::shared_ptr<const SimulatorSetup> setup);

// Requests for single rows that keep a program busy for a while, without queueing more than is answered soon.
std::size_t rows_ahead(double seconds_per_row);

}  // namespace nrec::simulation
