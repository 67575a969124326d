#include "simulation/external/run_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "nrec/core/error.h"
#include "nrec/io/file.h"
#include "nrec/io/npy.h"
#include "simulation/external/number_text.h"

namespace nrec::simulation {
namespace {

namespace fs = std::filesystem;

std::string theta_line(const RowTask& task) {
  std::string text;
  append_numbers(text, task.theta);
  return text + '\n';
}

// Scratch files need not survive a power failure, so they are not synced to disk.
void write_scratch(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file)
    throw IoError(
        fmt::format("simulator: {} cannot be written; is the disk full? scratch chooses another", path));
}

}  // namespace

RunRunner::RunRunner(std::shared_ptr<const SimulatorSetup> setup, const RunnerSettings& settings)
    : host_(setup),
      x_shape_(settings.x_shape),
      limit_(settings.row_time_limit),
      takes_input_(!hands_theta_over(*setup)) {}

void RunRunner::run(std::span<const RowTask> tasks, const std::function<void(RowResult&&)>& done,
                    const StopRequest& stop) {
  const SigpipeBlocked no_signal;
  for (const RowTask& task : tasks) {
    std::optional<RowResult> result = run_row(task, stop);
    if (!result) return;
    done(std::move(*result));
  }
}

std::optional<RowResult> RunRunner::run_row(const RowTask& task, const StopRequest& stop) {
  Attempts attempts;
  for (;;) {
    std::optional<Ending> ending = run_once(task, stop);
    if (!ending) return std::nullopt;
    if (!attempts.try_again(ending->result, ending->is_interruption, host_.setup().options.retries))
      return std::move(ending->result);
  }
}

RunRunner::Files RunRunner::prepare_files(const RowTask& task) {
  const fs::path& scratch = host_.fresh_scratch();
  const std::vector<WordTemplate>& words = host_.setup().words;
  Files files{scratch, "", ""};
  if (uses(words, Blank::theta_file)) {
    files.theta = (scratch / "theta.txt").string();
    write_scratch(files.theta, theta_line(task));
  } else if (uses(words, Blank::theta_file_npy)) {
    files.theta = (scratch / "theta.npy").string();
    write_scratch(files.theta, npy_bytes({{task.theta.size()}, {task.theta.begin(), task.theta.end()}}));
  }
  if (uses(words, Blank::x_file)) files.x = (scratch / "x.txt").string();
  if (uses(words, Blank::x_file_npy)) files.x = (scratch / "x.npy").string();
  return files;
}

std::optional<RunRunner::Ending> RunRunner::run_once(const RowTask& task, const StopRequest& stop) {
  while (!stop.requested()) {
    const Files files = prepare_files(task);
    const BlankValues values{task.theta, task.seed, task.row, files.theta, files.x};
    const auto child = host_.start(launch_plan(host_.setup(), values, files.scratch),
                                   takes_input_ ? ChildProcess::Input::pipe : ChildProcess::Input::nothing);
    child->limit_output(files.x.empty() ? x_shape_.most_bytes() : 0);
    if (takes_input_) child->send(theta_line(task));
    child->close_input();
    std::optional<std::string> late = wait_for_end(*child, stop);
    if (!late) break;
    if (child->state() == ChildProcess::State::not_started) {
      host_.after_failed_start(*child, stop);
      continue;
    }
    host_.after_good_start();
    Ending ending = judge(task, *child, files, std::move(*late));
    host_.clear_scratch();
    return ending;
  }
  return std::nullopt;
}

std::optional<std::string> RunRunner::wait_for_end(ChildProcess& child, const StopRequest& stop) const {
  double closed_at = -1.0;
  while (!child.is_over()) {
    if (stop.requested()) {
      child.end(kStopGrace);
      return std::nullopt;
    }
    if (closed_at < 0.0 && child.output_closed()) closed_at = child.seconds();
    if (std::string late = lateness(child, closed_at); !late.empty()) {
      child.end(kGrace);
      return late;
    }
    child.pump(std::clamp(limit_.seconds() - child.seconds(), 0.001, kLongestWait));
    host_.on_wait();
  }
  return "";
}

std::string RunRunner::lateness(const ChildProcess& child, double closed_at) const {
  const double limit = limit_.seconds();
  if (child.seconds() > limit) return fmt::format("no end after {}", seconds_text(limit));
  // A program that hands x over in a file may do with its stdout what it likes.
  const bool x_from_stdout =
      !uses(host_.setup().words, Blank::x_file) && !uses(host_.setup().words, Blank::x_file_npy);
  if (x_from_stdout && closed_at >= 0.0 && child.seconds() - closed_at > kMostSecondsOfLeaving)
    return fmt::format("it closed its stdout but ran on for {}", seconds_text(kMostSecondsOfLeaving));
  return "";
}

RunRunner::Ending RunRunner::judge(const RowTask& task, ChildProcess& child, const Files& files,
                                   std::string late) {
  Ending ending;
  RowResult& result = ending.result;
  result.row = task.row;
  result.seconds = child.seconds();
  if (!late.empty()) {
    set_failure(result, RowStatus::timed_out, std::move(late));
  } else if (child.state() == ChildProcess::State::lost) {
    set_failure(result, RowStatus::failed, "its supervising process was killed");
    ending.is_interruption = true;
  } else if (child.wait_status() != 0) {
    set_ending(result, child.wait_status());
    ending.is_interruption = is_interruption(child.wait_status());
  } else {
    read_answer(result, child, files);
    limit_.note(result.seconds);
  }
  if (result.status != RowStatus::ok) result.messages = child.messages().text();
  return ending;
}

void RunRunner::read_answer(RowResult& result, ChildProcess& child, const Files& files) {
  if (files.x.empty()) {
    if (child.output_overflowed()) {
      set_failure(result, RowStatus::wrong_shape,
                  fmt::format("more than {} bytes on stdout", x_shape_.most_bytes()));
    } else {
      x_shape_.accept_bytes(result, child.output());
    }
    return;
  }
  std::error_code ignored;
  if (!fs::exists(files.x, ignored)) {
    const bool has_suffix = fs::exists(files.x + ".npy", ignored);
    set_failure(result, RowStatus::wrong_shape,
                has_suffix ? "no file {x_file}, but one with .npy behind its name: use {x_file:npy}"
                           : "no file {x_file}: the program did not write it");
    return;
  }
  try {
    x_shape_.accept_bytes(result, read_file(files.x, x_shape_.most_bytes()));
  } catch (const IoError& error) {
    // Equal failures have equal reasons: without the name of this row's folder.
    std::string text = error.what();
    if (text.starts_with(files.x)) text.replace(0, files.x.size(), "the file {x_file}");
    set_failure(result, RowStatus::wrong_shape, std::move(text));
  }
}

}  // namespace nrec::simulation
