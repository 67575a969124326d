#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "simulation/tests/campaign_examples.h"
#include "simulation/tests/child_process.h"

namespace nrec::simulation {
namespace {

const std::string kBeingWritten =
    "rows-1-of-1.sqlite: is being written by another process; wait until it has ended or stop it, or give "
    "each process "
    "a shard of its own. If there is none, the file system of this folder cannot lock files: choose a folder "
    "on another "
    "one";

std::string second_writer(const TemporaryFolder& folder) {
  return without_path(message_of<ConfigError>([&] {
                        CampaignWriter(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
                      }),
                      folder);
}

// Holds a database in a process of its own, with ten rows committed and three added.
ChildProcess start_writer(const TemporaryFolder& folder) {
  return ChildProcess([&](int pipe) {
    CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
    add_rows(writer, 0, 10);
    writer.commit();
    add_rows(writer, 10, 13);
    ChildProcess::send(pipe, "x");
    ::pause();
  });
}

TEST(CampaignLock, RefusesASecondWriterOfTheSameProcess) {
  const TemporaryFolder folder;
  const CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
  EXPECT_EQ(second_writer(folder), kBeingWritten);
}

TEST(CampaignLock, RefusesASecondWriterOfAnotherProcessUntilTheFirstEnds) {
  const TemporaryFolder folder;
  ChildProcess first = start_writer(folder);
  ASSERT_EQ(first.receive(1), "x");
  EXPECT_EQ(second_writer(folder), kBeingWritten);
  first.kill();
  const CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
  EXPECT_EQ(writer.stored_rows().size(), 10u);
}

TEST(CampaignLock, OutlivesReadersOfTheSameProcess) {
  const TemporaryFolder folder;
  CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
  add_rows(writer, 0, 10);
  writer.commit();
  // Each of these opens and closes the file; a descriptor closed past SQLite would drop the lock.
  EXPECT_TRUE(is_campaign(folder.path()));
  EXPECT_EQ(CampaignReader(folder.path()).summary().being_written.size(), 1u);
  EXPECT_EQ(second_writer(folder), kBeingWritten);
  EXPECT_EQ(in_child([&] { return second_writer(folder); }), kBeingWritten);
}

TEST(CampaignLock, ShowsReadersWhatIsBeingWritten) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {1, 2}, 20);
  ChildProcess writer = start_writer(folder);
  ASSERT_EQ(writer.receive(1), "x");
  EXPECT_TRUE(is_campaign(folder.path()));
  const CampaignReader reader(folder.path());
  EXPECT_EQ(reader.identity(), example_identity());
  const CampaignSummary summary = reader.summary();
  EXPECT_EQ(summary.num_rows, 10u);
  EXPECT_EQ(summary.databases, std::vector{folder / "rows-2-of-2.sqlite"});
  EXPECT_EQ(summary.being_written, std::vector{folder / "rows-1-of-1.sqlite"});
  EXPECT_EQ(without_path(message_of<ConfigError>([&] { reader.read(); }), folder),
            "rows-1-of-1.sqlite: is being written by another process; wait until it has ended, or stop it");
  writer.kill();
  EXPECT_EQ(reader.summary().num_rows, 15u) << "0 .. 9 of the killed one and 1, 3, .. 19";
  EXPECT_EQ(names_in(folder.path()), "rows-1-of-1.sqlite rows-2-of-2.sqlite");
}

TEST(CampaignLock, ShowsTheIdentityOfADatabaseThatIsBeingWritten) {
  const TemporaryFolder folder;
  const CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
  const CampaignReader reader(folder.path());
  EXPECT_EQ(reader.identity(), example_identity());
  EXPECT_EQ(reader.summary().num_rows, 0u);
}

TEST(CampaignLock, WaitsForReadersThatEndSoon) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 10);
  RawDatabase reader(folder / "rows-1-of-1.sqlite");
  reader.run("BEGIN; SELECT count(*) FROM rows");
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    reader.run("COMMIT");
  });
  {
    const CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
    EXPECT_EQ(writer.stored_rows().size(), 10u);
  }
  later.join();
}

TEST(CampaignLock, TellsAReaderFromAWriter) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 10);
  RawDatabase reader(folder / "rows-1-of-1.sqlite");
  reader.run("BEGIN; SELECT count(*) FROM rows");
  EXPECT_EQ(second_writer(folder),
            "rows-1-of-1.sqlite: is being read by another process; start again when that has ended");
}

TEST(CampaignLock, RefusesToReadAKilledDatabaseThatMayNotBeWritten) {
  const TemporaryFolder folder;
  ChildProcess writer = start_writer(folder);
  ASSERT_EQ(writer.receive(1), "x");
  writer.kill();
  namespace fs = std::filesystem;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                                     fs::perms::others_exec);
  const std::string refusal = in_child([&] {
    become_nobody();
    return message_of<IoError>([&] { CampaignReader(folder.path()); });
  });
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_EQ(without_path(refusal, folder),
            "rows-1-of-1.sqlite: its last writer was killed or ran out of space, and what it left in "
            "its log cannot be moved into it: "
            "it may not "
            "be written; allow writing of it and its folder for one time, or copy it together with the files "
            "beside it "
            "that start with its name to a place where you may write");
  // A copy of the database and its log is complete.
  fs::create_directory(folder / "copy");
  for (const char* name : {"rows-1-of-1.sqlite", "rows-1-of-1.sqlite-wal"}) {
    fs::copy_file(folder / name, folder / "copy" / name);
  }
  EXPECT_EQ(CampaignReader(folder / "copy").read(10).num_rows(), 10u);
}

TEST(CampaignLock, NeedsFewOpenFilesForAWriterAndOnePerDatabaseForAReader) {
  const TemporaryFolder folder;
  constexpr int kShards = 40;
  make_shard(folder.path(), {0, kShards}, 10);
  for (int shard = 2; shard < kShards; ++shard) {
    const std::string name = "rows-" + std::to_string(shard) + "-of-40.sqlite";
    std::filesystem::copy_file(folder / "rows-1-of-40.sqlite", folder / name);
  }
  const std::string answer = in_child([&] {
    const ::rlimit limit = {kShards / 2, kShards / 2};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) throw IoError("the limit cannot be set");
    {
      CampaignWriter writer(folder.path(), example_identity(), {kShards - 1, kShards},
                            ChangedCampaign::refuse);
      if (writer.stored_rows().size() != 1) return std::string("wrong rows");
    }
    return message_of<IoError>([&] { CampaignReader(folder.path()); });
  });
  EXPECT_TRUE(answer.ends_with(
      "sqlite: cannot be opened (unable to open database file: Too many open files); raise the "
      "limit of open files (ulimit -n)"))
      << answer;
  EXPECT_EQ(CampaignReader(folder.path()).read().num_rows(), 1u);
}

}  // namespace
}  // namespace nrec::simulation
