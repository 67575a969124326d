// A simulator that behaves, or not, by what it is told: see behaviour.h.
//
//   simulator run TOKEN theta_0 theta_1 seed     x on stdout
//   simulator files TOKEN theta_file x_file      seed from NREC_SEED
//   simulator stdin TOKEN                        theta from stdin, seed from NREC_SEED
//   simulator lines TOKEN                        lines "seed theta_0 theta_1"
//   simulator ids TOKEN                          lines "row seed theta_0 theta_1", answers with the row
//   simulator npy TOKEN                          frames
//
// NREC_STUB_ROW_US in the environment: microseconds of work per row.
#include <chrono>
#include <cmath>
#include <iostream>
#include <sstream>

#include "behaviour.h"
#include "npy_frames.h"

namespace {

using stub::Code;

struct Request {
  long row = 0;
  double seed = 0.0;
  double theta_0 = 0.0, theta_1 = 0.0;
};

std::string joined(const std::vector<double>& values) {
  std::ostringstream text;
  text.precision(17);
  for (std::size_t i = 0; i < values.size(); ++i) text << (i > 0 ? " " : "") << values[i];
  return text.str();
}

// x as text, with what is wrong with it.
std::string answer_text(const Request& request, int code) {
  std::vector<double> x = stub::right_x(request.theta_0, request.theta_1, request.seed);
  if (code == Code::nan_value) x[1] = std::nan("");
  if (code == Code::infinite_value) x[1] = -INFINITY;
  if (code == Code::one_too_few) x.pop_back();
  if (code == Code::one_too_many) x.push_back(4.0);
  if (code == Code::no_answer) return "";
  if (code == Code::text_before) return "mass= " + joined(x);
  if (code == Code::text_after) return joined(x) + " seconds";
  if (code == Code::comma_decimals) return "1,5 2,5 3,5";
  if (code == Code::binary_garbage)
    return std::string(
        "\x01\xff\x00\xfe"
        "ab\x9b",
        7);
  if (code == Code::refuse_in_words) return "refused too heavy";
  return joined(x);
}

void work() {
  static const char* text = std::getenv("NREC_STUB_ROW_US");
  static const double microseconds = text ? std::atof(text) : 0.0;
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() <
         microseconds) {
  }
}

void say(const std::string& text) {
  std::cout << text;
  std::cout.flush();
}

void close_stdout_and_run_on() {
  std::cout.flush();
  close(1);
  stub::sleep_forever();
}

int run_once(const Request& request, const char* x_file) {
  const int code = stub::code_of(request.theta_0);
  stub::misbehave(code);
  if (code == Code::close_stdout_and_run_on) {
    say(answer_text(request, 0));
    close_stdout_and_run_on();
  }
  if (code == Code::flood_stdout) stub::flood(1, stub::flood_megabytes());
  if (x_file != nullptr) {
    if (code != Code::no_answer) std::ofstream(x_file) << answer_text(request, code) << '\n';
  } else {
    say(answer_text(request, code) + (code == Code::no_line_end ? "" : "\n"));
  }
  if (code == Code::crash_at_end) raise(SIGSEGV);
  return 0;
}

// One answer line, and what comes before or after it.
void answer_line(const Request& request, bool with_ids) {
  static std::string kept_back;  // the answer that is to come late
  const int code = stub::code_of(request.theta_0);
  stub::misbehave(code);
  const std::string id = with_ids ? std::to_string(request.row + (code == Code::other_id ? 7 : 0)) + " " : "";
  const std::string line = id + answer_text(request, code) + "\n";
  if (code == Code::close_stdout_and_run_on) close_stdout_and_run_on();
  if (code == Code::flood_stdout) stub::flood(1, stub::flood_megabytes());
  if (code == Code::no_answer) return;
  if (code == Code::no_line_end) {
    say(line.substr(0, line.size() - 1));
    std::exit(0);
  }
  if (code == Code::out_of_order && kept_back.empty()) {
    kept_back = line;
    return;
  }
  say(line + kept_back + (code == Code::twice ? line : "") +
      (code == Code::a_line_too_many ? id + "1 2 3\n" : ""));
  kept_back.clear();
  if (code == Code::crash_at_end) std::atexit([] { raise(SIGSEGV); });
  if (code == Code::hang_at_end) std::atexit([] { stub::sleep_forever(); });
}

int serve_lines(bool with_ids) {
  std::ios::sync_with_stdio(false);
  Request request;
  for (std::string line; std::getline(std::cin, line);) {
    const char* place = line.c_str();
    char* end = nullptr;
    if (with_ids) {
      request.row = std::strtol(place, &end, 10);
      place = end;
    }
    request.seed = std::strtod(place, &end);
    request.theta_0 = std::strtod(end, &end);
    request.theta_1 = std::strtod(end, &end);
    work();
    answer_line(request, with_ids);
  }
  return 0;
}

// One answer frame, and what comes before or after it. The worst code of the rows decides about the frame.
void answer_frame(const std::vector<double>& seeds, const std::vector<double>& theta) {
  const std::size_t rows = seeds.size();
  std::vector<double> x;
  int worst = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    work();
    const int code = stub::code_of(theta[2 * i]);
    worst = std::max(worst, code);
    stub::misbehave(code);
    for (const double value : stub::right_x(theta[2 * i], theta[2 * i + 1], seeds[i])) x.push_back(value);
    if (code == Code::nan_value) x.back() = std::nan("");
    if (code == Code::infinite_value) x.back() = INFINITY;
  }
  std::size_t columns = 3;
  if (worst == Code::close_stdout_and_run_on) close_stdout_and_run_on();
  if (worst == Code::flood_stdout) stub::flood(1, stub::flood_megabytes());
  if (worst == Code::no_answer) return;
  if (worst == Code::one_too_few || worst == Code::one_too_many) columns = worst == Code::one_too_few ? 2 : 4;
  x.resize(rows * columns, 1.0);
  if (worst == Code::binary_garbage)
    say(
        std::string("\x01\xff\x00\xfe"
                    "ab\x9b",
                    7));
  if (worst == Code::text_before || worst == Code::comma_decimals) say("1,5 seconds\n");
  std::string frame = stub::frame_bytes(x, rows, columns);
  if (worst == Code::no_line_end) {
    say(frame.substr(0, frame.size() - 1));
    std::exit(0);
  }
  say(frame);
  if (worst == Code::text_after) say("seconds\n");
  if (worst == Code::twice || worst == Code::a_line_too_many) say(frame);
  if (worst == Code::crash_at_end) std::atexit([] { raise(SIGSEGV); });
}

int serve_npy() {
  std::vector<double> seeds, theta;
  std::vector<std::size_t> shape;
  while (stub::read_frame(std::cin, seeds, shape) && stub::read_frame(std::cin, theta, shape))
    answer_frame(seeds, theta);
  return 0;
}

double environment_seed() {
  const char* text = std::getenv("NREC_SEED");
  return text ? std::atof(text) : -1.0;
}

}  // namespace

int main(int count, char** words) {
  const std::string protocol = count > 1 ? words[1] : "";
  Request request;
  if (protocol == "run" && count == 6) {
    request.theta_0 = std::atof(words[3]);
    request.theta_1 = std::atof(words[4]);
    request.seed = std::atof(words[5]);
    return run_once(request, nullptr);
  }
  request.seed = environment_seed();
  if (protocol == "files" && count == 5) {
    std::ifstream(words[3]) >> request.theta_0 >> request.theta_1;
    return run_once(request, words[4]);
  }
  if (protocol == "stdin") {
    std::cin >> request.theta_0 >> request.theta_1;
    return run_once(request, nullptr);
  }
  if (protocol == "lines") return serve_lines(false);
  if (protocol == "ids") return serve_lines(true);
  if (protocol == "npy") return serve_npy();
  std::cerr << "simulator: unknown words\n";
  return 2;
}
