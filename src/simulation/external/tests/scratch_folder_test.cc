#include "simulation/external/scratch_folder.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "nrec/core/error.h"
#include "simulation/external/tests/external_fixture.h"

namespace nrec::simulation {
namespace {

namespace fs = std::filesystem;

std::size_t num_entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(ScratchFolder, GivesEmptyFoldersAndRemovesThem) {
  const WorkFolder work;
  fs::path last;
  {
    ScratchFolder scratch(work.path() / "not" / "there");
    const fs::path first = scratch.fresh();
    std::ofstream(first / "file") << "x";
    last = scratch.fresh();
    EXPECT_NE(first, last);
    EXPECT_FALSE(fs::exists(first));
    EXPECT_EQ(num_entries(last), 0u);
    EXPECT_EQ(fs::status(last).permissions(), fs::perms::owner_all) << "nobody else reads it";
  }
  EXPECT_EQ(num_entries(work.path() / "not" / "there"), 0u);
}

TEST(ScratchFolder, SurvivesWhatProgramsDoToIt) {
  const WorkFolder work;
  ScratchFolder scratch(work.path());
  const fs::path target = work.path() / "elsewhere";
  fs::create_directory(target);
  std::ofstream(target / "kept") << "x";
  const fs::path first = scratch.fresh();
  fs::create_directory_symlink(target, first / "link");
  fs::create_directories(first / "a" / "b");
  std::ofstream(first / "a" / "b" / "file") << "x";
  chmod((first / "a" / "b").c_str(), 0);
  chmod((first / "a").c_str(), 0);
  chmod(first.c_str(), 0);
  const fs::path second = scratch.fresh();
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(fs::exists(target / "kept")) << "links are not followed";
  fs::remove_all(second.parent_path());
  EXPECT_TRUE(fs::is_directory(scratch.fresh()));
}

TEST(ScratchFolder, SaysWhereItCannotBeMade) {
  const WorkFolder work;
  work.write("file", "x");
  ScratchFolder scratch(work.path() / "file");
  EXPECT_EQ(text_of<IoError>([&] { scratch.fresh(); }),
            "simulator: no folder for temporary files can be made in " + (work.path() / "file").string() +
                ": Not a directory; choose a folder that can be written with scratch");
}

TEST(ScratchFolder, IsTidiedUpOnlyWhenItsOwnerIsGone) {
  const WorkFolder work;
  ScratchFolder alive(work.path());
  const fs::path kept = alive.fresh();
  fs::create_directory(work.path() / "another-folder");
  const pid_t owner = fork();
  if (owner == 0) {
    ScratchFolder lost(work.path());
    std::ofstream(lost.fresh() / "file") << "x";
    kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(waitpid(owner, nullptr, 0), owner);
  EXPECT_EQ(num_entries(work.path()), 3u);
  remove_stale_scratch(work.path());
  EXPECT_EQ(num_entries(work.path()), 2u);
  EXPECT_TRUE(fs::exists(kept));
  EXPECT_TRUE(fs::exists(work.path() / "another-folder"));
  remove_stale_scratch(work.path() / "not there");
}

}  // namespace
}  // namespace nrec::simulation
