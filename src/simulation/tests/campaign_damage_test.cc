#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <random>

#include "nrec/io/file.h"
#include "simulation/tests/campaign_examples.h"

namespace nrec::simulation {
namespace {

// What a reader says after `sql` was run on a database of ten rows; it must say it when it reads rows at the latest.
std::string refusal_after(const std::string& sql) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 10);
  RawDatabase(folder / "rows-1-of-1.sqlite").run(sql);
  return without_path(message_of<IoError>([&] { CampaignReader(folder.path()).read(); }), folder);
}

std::string damaged(const std::string& how) {
  return "rows-1-of-1.sqlite: is damaged (" + how +
         "); put a copy of it back, save what is left with `sqlite3 FILE .recover`, or move it away and run "
         "the same "
         "command again: its rows are simulated anew";
}

// What reader and writer say of a file that is not a campaign's; neither may change a byte of it.
void expect_refused_untouched(const TemporaryFolder& folder, const std::string& refusal) {
  const std::string before = read_file(folder / "rows-1-of-1.sqlite");
  EXPECT_EQ(without_path(message_of<IoError>([&] { CampaignReader(folder.path()); }), folder), refusal);
  EXPECT_EQ(without_path(message_of<IoError>([&] {
                           CampaignWriter(folder.path(), example_identity(), {}, ChangedCampaign::accept);
                         }),
                         folder),
            refusal);
  EXPECT_TRUE(read_file(folder / "rows-1-of-1.sqlite") == before);
}

TEST(CampaignDamage, IsToldFromFilesThatAreNoDatabases) {
  const TemporaryFolder folder;
  std::ofstream(folder / "rows-1-of-1.sqlite") << std::string(5000, 'a');
  expect_refused_untouched(
      folder,
      "rows-1-of-1.sqlite: is not an SQLite database, or its first bytes are damaged; move it out "
      "of the folder of the campaign, or put a copy of it back");
}

TEST(CampaignDamage, IsToldFromPipesWhichNobodyWaitsFor) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "rows-1-of-1.sqlite").c_str(), 0600), 0);
  const std::string refusal =
      "rows-1-of-1.sqlite: is not a file but a pipe, socket or device; move it out of the folder of the "
      "campaign";
  EXPECT_EQ(without_path(message_of<IoError>([&] { CampaignReader(folder.path()); }), folder), refusal);
  EXPECT_EQ(without_path(message_of<IoError>([&] {
                           CampaignWriter(folder.path(), example_identity(), {}, ChangedCampaign::accept);
                         }),
                         folder),
            refusal);
}

TEST(CampaignDamage, IsToldFromDatabasesOfOtherPrograms) {
  const TemporaryFolder folder;
  RawDatabase(folder / "rows-1-of-1.sqlite").run("CREATE TABLE rows (row INTEGER PRIMARY KEY, theta BLOB)");
  const std::string refusal =
      "rows-1-of-1.sqlite: is an SQLite database of another program (application_id 0, not 1852990819); move "
      "it out of "
      "the folder of the campaign";
  expect_refused_untouched(folder, refusal);
  RawDatabase(folder / "rows-1-of-1.sqlite")
      .run("PRAGMA journal_mode = WAL; INSERT INTO rows VALUES (1, NULL)");
  expect_refused_untouched(folder, refusal);
}

TEST(CampaignDamage, IsToldFromANewerSchema) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 10);
  RawDatabase(folder / "rows-1-of-1.sqlite").run("PRAGMA user_version = 2");
  expect_refused_untouched(
      folder,
      "rows-1-of-1.sqlite: was written by a newer nrec (schema version 2, this one knows 1); use "
      "that version or a later one");
  EXPECT_EQ(refusal_after("PRAGMA user_version = 0"), damaged("schema version 0"));
}

TEST(CampaignDamage, IsFoundInTheIdentity) {
  EXPECT_EQ(refusal_after("DELETE FROM meta WHERE key = 'seed'"),
            damaged("\"seed\" is missing in its table meta"));
  EXPECT_EQ(refusal_after("UPDATE meta SET value = '-1' WHERE key = 'seed'"),
            damaged("\"seed\" in its table meta is -1"));
  EXPECT_EQ(refusal_after("UPDATE meta SET value = '[\"a\", 3]' WHERE key = 'parameter_names'"),
            damaged("\"parameter_names\" in its table meta is [\"a\", 3]"));
  EXPECT_EQ(refusal_after("UPDATE meta SET value = '[]' WHERE key = 'parameter_names'"),
            damaged("\"parameter_names\" in its table meta is a list of 0"));
  EXPECT_EQ(
      refusal_after("UPDATE meta SET value = '[\"a\\u001b[2J\"]' WHERE key = 'parameter_names'"),
      "rows-1-of-1.sqlite: its parameter \"a\\x1b[2J\" holds a control character; rename the parameter and "
      "simulate in another folder");
  EXPECT_EQ(refusal_after("UPDATE meta SET value = '[3' WHERE key = 'x_shape'"),
            damaged("\"x_shape\" in its table meta is [3"));
  EXPECT_EQ(refusal_after("UPDATE meta SET value = '[1e3]' WHERE key = 'x_shape'"),
            damaged("\"x_shape\" in its table meta is [1e3]"));
  EXPECT_EQ(refusal_after("UPDATE meta SET value = '[4294967296, 4294967296]' WHERE key = 'x_shape'"),
            damaged("\"x_shape\" in its table meta is [4294967296, 4294967296]"));
  EXPECT_EQ(refusal_after("DROP TABLE meta"), damaged("no such table: meta"));
}

TEST(CampaignDamage, IsFoundInRows) {
  EXPECT_EQ(refusal_after("UPDATE rows SET x = zeroblob(23) WHERE row = 4"),
            damaged("x of row 4 has 23 bytes instead of 24"));
  EXPECT_EQ(refusal_after("UPDATE rows SET x = zeroblob(800000) WHERE row = 4"),
            damaged("x of row 4 has 800000 bytes instead of 24"));
  EXPECT_EQ(refusal_after("UPDATE rows SET x = NULL WHERE row = 4"),
            damaged("x of row 4 has 0 bytes instead of 24"));
  EXPECT_EQ(refusal_after("UPDATE rows SET theta = x'' WHERE row = 5"),
            damaged("theta of row 5 has 0 bytes instead of 16"));
  EXPECT_EQ(refusal_after("UPDATE rows SET status = 6 WHERE row = 5"), damaged("row 5 has the status 6"));
  EXPECT_EQ(refusal_after("UPDATE rows SET status = 'ok' WHERE row = 5"), damaged("row 5 has the status ok"));
  EXPECT_EQ(refusal_after("UPDATE rows SET row = -2 WHERE row = 5"),
            damaged("it has a row with the number -2"));
  EXPECT_EQ(refusal_after("ALTER TABLE rows RENAME COLUMN theta TO parameters"),
            damaged("no such column: theta"));
  EXPECT_EQ(refusal_after("DROP TABLE rows"), damaged("no such table: rows"));
}

TEST(CampaignDamage, IsFoundInAFileThatIsCutOff) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 3000);
  const auto path = folder / "rows-1-of-1.sqlite";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_EQ(without_path(message_of<IoError>([&] { CampaignReader(folder.path()).read(); }), folder),
            damaged("database disk image is malformed"));
}

// Flips bytes anywhere. Numbers in rows have no checksum, so a set may come out; but nothing may crash, hang or throw
// anything else than our errors.
TEST(CampaignDamage, NeverCrashesReadersOrWriters) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 800);
  const std::string good = read_file(folder / "rows-1-of-1.sqlite");
  std::mt19937 random(5);
  int num_refused = 0;
  int num_read = 0;
  for (int round = 0; round < 200; ++round) {
    const auto copy = folder / std::to_string(round);
    std::filesystem::create_directory(copy);
    std::string bytes = good;
    // Headers of pages are small; half of the rounds aim at them.
    for (unsigned flip = 0; flip < 1 + random() % 8; ++flip) {
      const std::size_t page = random() % (bytes.size() / 16384) * 16384;
      bytes[round % 2 == 0 ? page + random() % 120 : random() % bytes.size()] ^=
          static_cast<char>(1 + random() % 255);
    }
    if (round % 10 == 0) bytes.resize(random() % bytes.size());
    std::ofstream(copy / "rows-1-of-1.sqlite", std::ios::binary) << bytes;
    try {
      const CampaignReader reader(copy);
      reader.summary();
      EXPECT_LE(reader.read().num_rows(), 100000u);
      CampaignWriter writer(copy, reader.identity(), {}, ChangedCampaign::accept);
      writer.stored_rows();
      ++num_read;
    } catch (const Error&) {
      ++num_refused;
    }
  }
  EXPECT_GT(num_refused, 60);
  EXPECT_GT(num_read, 20);
}

}  // namespace
}  // namespace nrec::simulation
