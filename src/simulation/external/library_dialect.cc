#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "nrec/core/error.h"
#include "nrec/simulator_interface.h"
#include "simulation/external/dialect.h"
#include "simulation/external/library_records.h"
#include "simulation/external/simulator_setup.h"

namespace nrec::simulation {
namespace {

template <class T>
void append_bytes(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Binary records to and from a library worker: see library_records.h.
class LibraryDialect final : public Dialect {
 public:
  explicit LibraryDialect(std::shared_ptr<const SimulatorSetup> setup) : setup_(std::move(setup)) {}

  Proof proof() const override { return Proof::at_once; }
  bool names_rows() const override { return true; }
  bool vouches(std::size_t, std::size_t) const override { return true; }
  std::size_t request_rows(std::size_t, std::size_t) const override { return 1; }
  std::size_t most_requests(double seconds_per_row) const override { return rows_ahead(seconds_per_row); }

  void append_request(std::string& bytes, std::span<const RowTask> tasks) const override {
    append_bytes(bytes, RequestHead{tasks[0].row, tasks[0].seed});
    for (const double value : tasks[0].theta) append_bytes(bytes, value);
  }

  // Errors   ConfigError: the library is for another number of parameters, or for other data than before
  std::size_t read_greeting(std::string_view output) const override {
    LibraryGreeting greeting;
    if (output.size() < sizeof(greeting)) return 0;
    const auto magic = greeting.magic;
    std::memcpy(&greeting, output.data(), sizeof(greeting));
    if (greeting.magic != magic)
      throw ConfigError(
          fmt::format("library: {} is no worker of this version of nrec", setup_->program.string()));
    if (static_cast<std::size_t>(greeting.dim_theta) != setup_->names.size()) {
      throw ConfigError(
          fmt::format("library {}: nrec_simulator_dim_theta() = {}, but there are {} parameters",
                      setup_->library.string(), greeting.dim_theta, setup_->names.size()));
    }
    num_values_ = static_cast<std::size_t>(greeting.dim_x);
    return sizeof(greeting);
  }
  bool has_greeting() const override { return true; }

  Answer read_answer(std::string_view output, std::span<const RowTask> tasks,
                     XShape& x_shape) const override {
    Answer answer;
    const std::size_t bytes = sizeof(AnswerHead) + num_values_ * sizeof(double);
    if (output.size() < bytes) return answer;
    AnswerHead head;
    std::memcpy(&head, output.data(), sizeof(head));
    answer.bytes = bytes;
    if (head.row != tasks[0].row) {
      answer.kind = Answer::Kind::violation;
      answer.problem =
          "the worker's answers are out of step; does the library write to descriptors of others?";
      return answer;
    }
    answer.kind = Answer::Kind::rows;
    RowResult& result = answer.rows.emplace_back();
    result.row = head.row;
    if (head.status == 0) {
      std::vector<double> values(num_values_);
      std::memcpy(values.data(), output.data() + sizeof(head), num_values_ * sizeof(double));
      x_shape.accept(result, std::move(values));
    } else {
      set_failure(result, head.status == NREC_SIMULATOR_REFUSED ? RowStatus::refused : RowStatus::failed,
                  fmt::format("nrec_simulate returned {}", head.status));
    }
    return answer;
  }

  std::size_t most_bytes(std::size_t rows, const XShape&) const override {
    return sizeof(LibraryGreeting) + rows * (sizeof(AnswerHead) + num_values_ * sizeof(double));
  }

 private:
  std::shared_ptr<const SimulatorSetup> setup_;
  mutable std::size_t num_values_ = 0;  // from the greeting
};

}  // namespace

std::unique_ptr<Dialect> make_library_dialect(std::shared_ptr<const SimulatorSetup> setup) {
  return std::make_unique<LibraryDialect>(std::move(setup));
}

}  // namespace nrec::simulation
