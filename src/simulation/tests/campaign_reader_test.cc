#include <gtest/gtest.h>

#include <fstream>

#include "simulation/tests/campaign_examples.h"
#include "simulation/tests/child_process.h"

namespace nrec::simulation {
namespace {

namespace fs = std::filesystem;

std::string read_refusal(const TemporaryFolder& folder, std::uint64_t num_rows) {
  return without_path(message_of<ShapeError>([&] { CampaignReader(folder.path()).read(num_rows); }), folder);
}

TEST(CampaignReader, PutsRowsInTheOrderOfTheirNumbers) {
  const TemporaryFolder folder;
  {
    CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
    for (const std::uint64_t row : {4, 0, 3, 1, 2}) writer.add(example_theta(row), example_result(row));
  }
  const SimulationSet set = CampaignReader(folder.path()).read();
  ASSERT_EQ(set.num_rows(), 5u);
  for (std::size_t row = 0; row < 5; ++row) EXPECT_TRUE(is_example_row(set, row, row)) << row;
  EXPECT_EQ(set.parameter_names, example_identity().parameter_names);
  EXPECT_EQ(set.source, folder.path().string());
}

TEST(CampaignReader, MergesShardsAndIsNotDisturbedByDuplicates) {
  const TemporaryFolder folder;
  for (std::uint64_t shard = 0; shard < 3; ++shard) make_shard(folder.path(), {shard, 3}, 1000);
  make_shard(folder.path(), {0, 2}, 600);  // an earlier cut into shards
  fs::copy_file(folder / "rows-2-of-3.sqlite", folder / "rows-2-of-3 copy.sqlite");
  const CampaignReader reader(folder.path());
  const SimulationSet set = reader.read(1000);
  ASSERT_EQ(set.num_rows(), 1000u);
  for (std::size_t row = 0; row < 1000; ++row) EXPECT_TRUE(is_example_row(set, row, row)) << row;
  const CampaignSummary summary = reader.summary();
  EXPECT_EQ(summary.num_rows, 1000u);
  EXPECT_EQ(summary.databases.size(), 5u);
  EXPECT_EQ(reader.read().num_rows(), 1000u);
}

TEST(CampaignReader, PrefersTheDatabaseThatComesFirstByName) {
  const TemporaryFolder folder;
  for (std::uint64_t shard = 0; shard < 2; ++shard) {
    CampaignWriter writer(folder.path(), example_identity(), {shard, 2}, ChangedCampaign::refuse);
    RowResult result{.row = 6, .x = {static_cast<double>(shard), 0, 0}};
    writer.add(example_theta(6), result);
  }
  EXPECT_EQ(CampaignReader(folder.path()).read().x(0, 0), 0.0);
  fs::rename(folder / "rows-1-of-2.sqlite", folder / "rows-3-of-3.sqlite");
  EXPECT_EQ(CampaignReader(folder.path()).read().x(0, 0), 1.0);
}

TEST(CampaignReader, ReadsTheFirstRowsAlone) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 100);
  const SimulationSet set = CampaignReader(folder.path()).read(30);
  EXPECT_EQ(set.num_rows(), 30u);
  EXPECT_TRUE(is_example_row(set, 29, 29));
}

TEST(CampaignReader, SaysHowManyRowsAreMissingAndWhichFirst) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {0, 2}, 100);
  make_shard(folder.path(), {1, 2}, 41);
  EXPECT_EQ(CampaignReader(folder.path()).read(41).num_rows(), 41u);
  const std::string advice =
      "; go on with the campaign by the command that started it, or ask for fewer rows: the ";
  EXPECT_EQ(read_refusal(folder, 100),
            folder.path().string() + ": 100 rows are wanted but 30 of them are missing, the first is row 41" +
                advice + "first 41 are there");
  EXPECT_EQ(
      read_refusal(folder, std::numeric_limits<std::uint64_t>::max()),
      folder.path().string() +
          ": 18446744073709551615 rows are wanted but 18446744073709551545 of them are missing, the first is "
          "row 41" +
          advice + "first 41 are there");
  // All that are there, gaps or not.
  const SimulationSet set = CampaignReader(folder.path()).read();
  EXPECT_EQ(set.num_rows(), 70u);
  EXPECT_TRUE(is_example_row(set, 69, 98));
}

TEST(CampaignReader, GivesAnEmptySetForACampaignWithoutRows) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 0);
  const CampaignReader reader(folder.path());
  EXPECT_EQ(reader.read().num_rows(), 0u);
  EXPECT_EQ(reader.read().dim_x(), 3u);
  EXPECT_EQ(reader.summary().seconds_per_row, 0.0);
}

TEST(CampaignReader, SummarisesStatusesAndReasons) {
  const TemporaryFolder folder;
  for (std::uint64_t shard = 0; shard < 2; ++shard) make_shard(folder.path(), {shard, 2}, 70);
  {
    // A duplicate with another fate counts as the first of its kind says.
    CampaignWriter writer(folder.path(), example_identity(), {2, 3}, ChangedCampaign::refuse);
    writer.add(example_theta(0), {.row = 0, .status = RowStatus::refused, .reason = "no", .seconds = 100.0});
    writer.add(example_theta(70), {.row = 70, .status = RowStatus::refused, .reason = "no", .seconds = 36.0});
  }
  const CampaignSummary summary = CampaignReader(folder.path()).summary();
  EXPECT_EQ(summary.identity, example_identity());
  EXPECT_EQ(summary.num_rows, 71u);
  EXPECT_EQ(summary.num_ok, 60u);
  EXPECT_EQ(summary.status_counts, (std::vector<std::uint64_t>{60, 0, 5, 5, 0, 1}));
  EXPECT_DOUBLE_EQ(summary.seconds_per_row, (70 * 0.5 + 36.0) / 71);
  EXPECT_TRUE(summary.being_written.empty());
  ASSERT_EQ(summary.reasons.size(), 3u);
  EXPECT_EQ(summary.reasons[0].status, RowStatus::timed_out);
  EXPECT_EQ(summary.reasons[0].reason, "longer than 10 s");
  EXPECT_EQ(summary.reasons[0].count, 5u);
  EXPECT_EQ(summary.reasons[0].example_row, 3u);
  EXPECT_EQ(summary.reasons[0].example_theta, example_theta(3));
  EXPECT_EQ(summary.reasons[0].example_messages, "row 3 went wrong");
  EXPECT_EQ(summary.reasons[1].reason, "exit code 3");
  EXPECT_EQ(summary.reasons[1].example_row, 10u);
  EXPECT_EQ(summary.reasons[2].example_row, 70u);
}

TEST(CampaignReader, ShowsTheMostFrequentReasonsOfMany) {
  const TemporaryFolder folder;
  constexpr std::uint64_t kRows = 30000;  // more different reasons than are told apart
  {
    CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
    for (std::uint64_t row = 0; row < kRows; ++row) {
      RowResult result{.row = row, .status = RowStatus::failed};
      result.reason = row % 10 == 5 ? "often" : "x = " + std::to_string(row);
      writer.add(example_theta(row), result);
    }
  }
  const CampaignSummary summary = CampaignReader(folder.path()).summary();
  EXPECT_EQ(summary.status_counts[2], kRows);
  ASSERT_EQ(summary.reasons.size(), 20u);
  EXPECT_EQ(summary.reasons[0].reason, "often");
  EXPECT_EQ(summary.reasons[0].count, kRows / 10);
  EXPECT_EQ(summary.reasons[1].reason, "x = 0");
}

TEST(CampaignReader, RefusesDatabasesOfDifferentProblems) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {0, 2}, 10);
  CampaignIdentity other = example_identity();
  other.seed = 8;
  make_shard(folder.path(), {1, 2}, 10, other);
  EXPECT_EQ(message_of<ConfigError>([&] { CampaignReader(folder.path()); }),
            folder.path().string() +
                ": its databases rows-1-of-2.sqlite and rows-2-of-2.sqlite are of different problems: from "
                "the first "
                "to the second the seed was 7 and is now 8. Rows of different problems are never merged: "
                "move one of "
                "the databases to another folder, or go on with each of them with `nrec simulate "
                "--accept-changes`");
}

TEST(CampaignReader, RefusesFoldersWithoutACampaign) {
  const TemporaryFolder folder;
  EXPECT_EQ(without_path(message_of<IoError>([&] { CampaignReader(folder / "none"); }), folder),
            "none: cannot be read as the folder of a campaign: No such file or directory; give the folder "
            "that `nrec "
            "simulate` has written to");
  std::ofstream(folder / "rows.txt") << "not a campaign";
  EXPECT_EQ(
      without_path(message_of<IoError>([&] { CampaignReader(folder / "rows.txt"); }), folder),
      "rows.txt: cannot be read as the folder of a campaign: Not a directory; give the folder that `nrec "
      "simulate` has written to");
  const std::string nothing = folder.path().string() +
                              ": holds no database of a campaign (rows-*.sqlite); give the folder that `nrec "
                              "simulate` has written to";
  EXPECT_EQ(message_of<IoError>([&] { CampaignReader(folder.path()); }), nothing);
  // A writer that was killed before it had made its tables leaves an empty file.
  std::ofstream(folder / "rows-1-of-1.sqlite");
  EXPECT_EQ(message_of<IoError>([&] { CampaignReader(folder.path()); }), nothing);
  make_shard(folder.path(), {}, 5);
  EXPECT_EQ(CampaignReader(folder.path()).read(5).num_rows(), 5u);
}

TEST(CampaignReader, ReadsFromAFolderThatMayNotBeWritten) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 50);
  fs::permissions(folder / "rows-1-of-1.sqlite", fs::perms::owner_read | fs::perms::others_read);
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                                     fs::perms::others_exec);
  const std::string rows = in_child([&] {
    become_nobody();
    return std::to_string(CampaignReader(folder.path()).read(50).num_rows());
  });
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_EQ(rows, "50");
}

TEST(CampaignReader, LetsWritersStartBetweenReadings) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 10);
  const CampaignReader reader(folder.path());
  EXPECT_EQ(reader.read().num_rows(), 10u);
  {
    CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
    add_rows(writer, 10, 20);
  }
  EXPECT_EQ(reader.read().num_rows(), 20u);
  CampaignIdentity other = example_identity();
  other.seed = 8;
  make_shard(folder.path(), {}, 20, other);
  EXPECT_EQ(message_of<ConfigError>([&] { reader.read(); }),
            folder.path().string() + ": its problem was changed while it was read; start again");
}

TEST(IsCampaign, TellsFoldersApart) {
  const TemporaryFolder folder;
  EXPECT_FALSE(is_campaign(folder / "none"));
  EXPECT_FALSE(is_campaign(folder.path()));
  std::ofstream(folder / "rows-1-of-2.sqlite") << "not a database";
  EXPECT_FALSE(is_campaign(folder.path()));
  EXPECT_FALSE(is_campaign(folder / "rows-1-of-2.sqlite"));
  RawDatabase(folder / "rows-1-of-3.sqlite").run("CREATE TABLE rows (row INTEGER PRIMARY KEY)");
  EXPECT_FALSE(is_campaign(folder.path()));
  make_shard(folder / "other", {1, 2}, 1);
  EXPECT_TRUE(is_campaign(folder / "other"));
  fs::copy_file(folder / "other/rows-2-of-2.sqlite", folder / "rows-2-of-2.sqlite");
  EXPECT_TRUE(is_campaign(folder.path())) << "whatever else is there";
}

}  // namespace
}  // namespace nrec::simulation
