#include "simulation/external/descendants.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>

namespace nrec::simulation {
namespace {

// One entry of the system call getdents64: opendir() allocates.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
  char name[1];
};

pid_t process_number(const char* name) noexcept {
  long number = 0;
  for (; *name >= '0' && *name <= '9' && number < 1'000'000'000; ++name) number = 10 * number + (*name - '0');
  return *name == '\0' ? static_cast<pid_t>(number) : 0;
}

// The whole number at *text, which is moved behind it.
std::int64_t next_number(const char** text) noexcept {
  while (**text == ' ') ++*text;
  const bool negative = **text == '-';
  if (negative) ++*text;
  std::int64_t number = 0;
  for (; **text >= '0' && **text <= '9'; ++*text) number = 10 * number + (**text - '0');
  return negative ? -number : number;
}

// "/proc/<process>/stat" into `path`.
void write_stat_path(const char* process, char (&path)[64]) noexcept {
  std::size_t used = 0;
  for (const char* part : {"/proc/", process, "/stat"}) {
    for (; *part != '\0' && used + 1 < sizeof(path); ++part) path[used++] = *part;
  }
  path[used] = '\0';
}

bool read_facts(const char* name, ProcessFacts& facts) noexcept {
  char path[64];
  write_stat_path(name, path);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[1024];
  const ssize_t length = read(file, text, sizeof(text) - 1);
  close(file);
  if (length <= 0) return false;
  text[length] = '\0';
  // process (name) state parent group session ...: the name may hold blanks and brackets, so start at the last one.
  const char* rest = std::strrchr(text, ')');
  if (rest == nullptr || rest[1] == '\0' || rest[2] == '\0') return false;
  rest += 3;
  facts.process = process_number(name);
  facts.parent = static_cast<pid_t>(next_number(&rest));
  next_number(&rest);  // group
  facts.session = static_cast<pid_t>(next_number(&rest));
  // Field 24 of proc(5) is the resident set; the session is field 6.
  constexpr int kFieldsBetween = 17;
  for (int field = 0; field < kFieldsBetween; ++field) next_number(&rest);
  facts.resident_pages = static_cast<std::uint64_t>(next_number(&rest));
  return true;
}

}  // namespace

bool for_each_process(void (*visit)(const ProcessFacts&, void*), void* context) noexcept {
  const int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  alignas(DirectoryEntry) char entries[8192];
  for (;;) {
    const long filled = syscall(SYS_getdents64, folder, entries, sizeof(entries));
    if (filled <= 0) break;
    for (long place = 0; place < filled;) {
      DirectoryEntry entry;
      std::memcpy(&entry, entries + place, offsetof(DirectoryEntry, name));
      const char* name = entries + place + offsetof(DirectoryEntry, name);
      ProcessFacts facts;
      if (process_number(name) != 0 && read_facts(name, facts)) visit(facts, context);
      place += entry.length;
    }
  }
  close(folder);
  return true;
}

void kill_children() noexcept {
  pid_t self = getpid();
  for_each_process(
      [](const ProcessFacts& facts, void* parent) {
        if (facts.parent == *static_cast<pid_t*>(parent)) kill(facts.process, SIGKILL);
      },
      &self);
}

std::uint64_t session_memory(pid_t session) noexcept {
  struct Sum {
    pid_t session;
    std::uint64_t pages;
  } sum{session, 0};
  for_each_process(
      [](const ProcessFacts& facts, void* context) {
        auto& total = *static_cast<Sum*>(context);
        if (facts.session == total.session) total.pages += facts.resident_pages;
      },
      &sum);
  return sum.pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace nrec::simulation
