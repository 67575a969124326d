// Processes: how they start, what they are given, and that they end with all they started.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "nrec/core/environment.h"
#include "nrec/core/error.h"
#include "simulation/external/child_process.h"
#include "simulation/external/tests/external_fixture.h"

namespace nrec::simulation {
namespace {

LaunchPlan shell(const std::string& script) {
  LaunchPlan plan;
  plan.program = "/bin/sh";
  plan.folder = "/";
  plan.words = {"sh", "-c", script};
  plan.environment = {"PATH=/usr/bin:/bin", "GREETING=hello"};
  return plan;
}

// Runs a script to its end, at most 20 s.
std::unique_ptr<ChildProcess> run_to_end(Supervisor& supervisor, const LaunchPlan& plan,
                                         const std::string& input = "") {
  auto child = std::make_unique<ChildProcess>(supervisor, plan, ChildProcess::Input::pipe);
  child->send(input);
  child->close_input();
  while (!child->is_over() && child->seconds() < 20.0) child->pump(0.1);
  EXPECT_TRUE(child->is_over());
  return child;
}

class Processes : public ::testing::Test {
 protected:
  SigpipeBlocked no_signal_;
  Supervisor supervisor_;
};

TEST_F(Processes, GetTheirWordsFolderEnvironmentAndInput) {
  LaunchPlan plan = shell(
      "echo \"$0 $1|$GREETING|$PWD|$(env | grep -cvE '^(PWD|OLDPWD|SHLVL|_)=')\"; cat; echo said >&2; exit "
      "3");
  plan.words.insert(plan.words.end(), {"zero word", "one"});
  plan.folder = "/usr";
  const auto child = run_to_end(supervisor_, plan, "input\nlines\n");
  EXPECT_EQ(child->output().substr(0, 29), "zero word one|hello|/usr|2\nin");
  expect_in(child->output(), "input\nlines\n");
  EXPECT_EQ(child->messages().text(), "said\n");
  ASSERT_EQ(child->state(), ChildProcess::State::ended);
  EXPECT_EQ(WEXITSTATUS(child->wait_status()), 3);
}

TEST_F(Processes, InheritNoDescriptorsAndNoSignalSettings) {
  const int leaking = open("/dev/null", O_RDONLY);  // as a careless library would: without O_CLOEXEC
  sigset_t blocked, before;
  sigfillset(&blocked);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  signal(SIGHUP, SIG_IGN);
  Supervisor supervisor;
  const auto child =
      run_to_end(supervisor, shell("ls /proc/self/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status; ulimit -c"));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  signal(SIGHUP, SIG_DFL);
  close(leaking);
  // ls itself has the folder open as 3.
  EXPECT_EQ(child->output(), "0\n1\n2\n3\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0\n");
}

TEST_F(Processes, LeadASessionWithoutATerminal) {
  const auto child = run_to_end(
      supervisor_, shell("ps -o sid= -p $$ | tr -d ' '; echo $$; (: < /dev/tty) 2> /dev/null || echo none"));
  const std::string& text = child->output();
  const std::size_t first = text.find('\n');
  EXPECT_EQ(text, text.substr(0, first + 1) + text.substr(0, first + 1) + "none\n");
}

TEST_F(Processes, SayWhyTheyCannotStart) {
  const WorkFolder work;
  const auto start = [&](const std::string& program, const std::string& folder) {
    LaunchPlan plan = shell("");
    plan.program = program;
    plan.folder = folder;
    const auto child = run_to_end(supervisor_, plan);
    EXPECT_EQ(child->state(), ChildProcess::State::not_started) << program;
    return std::pair(child->start_stage(), child->start_error());
  };
  work.write("plain", "no program");
  EXPECT_EQ(start((work.path() / "absent").string(), "/"), std::pair(StartStage::program, ENOENT));
  EXPECT_EQ(start((work.path() / "plain").string(), "/"), std::pair(StartStage::program, EACCES));
  EXPECT_EQ(start("/bin/sh", "/not there"), std::pair(StartStage::folder, ENOENT));
  // And the supervisor goes on.
  EXPECT_EQ(run_to_end(supervisor_, shell("echo x"))->output(), "x\n");
}

TEST_F(Processes, TakeMegabytesInAndOutAtOnce) {
  const std::string input(5'000'000, 'z');
  const auto child = run_to_end(supervisor_, shell("cat; head -c 300000 /dev/zero >&2"), input);
  EXPECT_EQ(child->output(), input);
  EXPECT_EQ(child->messages().text().size(), 4 * MessageTail::kBytes) << "each zero byte is shown as \\x00";
}

TEST_F(Processes, MayIgnoreTheirInput) {
  const auto child =
      run_to_end(supervisor_, shell("exec <&-; sleep 0.2; echo x"), std::string(5'000'000, 'z'));
  EXPECT_EQ(child->output(), "x\n");
  EXPECT_EQ(child->wait_status(), 0);
}

TEST_F(Processes, KeepNoMoreOutputThanAllowed) {
  ChildProcess child(supervisor_, shell("head -c 3000000 /dev/zero"), ChildProcess::Input::nothing);
  child.limit_output(1000);
  while (!child.is_over()) child.pump(0.1);
  EXPECT_EQ(child.output().size(), 1000u);
  EXPECT_TRUE(child.output_overflowed());
  EXPECT_EQ(child.wait_status(), 0) << "the rest was read and thrown away";
}

TEST_F(Processes, EndWithEverythingTheyStarted) {
  const std::string token = unique_token();
  // A child in the group, one in a session of its own, and one without our environment whose parent is gone.
  const std::string loop = "'trap \"\" TERM; while :; do sleep 1; done' " + token;
  ChildProcess child(supervisor_,
                     shell("sh -c " + loop + " & setsid sh -c " + loop + " & (env -i setsid sh -c " + loop +
                           " &) & sleep 0.3; echo ready; wait"),
                     ChildProcess::Input::nothing);
  while (child.output().empty() && child.seconds() < 20.0) child.pump(0.1);
  EXPECT_TRUE(are_there(token, 4));
  child.end(0.0);
  EXPECT_EQ(child.state(), ChildProcess::State::ended);
  EXPECT_EQ(processes_with(token), std::vector<int>());
}

TEST_F(Processes, GetTimeToLeaveAfterSigterm) {
  ChildProcess polite(supervisor_,
                      shell("trap 'echo bye >&2; exit 5' TERM; echo ready; while :; do sleep 0.05; done"),
                      ChildProcess::Input::nothing);
  while (polite.output().empty() && polite.seconds() < 20.0) polite.pump(0.1);
  const Stopwatch watch;
  polite.end(15.0);
  EXPECT_LT(watch.seconds(), 10.0) << "nobody waits for the grace to be over";
  expect_in(polite.messages().text(), "bye\n");
  EXPECT_EQ(WEXITSTATUS(polite.wait_status()), 5);
  EXPECT_TRUE(polite.was_ended_by_us());
}

TEST_F(Processes, AreLostWithTheirSupervisorButDoNotOutliveIt) {
  const std::string token = unique_token();
  ChildProcess child(supervisor_,
                     shell("sh -c 'sleep 600; :' " + token + " & echo $PPID; sleep 600; : " + token),
                     ChildProcess::Input::nothing);
  // The program may speak before its start was reported.
  while ((child.output().empty() || child.state() != ChildProcess::State::running) && child.seconds() < 20.0)
    child.pump(0.1);
  EXPECT_TRUE(are_there(token, 2));
  kill(std::stoi(child.output()), SIGKILL);
  while (!child.is_over() && child.seconds() < 20.0) child.pump(0.1);
  EXPECT_EQ(child.state(), ChildProcess::State::lost);
  EXPECT_TRUE(supervisor_.is_lost());
  EXPECT_TRUE(all_gone(token));
}

TEST(Supervisors, DieWithTheirOwnerAndTakeTheirProgramsAlong) {
  const std::string token = unique_token();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    const SigpipeBlocked no_signal;
    Supervisor supervisor;
    ChildProcess child(
        supervisor,
        shell("trap '' TERM; setsid sh -c 'sleep 600; :' " + token + " & echo x; sleep 600; : " + token),
        ChildProcess::Input::nothing);
    while (child.output().empty()) child.pump(0.1);
    [[maybe_unused]] const ssize_t written = write(ready[1], "x", 1);
    for (;;) pause();
  }
  close(ready[1]);
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  EXPECT_TRUE(are_there(token, 2));
  kill(owner, SIGKILL);
  ASSERT_EQ(waitpid(owner, nullptr, 0), owner);
  EXPECT_TRUE(all_gone(token));
}

TEST(Supervisors, LeaveNothingBehind) {
  const std::size_t before = num_children();
  {
    const SigpipeBlocked no_signal;
    Supervisor supervisor;
    ChildProcess child(supervisor, shell("sleep 600"), ChildProcess::Input::nothing);
    child.pump(0.1);
  }
  EXPECT_EQ(num_children(), before);
}

TEST(Supervisors, ServeManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([i] {
      const SigpipeBlocked no_signal;
      Supervisor supervisor;
      for (int j = 0; j < 20; ++j) {
        const std::string word = std::to_string(100 * i + j);
        EXPECT_EQ(run_to_end(supervisor, shell("read a; echo $a " + word), "in\n")->output(),
                  "in " + word + "\n");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Sigpipe, IsBlockedWhileNeededAndSwallowed) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  {
    const SigpipeBlocked no_signal;
    EXPECT_EQ(write(ends[1], "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  }
  close(ends[1]);
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  EXPECT_EQ(sigismember(&now, SIGPIPE), 0);
}

TEST(Environment, ListsEntries) {
  setenv("NREC_TEST_ENTRY", "a=b", 1);
  const std::vector<std::string> entries = environment_entries();
  EXPECT_NE(std::find(entries.begin(), entries.end(), "NREC_TEST_ENTRY=a=b"), entries.end());
  unsetenv("NREC_TEST_ENTRY");
}

}  // namespace
}  // namespace nrec::simulation
