#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "simulation/tests/campaign_examples.h"
#include "simulation/tests/child_process.h"

namespace nrec::simulation {
namespace {

enum class Acknowledge { after_commit, before_commit };

// Writes rows without end, some per commit; says through the pipe how many rows from the first one are acknowledged.
void write_until_killed(const std::filesystem::path& folder, unsigned seed, Acknowledge when, int pipe) {
  std::mt19937 random(seed);
  CampaignWriter writer(folder, example_identity(), {}, ChangedCampaign::refuse);
  for (std::uint64_t next = writer.stored_rows().size();;) {
    const std::uint64_t count = 1 + random() % 50;
    add_rows(writer, next, next + count);
    next += count;
    const std::string word(reinterpret_cast<const char*>(&next), sizeof(next));
    if (when == Acknowledge::before_commit) ChildProcess::send(pipe, word);
    writer.commit();
    if (when == Acknowledge::after_commit) ChildProcess::send(pipe, word);
  }
}

std::uint64_t last_acknowledged(const std::string& words) {
  std::uint64_t rows = 0;
  const std::size_t whole = words.size() / sizeof(rows);
  if (whole > 0) std::memcpy(&rows, words.data() + (whole - 1) * sizeof(rows), sizeof(rows));
  return rows;
}

struct KillCounts {
  std::uint64_t acknowledged = 0;  // rows, summed over rounds
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

void kill_once(const std::filesystem::path& folder, unsigned seed, Acknowledge when,
               std::chrono::microseconds delay, KillCounts& counts) {
  ChildProcess child([&](int pipe) { write_until_killed(folder, seed, when, pipe); });
  std::this_thread::sleep_for(delay);
  child.kill();
  const std::uint64_t acknowledged = last_acknowledged(child.receive_all());
  counts.with_log += std::filesystem::exists(folder / "rows-1-of-1.sqlite-wal") ? 1 : 0;
  counts.without_tables += is_campaign(folder) ? 0 : 1;
  const std::uint64_t stored = count_stored(folder, seed % 2 == 0, counts);
  counts.acknowledged += acknowledged;
  if (stored < acknowledged) counts.lost += acknowledged - stored;
  if (!is_campaign(folder)) return;
  RawDatabase raw(folder / "rows-1-of-1.sqlite");
  EXPECT_EQ(raw.run("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(raw.run("SELECT count(*) - count(DISTINCT row) FROM rows"), "0");
}

// A new folder every six rounds, so that making the database is met, too.
KillCounts kill_often(const TemporaryFolder& folder, int rounds, Acknowledge when) {
  std::mt19937 random(20240611);
  KillCounts counts;
  for (int round = 0; round < rounds; ++round) {
    const bool is_first = round % 6 == 0;
    const std::chrono::microseconds delay(random() % (is_first ? 20000 : 100000));
    kill_once(folder / ("runs " + std::to_string(round / 6)), static_cast<unsigned>(round), when, delay,
              counts);
  }
  return counts;
}

TEST(CampaignKill, LosesNoAcknowledgedRow) {
  const TemporaryFolder folder;
  const KillCounts counts = kill_often(folder, 60, Acknowledge::after_commit);
  EXPECT_EQ(counts.lost, 0u);
  EXPECT_EQ(counts.wrong, 0u);
  // The kills met what they were to meet.
  EXPECT_GT(counts.acknowledged, 1000u);
  EXPECT_GT(counts.with_log, 10);
  RecordProperty("acknowledged", std::to_string(counts.acknowledged));
  RecordProperty("with_log", counts.with_log);
  RecordProperty("without_tables", counts.without_tables);
}

TEST(CampaignKill, IsSeenToLoseRowsThatAreAcknowledgedTooEarly) {
  const TemporaryFolder folder;
  const KillCounts counts = kill_often(folder, 18, Acknowledge::before_commit);
  EXPECT_GT(counts.lost, 0u);
  EXPECT_EQ(counts.wrong, 0u);
}

}  // namespace
}  // namespace nrec::simulation
