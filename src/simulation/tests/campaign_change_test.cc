#include <gtest/gtest.h>

#include "simulation/tests/campaign_examples.h"
#include "simulation/tests/child_process.h"

namespace nrec::simulation {
namespace {

using Rows = std::vector<std::uint64_t>;

CampaignIdentity changed_identity() {
  CampaignIdentity identity = example_identity();
  identity.seed = 8;
  identity.simulator_hash = "fnv1a64:0000000000000002";
  return identity;
}

const std::string kChanges =
    "the seed was 7 and is now 8; the fingerprint of the simulator's files was fnv1a64:0000000000000001 and "
    "is now "
    "fnv1a64:0000000000000002";

std::string refusal_of(const TemporaryFolder& folder, const CampaignIdentity& identity, Shard shard,
                       ChangedCampaign changed = ChangedCampaign::refuse) {
  return without_path(
      message_of<ConfigError>([&] { CampaignWriter(folder.path(), identity, shard, changed); }), folder);
}

TEST(ChangedCampaign, IsRefusedWithEveryDifference) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 10);
  EXPECT_EQ(
      refusal_of(folder, changed_identity(), {}),
      "rows-1-of-1.sqlite: its 10 rows were simulated for another problem: " + kChanges +
          ". Undo the change, or choose another folder; if these rows and new ones may be mixed, go on with "
          "`nrec simulate --accept-changes`");
  // Nothing was changed by the refusal.
  EXPECT_EQ(CampaignReader(folder.path()).identity(), example_identity());
  EXPECT_EQ(names_in(folder.path()), "rows-1-of-1.sqlite");
}

TEST(ChangedCampaign, IsRefusedForTheSakeOfAnotherDatabase) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {0, 2}, 10);
  EXPECT_EQ(
      refusal_of(folder, changed_identity(), {1, 2}),
      "rows-1-of-2.sqlite: its 5 rows were simulated for another problem: " + kChanges +
          ". Undo the change, or choose another folder; if these rows and new ones may be mixed, go on with "
          "`nrec simulate --accept-changes`");
  EXPECT_EQ(names_in(folder.path()), "rows-1-of-2.sqlite") << "a refusal leaves no file";
}

TEST(ChangedCampaign, IsRefusedForTheSakeOfADatabaseThatIsBeingWritten) {
  const TemporaryFolder folder;
  CampaignWriter writer(folder.path(), example_identity(), {0, 2}, ChangedCampaign::refuse);
  add_rows(writer, 0, 10, 2);
  writer.commit();
  EXPECT_EQ(refusal_of(folder, changed_identity(), {1, 2}),
            "rows-1-of-2.sqlite: is being written now for another problem: " + kChanges +
                ". Undo the change, or choose another folder");
  const CampaignWriter same(folder.path(), example_identity(), {1, 2}, ChangedCampaign::refuse);
}

TEST(ChangedCampaign, IsStoredWhenItIsAccepted) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 10);
  {
    CampaignWriter writer(folder.path(), changed_identity(), {}, ChangedCampaign::accept);
    EXPECT_EQ(writer.stored_rows().size(), 10u);
    add_rows(writer, 10, 12);
  }
  const CampaignReader reader(folder.path());
  EXPECT_EQ(reader.identity(), changed_identity());
  EXPECT_EQ(reader.summary().num_identity_changes, 1u);
  EXPECT_EQ(reader.read(12).num_rows(), 12u);
  { const CampaignWriter back(folder.path(), example_identity(), {}, ChangedCampaign::accept); }
  { const CampaignWriter same(folder.path(), example_identity(), {}, ChangedCampaign::accept); }
  EXPECT_EQ(CampaignReader(folder.path()).summary().num_identity_changes, 2u);
  RawDatabase raw(folder / "rows-1-of-1.sqlite");
  EXPECT_EQ(raw.run("SELECT value FROM meta WHERE key = 'identity_change_1'"), kChanges);
}

TEST(ChangedCampaign, IsStoredAlsoAfterAKill) {
  const TemporaryFolder folder;
  {
    ChildProcess child([&](int pipe) {
      CampaignWriter writer(folder.path(), example_identity(), {}, ChangedCampaign::refuse);
      add_rows(writer, 0, 10);
      writer.commit();
      ChildProcess::send(pipe, "x");
      ::pause();
    });
    ASSERT_EQ(child.receive(1), "x");
  }
  EXPECT_NE(refusal_of(folder, changed_identity(), {}).find("its 10 rows were simulated for another problem"),
            std::string::npos);
  { const CampaignWriter writer(folder.path(), changed_identity(), {}, ChangedCampaign::accept); }
  EXPECT_EQ(CampaignReader(folder.path()).identity(), changed_identity());
}

TEST(ChangedCampaign, OfAnotherSizeIsRefusedEvenWhenItIsAccepted) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 10);
  CampaignIdentity wider = example_identity();
  wider.x_shape = {4};
  EXPECT_EQ(refusal_of(folder, wider, {}, ChangedCampaign::accept),
            "rows-1-of-1.sqlite: its 10 rows have 2 parameters and 3 numbers in x, new ones would have 2 and "
            "4; choose "
            "another folder");
  CampaignIdentity more = example_identity();
  more.parameter_names.push_back("third");
  EXPECT_EQ(refusal_of(folder, more, {}, ChangedCampaign::accept),
            "rows-1-of-1.sqlite: its 10 rows have 2 parameters and 3 numbers in x, new ones would have 3 and "
            "3; choose "
            "another folder");
  CampaignIdentity reshaped = example_identity();
  reshaped.x_shape = {3, 1};
  const CampaignWriter writer(folder.path(), reshaped, {}, ChangedCampaign::accept);
}

TEST(ChangedCampaign, OfAnotherSizeIsAcceptedWhenThereAreNoRows) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {}, 0);
  CampaignIdentity wider = example_identity();
  wider.x_shape = {4};
  { const CampaignWriter writer(folder.path(), wider, {}, ChangedCampaign::accept); }
  EXPECT_EQ(CampaignReader(folder.path()).identity(), wider);
}

TEST(ChangedCampaign, CountsNoRowsOfAnotherProblemAsStored) {
  const TemporaryFolder folder;
  make_shard(folder.path(), {0, 2}, 10);
  const CampaignWriter writer(folder.path(), changed_identity(), {1, 2}, ChangedCampaign::accept);
  EXPECT_EQ(writer.stored_rows(), Rows());
}

}  // namespace
}  // namespace nrec::simulation
