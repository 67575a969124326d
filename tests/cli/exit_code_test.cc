#include "exit_code.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "nrec/core/error.h"

namespace nrec::app {
namespace {

TEST(ExitCode, OfEveryKindOfError) {
  EXPECT_EQ(exit_code_of(UsageError("")), 2);
  EXPECT_EQ(exit_code_of(ConfigError("")), 3);
  EXPECT_EQ(exit_code_of(ShapeError("")), 3);
  EXPECT_EQ(exit_code_of(DomainError("")), 3);
  EXPECT_EQ(exit_code_of(IoError("")), 3);
  EXPECT_EQ(exit_code_of(UnsupportedError("")), 3);
  EXPECT_EQ(exit_code_of(SimulationFailureError("")), 6);
  EXPECT_EQ(exit_code_of(InternalError("")), 1);
  EXPECT_EQ(exit_code_of(std::runtime_error("")), 1);
}

TEST(ExitCode, OfEveryStatus) {
  CommandResult result;
  const auto with = [&](CommandStatus status) {
    result.status = status;
    return exit_code_of(result, true, SIGTERM);
  };
  EXPECT_EQ(with(CommandStatus::done), 0);
  EXPECT_EQ(with(CommandStatus::budget_spent), 5);
  EXPECT_EQ(with(CommandStatus::stopped), 143);
  EXPECT_EQ(with(CommandStatus::failed), 1);
  result.check = CheckReport{};
  result.check->verdict = Verdict::cannot_tell;
  EXPECT_EQ(with(CommandStatus::done), 0);
  result.check->verdict = Verdict::not_trusted;
  EXPECT_EQ(with(CommandStatus::done), 4);
  EXPECT_EQ(exit_code_of(result, false, 0), 0);
}

}  // namespace
}  // namespace nrec::app
