#include "simulation/external/simulator_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <system_error>
#include <tuple>
#include <utility>

#include "nrec/core/environment.h"
#include "nrec/core/error.h"
#include "nrec/core/suggest.h"
#include "nrec/io/file.h"
#include "simulation/external/program_file.h"

namespace nrec::simulation {
namespace {

namespace fs = std::filesystem;

// Collects broken rules, so that all are told at once.
class Rules {
 public:
  void require(bool ok, const std::string& text) {
    if (!ok) text_ += (text_.empty() ? "" : "\n") + text;
  }
  void check() const {
    if (!text_.empty()) throw ConfigError(text_);
  }

 private:
  std::string text_;
};

void check_values(const ExternalSimulatorOptions& options) {
  Rules rules;
  const bool both = !options.command.empty() && !options.library.empty();
  rules.require(!options.command.empty() || !options.library.empty(),
                "simulator: neither command nor library is given; give one");
  rules.require(!both, "simulator: command and library are given; a simulator is one of both");
  rules.require(options.library.empty() || options.protocol.empty(),
                fmt::format("protocol = \"{}\": a library has its own; leave it out", options.protocol));
  const std::vector<std::string> known = {"run", "lines", "npy"};
  if (!options.protocol.empty() && std::find(known.begin(), known.end(), options.protocol) == known.end()) {
    const std::string nearest = nearest_word(options.protocol, known);
    rules.require(false,
                  fmt::format("protocol = \"{}\" is unknown{}; known are run, lines, npy", options.protocol,
                              nearest.empty() ? "" : fmt::format("; is it {}?", nearest)));
  }
  const auto require_number = [&](const char* name, double value) {
    rules.require(value >= 0.0 && std::isfinite(value),
                  fmt::format("{} = {}: must be a finite number >= 0", name, value));
  };
  require_number("row_time_limit", options.row_time_limit);
  require_number("memory_limit", options.memory_limit);
  rules.require(options.retries >= 0 && options.retries <= 1000,
                fmt::format("retries = {}: must be in 0 .. 1000", options.retries));
  rules.require(options.rows_per_process >= 0,
                fmt::format("rows_per_process = {}: must be >= 0", options.rows_per_process));
  rules.require(options.batch_rows >= 1 && options.batch_rows <= 1'000'000,
                fmt::format("batch_rows = {}: must be in 1 .. 1000000", options.batch_rows));
  rules.check();
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

bool has_blanks(std::span<const WordTemplate> words) {
  for (const WordTemplate& word : words) {
    for (const WordPart& part : word) {
      if (part.kind != Blank::literal) return true;
    }
  }
  return false;
}

void require_all_parameters(const SimulatorSetup& setup, std::span<const WordTemplate> words,
                            const char* key) {
  const std::vector<std::string> left_out = parameters_left_out(words, setup.names);
  if (left_out.empty()) return;
  throw ConfigError(fmt::format("{}: the program is not told {}; add {{{}}}, or {{theta}} for all values",
                                key, joined(left_out), left_out.front()));
}

void check_run_command(const SimulatorSetup& setup) {
  if (hands_theta_over(setup)) require_all_parameters(setup, setup.words, "command");
  for (const auto& [text, npy, name] : {std::tuple{Blank::theta_file, Blank::theta_file_npy, "theta_file"},
                                        std::tuple{Blank::x_file, Blank::x_file_npy, "x_file"}}) {
    if (uses(setup.words, text) && uses(setup.words, npy)) {
      throw ConfigError(fmt::format(
          "command: {{{}}} and {{{}:npy}} are two formats of one file; use one of them", name, name));
    }
  }
}

void read_command(SimulatorSetup& setup) {
  setup.words = split_command(setup.options.command, setup.names);
  const bool blanks = has_blanks(setup.words);
  const std::string& protocol = setup.options.protocol;
  setup.protocol = protocol == "npy"                                      ? Protocol::npy
                   : protocol == "lines" || (protocol.empty() && !blanks) ? Protocol::lines
                                                                          : Protocol::run;
  if (setup.protocol == Protocol::run) {
    check_run_command(setup);
  } else if (blanks) {
    throw ConfigError(
        fmt::format("command: has placeholders, but with protocol = \"{}\" the program is started once for "
                    "many rows{}",
                    protocol,
                    setup.protocol == Protocol::lines ? "; put them into line"
                                                      : "; it reads seeds and theta from its stdin"));
  }
  if (setup.protocol == Protocol::lines) {
    setup.line = read_line_template(setup.options.line, setup.names);
    require_all_parameters(setup, std::span(&setup.line, 1), "line");
  }
  if (!setup.words[0].empty() && has_blanks(std::span(setup.words).first(1)))
    throw ConfigError("command: its first word, the program, cannot hold placeholders");
}

std::string search_path(const SimulatorSetup& setup) {
  const std::string path = variable(setup.environment, "PATH");
  return path.empty() ? "/usr/bin:/bin" : path;
}

void read_library(SimulatorSetup& setup) {
  setup.protocol = Protocol::library;
  setup.library = (setup.folder / setup.options.library).lexically_normal();
  std::error_code ignored;
  if (!fs::is_regular_file(setup.library, ignored)) {
    throw IoError(fmt::format(
        "library: there is no file {} (looked for {}); names start from the folder of the problem file",
        setup.options.library, setup.library.string()));
  }
  const std::string& worker = setup.options.worker_program;
  setup.program = worker.empty() ? fs::read_symlink("/proc/self/exe", ignored)
                                 : find_program(worker, fs::current_path(), search_path(setup));
  for (const std::string& word :
       {setup.program.string(), std::string("worker"), std::string("--library"), setup.library.string()})
    setup.words.push_back({{Blank::literal, word, 0}});
}

fs::path scratch_base(const SimulatorSetup& setup) {
  if (!setup.options.scratch.empty()) return fs::absolute(setup.options.scratch);
  std::error_code code;
  const fs::path system = fs::temp_directory_path(code);
  if (code) {
    throw IoError(fmt::format(
        "simulator: the folder for temporary files (TMPDIR) cannot be used: {}; choose one with scratch",
        code.message()));
  }
  return system;
}

// A hash line for every word of the command that is, or holds behind "=", the name of a file.
void append_file_hashes(std::string& text, const SimulatorSetup& setup) {
  for (const WordTemplate& word : std::span(setup.words).subspan(1)) {
    if (word.size() != 1 || word[0].kind != Blank::literal) continue;
    const std::string& whole = word[0].text;
    const std::size_t equals = whole.find('=');
    for (const std::string& name :
         {whole, equals == std::string::npos ? std::string() : whole.substr(equals + 1)}) {
      const fs::path path = setup.folder / name;
      std::error_code ignored;
      if (!name.empty() && fs::is_regular_file(path, ignored))
        text += fmt::format("file {} {}\n", name, file_hash(path));
    }
  }
}

}  // namespace

std::shared_ptr<const SimulatorSetup> read_setup(ExternalSimulatorOptions options,
                                                 std::vector<std::string> names) {
  check_values(options);
  if (names.empty()) throw ConfigError("simulator: there are no parameters; give at least one");
  auto setup = std::make_shared<SimulatorSetup>();
  setup->options = std::move(options);
  setup->names = std::move(names);
  setup->folder =
      fs::absolute(setup->options.folder.empty() ? fs::path(".") : setup->options.folder).lexically_normal();
  setup->environment = environment_entries();
  std::error_code ignored;
  if (!fs::is_directory(setup->folder, ignored))
    throw IoError(fmt::format("simulator: there is no folder {}", setup->folder.string()));
  if (setup->options.library.empty()) {
    read_command(*setup);
    std::string name;
    append_filled(name, setup->words[0], {});
    setup->program = find_program(name, setup->folder, search_path(*setup));
  } else {
    read_library(*setup);
  }
  setup->scratch = scratch_base(*setup);
  return setup;
}

bool hands_theta_over(const SimulatorSetup& setup) {
  for (const Blank kind : {Blank::theta, Blank::parameter, Blank::theta_file, Blank::theta_file_npy}) {
    if (uses(setup.words, kind)) return true;
  }
  return false;
}

std::string setup_hash(const SimulatorSetup& setup) {
  constexpr std::array<const char*, 4> kProtocols{"run", "lines", "npy", "library"};
  std::string text = fmt::format("protocol {}\n", kProtocols[static_cast<std::size_t>(setup.protocol)]);
  if (setup.protocol == Protocol::library) {
    text += fmt::format("library {}\n", file_hash(setup.library));
  } else {
    text += fmt::format("command {}\nprogram {}\n", setup.options.command, file_hash(setup.program));
    append_file_hashes(text, setup);
  }
  if (setup.protocol == Protocol::lines) text += fmt::format("line {}\n", setup.options.line);
  for (const std::string& name : setup.names) text += fmt::format("parameter {}\n", name);
  return content_hash(text);
}

LaunchPlan launch_plan(const SimulatorSetup& setup, const BlankValues& values, const fs::path& scratch) {
  LaunchPlan plan;
  plan.program = setup.program.string();
  plan.folder = setup.folder.string();
  plan.memory_limit = static_cast<std::uint64_t>(setup.options.memory_limit * 1e6);
  for (const WordTemplate& word : setup.words) append_filled(plan.words.emplace_back(), word, values);
  const auto is_ours = [](const std::string& entry) {
    return entry.starts_with("NREC_SEED=") || entry.starts_with("NREC_ROW=") ||
           entry.starts_with("NREC_SCRATCH=") || entry.starts_with("NREC_DIM_THETA=") ||
           entry.starts_with("TMPDIR=");
  };
  for (const std::string& entry : setup.environment) {
    if (!is_ours(entry)) plan.environment.push_back(entry);
  }
  plan.environment.push_back("TMPDIR=" + scratch.string());
  plan.environment.push_back("NREC_SCRATCH=" + scratch.string());
  plan.environment.push_back(fmt::format("NREC_DIM_THETA={}", setup.names.size()));
  if (!setup.is_persistent()) {
    plan.environment.push_back(fmt::format("NREC_SEED={}", values.seed));
    plan.environment.push_back(fmt::format("NREC_ROW={}", values.row));
  }
  return plan;
}

}  // namespace nrec::simulation
