#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "simulation/tests/campaign_examples.h"
#include "simulation/tests/child_process.h"
#include "simulation/tests/faulty_file_system.h"

namespace nrec::simulation {
namespace {

void acknowledge(std::uint64_t rows, int pipe) {
  ChildProcess::send(pipe, std::string(reinterpret_cast<const char*>(&rows), sizeof(rows)));
}

// Writes rows without end, some per commit; says through the pipe how many rows from the first one are acknowledged.
void write_until_killed(const std::filesystem::path& folder, unsigned seed, int pipe) {
  std::mt19937 random(seed);
  CampaignWriter writer(folder, example_identity(), {}, ChangedCampaign::refuse);
  for (std::uint64_t next = writer.stored_rows().size();;) {
    const std::uint64_t count = 1 + random() % 50;
    add_rows(writer, next, next + count);
    next += count;
    writer.commit();
    acknowledge(next, pipe);
  }
}

std::uint64_t last_acknowledged(const std::string& words) {
  std::uint64_t rows = 0;
  EXPECT_EQ(words.find("rows-"), std::string::npos) << words;  // the text of an error
  const std::size_t whole = words.size() / sizeof(rows);
  if (whole > 0) std::memcpy(&rows, words.data() + (whole - 1) * sizeof(rows), sizeof(rows));
  return rows;
}

struct KillCounts {
  std::uint64_t acknowledged = 0;  // rows, summed over folders
  std::uint64_t lost = 0;          // of these
  std::uint64_t wrong = 0;         // rows that are not what was written, or not where they should be
  int with_log = 0;                // rounds in which the killed writer left a log
  int without_tables = 0;          // rounds in which it had not got as far as its tables
};

// What is in the folder, by a reader or by the next writer, who both must put it in order.
std::uint64_t count_stored(const std::filesystem::path& folder, bool by_reader, KillCounts& counts) {
  if (!by_reader) {
    const std::vector<std::uint64_t> rows =
        CampaignWriter(folder, example_identity(), {}, ChangedCampaign::refuse).stored_rows();
    for (std::size_t i = 0; i < rows.size(); ++i) counts.wrong += rows[i] != i ? 1 : 0;
  }
  if (!is_campaign(folder)) return 0;
  const SimulationSet set = CampaignReader(folder).read();
  for (std::size_t i = 0; i < set.num_rows(); ++i) counts.wrong += is_example_row(set, i, i) ? 0 : 1;
  return set.num_rows();
}

// Compares what is stored with what must be; returns what is stored, which must be there from now on.
std::uint64_t check_folder(const std::filesystem::path& folder, std::uint64_t must_be_there, bool by_reader,
                           KillCounts& counts) {
  counts.with_log += std::filesystem::exists(folder / "rows-1-of-1.sqlite-wal") ? 1 : 0;
  const std::uint64_t stored = count_stored(folder, by_reader, counts);
  if (stored < must_be_there) counts.lost += must_be_there - stored;
  if (!is_campaign(folder)) {
    ++counts.without_tables;
    return 0;
  }
  RawDatabase raw(folder / "rows-1-of-1.sqlite");
  EXPECT_EQ(raw.run("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(raw.run("SELECT count(*) - count(DISTINCT row) FROM rows"), "0");
  return stored;
}

// A new folder every six rounds, so that making the database is met, too. In every third round the next writer is
// killed as well before anyone looks: it may be putting in order what the first one left.
KillCounts kill_often(const TemporaryFolder& folder, int rounds) {
  std::mt19937 random(20240611);
  KillCounts counts;
  std::uint64_t must_be_there = 0;
  for (int round = 0; round < rounds; ++round) {
    const bool is_first = round % 6 == 0;
    if (is_first) must_be_there = 0;
    const auto campaign = folder / ("runs " + std::to_string(round / 6));
    for (int kill = 0; kill < (round % 3 == 1 ? 2 : 1); ++kill) {
      ChildProcess child([&](int pipe) { write_until_killed(campaign, random(), pipe); });
      // In half of the rounds the writer gets as far as its first commit, however busy the machine is.
      std::string words = round % 2 == 1 ? child.receive(sizeof(std::uint64_t)) : "";
      std::this_thread::sleep_for(
          std::chrono::microseconds(random() % (is_first || kill == 1 ? 20000 : 100000)));
      child.kill();
      words += child.receive_all();
      const std::uint64_t acknowledged = last_acknowledged(words);
      must_be_there = std::max(must_be_there, acknowledged);
    }
    const std::uint64_t stored = check_folder(campaign, must_be_there, round % 2 == 0, counts);
    if (round % 6 == 5) counts.acknowledged += must_be_there;
    must_be_there = stored;
  }
  return counts;
}

TEST(CampaignKill, LosesNoAcknowledgedRow) {
  const TemporaryFolder folder;
  const KillCounts counts = kill_often(folder, 60);
  EXPECT_EQ(counts.lost, 0u);
  EXPECT_EQ(counts.wrong, 0u);
  // The kills met what they were to meet.
  EXPECT_GE(counts.acknowledged, 30u);
  EXPECT_GE(counts.with_log, 20);
  RecordProperty("acknowledged", std::to_string(counts.acknowledged));
  RecordProperty("with_log", counts.with_log);
  RecordProperty("without_tables", counts.without_tables);
}

enum class Acknowledge { after_commit, before_commit };

// Twelve commits of five rows; the process dies before its operation `passed` on a file, counted from 0.
void write_and_die(const std::filesystem::path& folder, int passed, Acknowledge when, int pipe) {
  FaultyFileSystem system;
  system.die_after(passed);
  {
    CampaignWriter writer(folder, example_identity(), {}, ChangedCampaign::refuse);
    for (std::uint64_t row = writer.stored_rows().size(); row < 60; ++row) {
      writer.add(example_theta(row), bulky_result(row));
      if (row % 5 != 4) continue;
      if (when == Acknowledge::before_commit) acknowledge(row + 1, pipe);
      writer.commit();
      if (when == Acknowledge::after_commit) acknowledge(row + 1, pipe);
    }
  }
  ChildProcess::send(pipe, "end");
}

// Kills writers before their first, second, ... operation (later ones are sampled), until one gets through.
KillCounts kill_everywhere(const TemporaryFolder& folder, Acknowledge when) {
  KillCounts counts;
  bool has_ended = false;
  for (int passed = 0; !has_ended; passed += passed < 50 ? 1 : 13) {
    const auto campaign = folder / std::to_string(passed);
    std::filesystem::create_directory(campaign);  // the writer would sync it to the disk, which may be busy
    ChildProcess first([&](int pipe) { write_and_die(campaign, passed, when, pipe); });
    const std::string words = first.receive_all();
    has_ended = words.ends_with("end");
    // The next writer dies, too, at one of the operations by which it puts things in order.
    ChildProcess second([&](int pipe) { write_and_die(campaign, passed % 12, when, pipe); });
    const std::uint64_t acknowledged =
        std::max(last_acknowledged(words), last_acknowledged(second.receive_all()));
    counts.acknowledged += acknowledged;
    const FaultyFileSystem without_shared_memory;  // for those who put it in order at last, too
    check_folder(campaign, acknowledged, passed % 2 == 0, counts);
  }
  return counts;
}

TEST(CampaignKill, LosesNoAcknowledgedRowAtAnyOperationOnAFile) {
  const TemporaryFolder folder;
  const KillCounts counts = kill_everywhere(folder, Acknowledge::after_commit);
  EXPECT_EQ(counts.lost, 0u);
  EXPECT_EQ(counts.wrong, 0u);
  EXPECT_GT(counts.acknowledged, 1000u);
  EXPECT_GT(counts.with_log, 40);
  EXPECT_GT(counts.without_tables, 2);
}

TEST(CampaignKill, IsSeenToLoseRowsThatAreAcknowledgedTooEarly) {
  const TemporaryFolder folder;
  const KillCounts counts = kill_everywhere(folder, Acknowledge::before_commit);
  EXPECT_GT(counts.lost, 0u);
  EXPECT_EQ(counts.wrong, 0u);
}

}  // namespace
}  // namespace nrec::simulation
