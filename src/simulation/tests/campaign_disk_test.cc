#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>

#include "simulation/tests/campaign_examples.h"
#include "simulation/tests/child_process.h"
#include "simulation/tests/faulty_file_system.h"

namespace nrec::simulation {
namespace {

struct Outcome {
  std::uint64_t acknowledged = 0;
  std::string error;    // empty when all rows could be written
  bool repeats = true;  // later calls throw the same error
};

using ResultOf = RowResult (*)(std::uint64_t);

// Adds rows with a commit after every `per_commit` until the disk says no.
Outcome write_rows(const std::filesystem::path& folder, std::uint64_t num_rows, std::uint64_t per_commit,
                   ResultOf result_of = example_result) {
  Outcome outcome;
  std::optional<CampaignWriter> writer;
  try {
    writer.emplace(folder, example_identity(), Shard{}, ChangedCampaign::refuse);
    for (std::uint64_t row = writer->stored_rows().size(); row < num_rows; ++row) {
      writer->add(example_theta(row), result_of(row));
      if ((row + 1) % per_commit != 0) continue;
      writer->commit();
      outcome.acknowledged = row + 1;
    }
  } catch (const IoError& error) {
    outcome.error = error.what();
    if (writer) {
      outcome.repeats = message_of<IoError>([&] { writer->commit(); }) == outcome.error &&
                        message_of<IoError>([&] { add_rows(*writer, 1, 2); }) == outcome.error;
    }
  }
  return outcome;
}

// Everything that was acknowledged is there, and everything that is there is right.
void expect_safe(const std::filesystem::path& folder, std::uint64_t acknowledged) {
  SimulationSet set;
  try {
    set = CampaignReader(folder).read();
  } catch (const IoError& error) {  // its tables were not made yet
    EXPECT_NE(std::string(error.what()).find("holds no database of a campaign"), std::string::npos)
        << error.what();
    EXPECT_EQ(acknowledged, 0u);
  }
  EXPECT_GE(set.num_rows(), acknowledged);
  for (std::size_t row = 0; row < set.num_rows(); ++row) {
    ASSERT_TRUE(is_example_row(set, row, row)) << "row " << row;
  }
}

// Enough to move the log in the middle and at the end.
constexpr std::uint64_t kRows = 60;
constexpr std::uint64_t kRowsPerCommit = 5;

// Lets the disk fail at its first, second, ... operation (later ones are sampled), until a run gets through; returns how
// many runs failed.
int fail_everywhere(const TemporaryFolder& folder, const std::string& wanted_text,
                    const std::function<void(FaultyFileSystem&, int)>& order) {
  int num_failures = 0;
  for (int passed = 0;; passed += passed < 50 ? 1 : 13) {
    FaultyFileSystem system;
    const auto campaign = folder / std::to_string(passed);
    std::filesystem::create_directory(campaign);  // the writer would sync it to the disk, which may be busy
    order(system, passed);
    const Outcome outcome = write_rows(campaign, kRows, kRowsPerCommit, bulky_result);
    const bool has_failed = system.has_failed();
    system.mend();
    expect_safe(campaign, outcome.acknowledged);
    if (!has_failed) {
      EXPECT_EQ(outcome.error, "");
      EXPECT_EQ(outcome.acknowledged, kRows);
      return num_failures;
    }
    ++num_failures;
    EXPECT_TRUE(outcome.repeats) << outcome.error;
    // A failure while the log is moved, or at the end, loses nothing and needs no words.
    if (!outcome.error.empty()) {
      EXPECT_NE(outcome.error.find(wanted_text), std::string::npos) << outcome.error;
    }
    // The same command again goes on and ends well.
    EXPECT_EQ(write_rows(campaign, kRows, kRowsPerCommit).error, "");
    EXPECT_EQ(CampaignReader(campaign).read(kRows).num_rows(), kRows);
  }
}

TEST(CampaignDisk, LosesNothingWhenItIsFullAtAnyWrite) {
  const TemporaryFolder folder;
  EXPECT_GT(fail_everywhere(
                folder,
                "cannot be written: the disk is full; free some space, then run the same command "
                "again",
                [](FaultyFileSystem& system, int passed) { system.fail_writes_after(passed, SQLITE_FULL); }),
            30);
}

TEST(CampaignDisk, LosesNothingWhenItFailsAtAnySync) {
  const TemporaryFolder folder;
  EXPECT_GT(fail_everywhere(folder, "cannot be read or written: the disk failed (disk I/O error",
                            [](FaultyFileSystem& system, int passed) {
                              system.fail_syncs_after(passed, SQLITE_IOERR_FSYNC);
                            }),
            12);
}

TEST(CampaignDisk, SaysWhatIsSafeWhenItIsFull) {
  const TemporaryFolder folder;
  FaultyFileSystem system;
  std::string error;
  {
    CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
    add_rows(writer, 0, 25);
    writer.commit();
    add_rows(writer, 25, 30);
    system.fail_writes_after(0, SQLITE_FULL);
    error = message_of<IoError>([&] { writer.commit(); });
  }
  EXPECT_EQ(
      without_path(error, folder),
      "rows-1-of-1.sqlite: the last rows cannot be stored: it cannot be written: the disk is full; free some "
      "space, then run the same command again. 25 rows are safe in it");
  // The disk is still full: readers cannot put it in order yet, and say so.
  EXPECT_EQ(without_path(message_of<IoError>([&] { CampaignReader(folder.path()); }), folder),
            "rows-1-of-1.sqlite: its last writer was killed or ran out of space, and what it left in "
            "its log cannot be moved into it: "
            "it cannot "
            "be written: the disk is full; free some space, then run the same command again");
  system.mend();
  EXPECT_EQ(CampaignReader(folder.path()).read(25).num_rows(), 25u);
}

TEST(CampaignDisk, HasSyncedTheLogWhenACommitReturns) {
  const TemporaryFolder folder;
  FaultyFileSystem system;
  CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
  for (std::uint64_t row = 0; row < 20; ++row) {
    add_rows(writer, row, row + 1);
    const int syncs = system.num_syncs();
    writer.commit();
    EXPECT_GT(system.num_syncs(), syncs);
    EXPECT_EQ(system.unsynced_writes("-wal"), 0);
  }
}

TEST(CampaignDisk, IsSeenNotToHaveSyncedWithAWeakerSetting) {
  const TemporaryFolder folder;
  FaultyFileSystem system;
  RawDatabase raw(folder / "a.sqlite");
  raw.run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  raw.run("CREATE TABLE a (b)");
  raw.run("INSERT INTO a VALUES (1)");
  EXPECT_GT(system.unsynced_writes("-wal"), 0);
}

// A file system of 8 MB that only this process sees.
class SmallDisk {
 public:
  explicit SmallDisk(const std::filesystem::path& folder) : folder_(folder) {
    std::filesystem::create_directories(folder);
    is_there_ = ::unshare(CLONE_NEWNS) == 0 &&
                ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=8m") == 0;
    if (!is_there_) problem_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (is_there_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool is_there() const { return is_there_; }
  const std::string& problem() const { return problem_; }

 private:
  std::filesystem::path folder_;
  bool is_there_ = false;
  std::string problem_;
};

TEST(CampaignDisk, LosesNothingOnASmallOne) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder / "disk");
  if (!disk.is_there()) GTEST_SKIP() << "a small file system cannot be mounted: " << disk.problem();
  std::ofstream(folder / "disk/ballast") << std::string(3 << 20, 'a');
  const auto campaign = folder / "disk/runs";
  const Outcome outcome = write_rows(campaign, 1'000'000, 500);
  EXPECT_GT(outcome.acknowledged, 10000u);
  EXPECT_TRUE(outcome.repeats);
  const std::string wanted =
      "cannot be written: the disk is full; free some space, then run the same command again. " +
      std::to_string(outcome.acknowledged) + " rows are safe in it";
  EXPECT_NE(outcome.error.find(wanted), std::string::npos) << outcome.error;
  std::filesystem::remove(folder / "disk/ballast");  // some space is freed
  expect_safe(campaign, outcome.acknowledged);
  // Going on gets further, and then to the same end.
  const Outcome again = write_rows(campaign, 1'000'000, 500);
  EXPECT_GT(again.acknowledged, outcome.acknowledged);
  EXPECT_NE(again.error.find("the disk is full"), std::string::npos) << again.error;
}

TEST(CampaignDisk, LosesNothingAtALimitOfFileSizes) {
  const TemporaryFolder folder;
  constexpr ::rlim_t kMostBytes = 1 << 20;
  ChildProcess child([&](int pipe) {
    ::signal(SIGXFSZ, SIG_IGN);
    const ::rlimit limit = {kMostBytes, kMostBytes};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) throw IoError("the limit cannot be set");
    const Outcome outcome = write_rows(folder.path(), 1'000'000, 500);
    ChildProcess::send(pipe, std::to_string(outcome.acknowledged) +
                                 (outcome.repeats ? " " : " repeats not ") +
                                 without_path(outcome.error, folder));
  });
  const std::string answer = child.receive_all();
  const std::uint64_t acknowledged = std::stoull(answer);
  EXPECT_GT(acknowledged, 1000u);
  EXPECT_EQ(answer.substr(answer.find(' ') + 1),
            "rows-1-of-1.sqlite: the last rows cannot be stored: it cannot be written: File too large; free "
            "some space "
            "or raise the limit, then run the same command again. " +
                std::to_string(acknowledged) + " rows are safe in it");
  expect_safe(folder.path(), acknowledged);
}

}  // namespace
}  // namespace nrec::simulation
