#include <gtest/gtest.h>

#include <limits>

#include "simulation/tests/campaign_examples.h"
#include "simulation/tests/child_process.h"

namespace nrec::simulation {
namespace {

namespace fs = std::filesystem;
using Rows = std::vector<std::uint64_t>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(CampaignWriter, MakesAFolderAndADatabaseNamedByItsShard) {
  const TemporaryFolder folder;
  const fs::path campaign = folder / "a/b/runs";
  {
    const CampaignWriter writer(campaign, example_identity(), {2, 5}, ChangedCampaign::refuse);
    EXPECT_EQ(writer.path(), campaign / "rows-3-of-5.sqlite");
    EXPECT_EQ(writer.stored_rows(), Rows());
  }
  EXPECT_EQ(names_in(campaign), "rows-3-of-5.sqlite");
}

TEST(CampaignWriter, GivesBackEveryBitAndText) {
  const TemporaryFolder folder;
  const std::vector<double> theta = {-0.0, std::numeric_limits<double>::denorm_min()};
  RowResult result{.row = 12,
                   .status = RowStatus::non_finite,
                   .x = {kNan, -kInfinity, std::numeric_limits<double>::max()},
                   .reason = "nan in x[0]; '); DROP TABLE rows; --",
                   .messages = "line 1\nline 2 \xC3\xA9",
                   .seconds = 1.25,
                   .attempts = 3};
  {
    CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
    writer.add(theta, result);
    writer.commit();
  }
  const SimulationSet set = CampaignReader(folder.path()).read();
  ASSERT_EQ(set.num_rows(), 1u);
  EXPECT_TRUE(std::signbit(set.theta(0, 0)) && set.theta(0, 0) == 0.0);
  EXPECT_EQ(set.theta(0, 1), theta[1]);
  EXPECT_TRUE(std::isnan(set.x(0, 0)));
  EXPECT_EQ(set.x(0, 1), -kInfinity);
  EXPECT_EQ(set.x(0, 2), result.x[2]);
  EXPECT_EQ(set.status, std::vector<RowStatus>{RowStatus::non_finite});
  RawDatabase raw(folder / "rows-1-of-1.sqlite");
  EXPECT_EQ(raw.run("SELECT row || ' ' || status || ' ' || attempts || ' ' || seconds FROM rows"),
            "12 1 3 1.25");
  EXPECT_EQ(raw.run("SELECT reason FROM rows"), result.reason);
  EXPECT_EQ(raw.run("SELECT messages FROM rows"), result.messages);
  EXPECT_EQ(raw.run("SELECT hex(theta) FROM rows"), "00000000000000800100000000000000")
      << "little-endian float64";
}

TEST(CampaignWriter, KeepsTextsReadableForOtherPrograms) {
  const TemporaryFolder folder;
  RowResult result{.row = 0, .status = RowStatus::failed, .reason = "bad \xFF byte"};
  result.messages = std::string("a\0b", 3);
  {
    CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
    writer.add(example_theta(0), result);
  }
  RawDatabase raw(folder / "rows-1-of-1.sqlite");
  EXPECT_EQ(raw.run("SELECT reason || '|' || messages FROM rows"), "bad ? byte|a?b");
  EXPECT_EQ(raw.run("SELECT x IS NULL FROM rows"), "1");
}

TEST(CampaignWriter, LeavesARowThatIsThereAsItIs) {
  const TemporaryFolder folder;
  CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
  add_rows(writer, 5, 6);
  RowResult other = example_result(5);
  other.x = {1.0, 2.0, 3.0};
  const std::size_t pending = writer.pending_bytes();
  writer.add(example_theta(5), other);
  EXPECT_EQ(writer.pending_bytes(), pending);
  writer.commit();
  writer.add(example_theta(5), other);
  writer.commit();
  EXPECT_EQ(writer.stored_rows(), Rows{5});
}

TEST(CampaignWriter, CountsBytesUntilTheyAreCommitted) {
  const TemporaryFolder folder;
  CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
  writer.commit();
  EXPECT_EQ(writer.pending_bytes(), 0u);
  add_rows(writer, 0, 2);
  EXPECT_GE(writer.pending_bytes(), 2 * 5 * sizeof(double));
  EXPECT_LT(writer.pending_bytes(), 1000u);
  writer.commit();
  EXPECT_EQ(writer.pending_bytes(), 0u);
}

TEST(CampaignWriter, GoesOnWhereItEndedAndCommitsWhenItIsDestroyed) {
  const TemporaryFolder folder;
  {
    CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
    writer.add(example_theta(9), example_result(9));
    writer.add(example_theta(2), example_result(2));
  }
  CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
  EXPECT_EQ(writer.stored_rows(), (Rows{2, 9}));
  add_rows(writer, 0, 4);
  writer.commit();
  EXPECT_EQ(writer.stored_rows(), (Rows{0, 1, 2, 3, 9}));
}

TEST(CampaignWriter, KnowsTheRowsOfOtherDatabasesThatNobodyWrites) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {1, 3}, 9);
  const CampaignWriter writing(folder.path(), example_identity(), {2, 3}, ChangedCampaign::refuse);
  CampaignWriter writer(folder.path(), example_identity(), {0, 3}, ChangedCampaign::refuse);
  add_rows(writer, 0, 4, 3);
  EXPECT_EQ(writer.stored_rows(), (Rows{0, 1, 3, 4, 7}));
}

TEST(CampaignWriter, UsesALogAndNoSharedMemory) {
  const TemporaryFolder folder;
  {
    CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
    add_rows(writer, 0, 10);
    writer.commit();
    EXPECT_EQ(names_in(folder.path()), "rows-1-of-1.sqlite rows-1-of-1.sqlite-wal");
  }
  EXPECT_EQ(names_in(folder.path()), "rows-1-of-1.sqlite");
  RawDatabase raw(folder / "rows-1-of-1.sqlite");
  EXPECT_EQ(raw.run("PRAGMA journal_mode"), "delete");
  EXPECT_EQ(raw.run("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(raw.run("PRAGMA application_id"), std::to_string(0x6e726563));
  EXPECT_EQ(raw.run("PRAGMA user_version"), "1");
}

TEST(CampaignWriter, HoldsAnyUtf8InNames) {
  const TemporaryFolder folder;
  CampaignIdentity identity = example_identity();
  identity.parameter_names = {"\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x98\x80", "a\"b\\c ,['x"};
  identity.simulator = "./a \xFF";  // a file name may hold any byte
  make_shard(folder.path(), {}, 3, identity);
  const CampaignReader reader(folder.path());
  EXPECT_EQ(reader.identity(), identity);
  EXPECT_EQ(reader.read().parameter_names, identity.parameter_names);
  const CampaignWriter again(folder.path(), identity, {}, ChangedCampaign::refuse);
}

TEST(CampaignWriter, RefusesNamesThatAreNotUtf8) {
  const TemporaryFolder folder;
  CampaignIdentity identity = example_identity();
  identity.parameter_names[1] = "\xFF";
  EXPECT_EQ(
      message_of<ConfigError>([&] { CampaignWriter(folder.path(), identity, {}, ChangedCampaign::refuse); }),
      "campaign: the list of parameters holds a text that is not UTF-8; write it in UTF-8");
  // The transaction that was to make the tables is undone: the next writer begins anew.
  const CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
}

TEST(CampaignWriter, RefusesRowsOfAnotherSize) {
  const TemporaryFolder folder;
  CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
  const std::vector<double> three = {1, 2, 3};
  EXPECT_EQ(message_of<ShapeError>([&] { writer.add(three, example_result(4)); }),
            "campaign: theta of row 4 has 3 numbers but the campaign has 2 parameters");
  RowResult result = example_result(4);
  result.x.pop_back();
  EXPECT_EQ(message_of<ShapeError>([&] { writer.add(example_theta(4), result); }),
            "campaign: x of row 4 (ok) has 2 numbers but the campaign has 3");
  result.x.clear();
  EXPECT_EQ(message_of<ShapeError>([&] { writer.add(example_theta(4), result); }),
            "campaign: x of row 4 (ok) has 0 numbers but the campaign has 3");
  result.status = RowStatus::wrong_shape;
  result.x = {1.0};
  EXPECT_EQ(message_of<ShapeError>([&] { writer.add(example_theta(4), result); }),
            "campaign: x of row 4 (wrong shape) has 1 numbers but the campaign has 3");
  result = example_result(4);
  result.row = std::uint64_t{1} << 63;
  EXPECT_EQ(message_of<DomainError>([&] { writer.add(example_theta(4), result); }),
            "campaign: row 9223372036854775808; the highest number of a row is 2^63 - 1");
  result.row = (std::uint64_t{1} << 63) - 1;
  writer.add(example_theta(4), result);
  writer.commit();
  EXPECT_EQ(writer.stored_rows(), Rows{result.row});
}

TEST(CampaignWriter, RefusesImpossibleCampaigns) {
  const TemporaryFolder folder;
  const auto refusal = [&](CampaignIdentity identity, Shard shard) {
    return message_of<ConfigError>(
        [&] { CampaignWriter(folder.path(), identity, shard, ChangedCampaign::accept); });
  };
  EXPECT_EQ(refusal(example_identity(), {3, 3}),
            "campaign: shard 4 of 3; shards are numbered from 1 to how many there are");
  CampaignIdentity identity = example_identity();
  identity.x_shape = {4, 0};
  EXPECT_EQ(refusal(identity, {}), "campaign: x of a row has no numbers; at least one is needed");
  identity.x_shape = {200'000'000};
  EXPECT_EQ(refusal(identity, {}),
            "campaign: a row has 2 parameters and 200000000 numbers in x; a database can hold 125000000 of "
            "each, let "
            "the simulator write fewer");
  identity.parameter_names.clear();
  identity.x_shape = {1};
  EXPECT_EQ(refusal(identity, {}), "campaign: there are no parameters; a campaign needs at least one");
}

TEST(CampaignWriter, RefusesPlacesWhereNoFolderCanBe) {
  const TemporaryFolder folder;
  RawDatabase(folder / "file").run("CREATE TABLE a (b)");
  EXPECT_EQ(without_path(message_of<IoError>([&] {
                           CampaignWriter(folder / "file", example_identity(), {}, ChangedCampaign::refuse);
                         }),
                         folder),
            "file: the folder of the campaign cannot be made: Not a directory; choose another place");
  EXPECT_EQ(without_path(message_of<IoError>([&] {
                           CampaignWriter(folder / "file/runs", example_identity(), {},
                                          ChangedCampaign::refuse);
                         }),
                         folder),
            "file/runs: the folder of the campaign cannot be made: Not a directory; choose another place");
  const fs::path deep = folder / std::string(200, 'a') / std::string(200, 'b') / std::string(200, 'c');
  const std::string refusal =
      message_of<IoError>([&] { CampaignWriter(deep, example_identity(), {}, ChangedCampaign::refuse); });
  EXPECT_NE(refusal.find("bytes, longer than the 504 that it can have; choose a folder with a shorter path"),
            std::string::npos)
      << refusal;
}

TEST(CampaignWriter, SaysThatAFolderMayNotBeWritten) {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                                     fs::perms::others_exec);
  const std::string refusal = in_child([&] {
    become_nobody();
    return message_of<IoError>(
        [&] { CampaignWriter(folder.path(), example_identity(), {}, ChangedCampaign::refuse); });
  });
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_EQ(without_path(refusal, folder),
            "rows-1-of-1.sqlite: cannot be opened (unable to open database file); allow "
            "reading and "
            "writing (chmod u+rw) of it and its folder, or choose another folder");
}

TEST(CampaignWriter, IsLeftAloneByItsCopyInAForkedChild) {
  const TemporaryFolder folder;
  {
    auto writer =
        std::make_unique<CampaignWriter>(folder.path(), example_identity(), Shard{}, ChangedCampaign::refuse);
    add_rows(*writer, 0, 5);
    writer->commit();
    add_rows(*writer, 5, 8);
    EXPECT_EQ(in_child([&] {
                writer.reset();
                return "done";
              }),
              "done");
    EXPECT_EQ(names_in(folder.path()), "rows-1-of-1.sqlite rows-1-of-1.sqlite-wal");
    add_rows(*writer, 8, 10);
    writer->commit();
  }
  const SimulationSet set = CampaignReader(folder.path()).read(10);
  for (std::size_t row = 0; row < 10; ++row) EXPECT_TRUE(is_example_row(set, row, row));
}

}  // namespace
}  // namespace nrec::simulation
