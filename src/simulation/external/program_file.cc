#include "simulation/external/program_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string_view>
#include <system_error>

#include "nrec/core/error.h"

namespace nrec::simulation {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_executable(const fs::path& path) { return access(path.c_str(), X_OK) == 0; }

fs::path checked(const fs::path& path, const std::string& name) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw IoError(fmt::format("command: {} is a folder; give the program in it", path.string()));
  if (!is_file(path)) {
    throw IoError(fmt::format(
        "command: there is no program {} (looked for {}); names with a slash start from the folder of "
        "the problem file",
        name, path.string()));
  }
  if (!is_executable(path)) {
    throw IoError(
        fmt::format("command: {} may not be executed; allow it (chmod +x) or name its interpreter first, for "
                    "instance \"python3 {}\"",
                    path.string(), name));
  }
  return path;
}

// "#!/usr/bin/python3" -> "/usr/bin/python3"; "" for other files.
std::string interpreter_of(const fs::path& program) {
  std::ifstream file(program, std::ios::binary);
  std::string line(256, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  if (!line.starts_with("#!")) return "";
  const std::size_t start = line.find_first_not_of(" \t", 2);
  if (start == std::string::npos) return "";
  return line.substr(start, line.find_first_of(" \t\n", start) - start);
}

}  // namespace

std::string variable(std::span<const std::string> environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return "";
}

fs::path find_program(const std::string& name, const fs::path& folder, std::string_view path) {
  if (name.empty()) throw IoError("command: the name of the program is empty");
  if (name.find('/') != std::string::npos) return checked((folder / name).lexically_normal(), name);
  fs::path not_executable;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find(':', start), path.size());
    const std::string_view entry = path.substr(start, end - start);
    // An empty entry of PATH means the working folder, which is `folder` for programs.
    const fs::path candidate = folder / fs::path(entry) / name;
    if (is_file(candidate)) {
      if (is_executable(candidate)) return candidate.lexically_normal();
      not_executable = candidate;
    }
    start = end + 1;
  }
  if (!not_executable.empty()) return checked(not_executable, name);
  const bool is_here = is_file(folder / name);
  throw IoError(fmt::format("command: there is no program {} in the folders of PATH{}", name,
                            is_here ? fmt::format("; for the file in {} write ./{}", folder.string(), name)
                                    : "; install it, or give its path"));
}

std::string start_failure(const fs::path& program, StartStage stage, int code) {
  const std::string reason = std::generic_category().message(code);
  if (stage == StartStage::folder) return fmt::format("its working folder cannot be entered: {}", reason);
  if (stage != StartStage::program)
    return fmt::format("no process can be made for {}: {}", program.string(), reason);
  std::string advice;
  if (code == ENOENT && is_file(program)) {
    const std::string interpreter = interpreter_of(program);
    advice = interpreter.empty() ? "; the loader it was linked for is missing: was it built for this system?"
                                 : fmt::format("; its first line names {}, which is not there", interpreter);
  } else if (code == ENOEXEC) {
    advice = "; it is no program of this system; a script needs a first line such as #!/bin/sh";
  } else if (code == EACCES) {
    advice = "; allow it (chmod +x), or is its disk mounted noexec?";
  } else if (code == E2BIG) {
    advice = "; the command line is too long, hand theta over in a file: {theta_file}";
  }
  return fmt::format("{} cannot be executed: {}{}", program.string(), reason, advice);
}

bool is_passing_failure(StartStage stage, int code) {
  // ETXTBSY: somebody still has the program open for writing.
  return stage == StartStage::process ||
         (stage == StartStage::program && (code == ETXTBSY || code == EAGAIN || code == ENOMEM));
}

}  // namespace nrec::simulation
