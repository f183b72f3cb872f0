// Owners of slots under kills, pauses, outages and nodes that come and go, in simulated
// time.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_simulation.h"
#include "tests/support/effort.h"

namespace timecache::server {
namespace {

using test::Rounds;
using test::Seed;

constexpr int kSlotSeeds = 20;

SimulationOptions Slots(int members, int slots) {
  SimulationOptions options;
  options.members = members;
  options.slots = slots;
  return options;
}

SimulationOptions Rough(int members, int slots) {
  SimulationOptions options = Slots(members, slots);
  options.delay = absl::Milliseconds(100);
  options.lost_per_mille = 50;
  options.late_per_mille = 20;
  options.wall_skew = absl::Milliseconds(100);
  return options;
}

void ExpectBalance(const ClusterSimulation& cluster,
                   const std::vector<int>& nodes, int slots) {
  const int count = static_cast<int>(nodes.size());
  for (const int node : nodes) {
    EXPECT_GE(cluster.Owned(node), slots / count);
    EXPECT_LE(cluster.Owned(node), (slots + count - 1) / count);
  }
}

TEST(SlotSimulationTest, NoTwoNodesServeASlotAtATime) {
  int64_t terms = 0;
  for (int i = 0; i < Rounds(kSlotSeeds); ++i) {
    ClusterSimulation cluster(Rough(3 + i % 3, 4 + i % 5), Seed() + i);
    cluster.RunDisturbed(absl::Seconds(60));
    EXPECT_EQ(cluster.overlaps(), 0) << "seed " << Seed() + i;
    EXPECT_EQ(cluster.skewed_takeovers(), 0) << "seed " << Seed() + i;
    terms += cluster.terms();
  }
  EXPECT_GT(terms, 20 * Rounds(kSlotSeeds));
}

TEST(SlotSimulationTest, NoTwoNodesServeASlotWhereTheLogIsTrimmed) {
  for (int i = 0; i < Rounds(kSlotSeeds) / 2 + 1; ++i) {
    SimulationOptions options = Rough(4, 4);
    options.retention = absl::Seconds(40);
    ClusterSimulation cluster(options, Seed() + i);
    cluster.RunDisturbed(absl::Seconds(100));
    EXPECT_EQ(cluster.overlaps(), 0) << "seed " << Seed() + i;
  }
}

// The leases of slots are what keeps them apart, as those of one owner are.
TEST(SlotSimulationTest, TheWaitForTheLeaseKeepsOwnersApart) {
  SimulationOptions options = Rough(4, 6);
  options.failure_timeout = absl::Milliseconds(800);
  options.lease = absl::Milliseconds(1'600);
  for (const bool skip : {false, true}) {
    options.skip_lease_wait = skip;
    int64_t overlaps = 0;
    for (int i = 0; i < Rounds(kSlotSeeds) / 2 + 1; ++i) {
      ClusterSimulation cluster(options, Seed() + i);
      cluster.RunDisturbed(absl::Seconds(60));
      overlaps += cluster.overlaps();
    }
    EXPECT_EQ(overlaps > 0, skip);
  }
}

// What a node does that makes a backup, but for the backup. Holds that held by what
// the node knows, and how often an owner knew nothing of them.
struct Holds {
  int held = 0;
  int unaware = 0;
};

Holds Hold(ClusterSimulation* cluster, int node, bool wait_for_leases) {
  const auto* const logic = &cluster->membership(node);
  const absl::Duration step = absl::Microseconds(ClusterSimulation::kStepUs);
  // Whether it came back, to the same process.
  const auto await = [&](uint64_t number) {
    for (int i = 0; i < 3'000 && logic == &cluster->membership(node); ++i) {
      if (logic->read_number() >= number) return true;
      cluster->RunDisturbed(step);
    }
    return false;
  };
  Holds holds;
  if (!await(cluster->SetHold(node, true, true))) return holds;
  const uint64_t lapses = logic->lapses();
  const int64_t certain_ns =
      cluster->boot_ns(node) +
      (wait_for_leases ? MemberLogic::SafeLeaseNs(logic->LongestLease()) : 0);
  while (cluster->boot_ns(node) < certain_ns) cluster->RunDisturbed(step);
  for (int i = 0; i < 500; ++i) {
    holds.unaware += cluster->Unaware();
    cluster->RunDisturbed(step);
  }
  if (logic != &cluster->membership(node) ||
      !await(cluster->SetHold(node, true, false)) ||
      logic->lapses() != lapses) {
    return {};
  }
  holds.held = 1;
  cluster->SetHold(node, false, false);
  return holds;
}

TEST(SlotSimulationTest, AHoldIsKnownToEachOwnerOnceNoOlderLeaseRuns) {
  for (const bool wait_for_leases : {true, false}) {
    Holds all;
    for (int i = 0; i < Rounds(kSlotSeeds); ++i) {
      ClusterSimulation cluster(Rough(3 + i % 3, 4 + i % 5), Seed() + i);
      cluster.RunDisturbed(absl::Seconds(10));
      for (int node = 0; node < 3; ++node) {
        const Holds holds = Hold(&cluster, node, wait_for_leases);
        all.held += holds.held;
        all.unaware += holds.unaware;
      }
    }
    EXPECT_GT(all.held, Rounds(kSlotSeeds) / 4);
    EXPECT_EQ(all.unaware > 0, !wait_for_leases) << "seed " << Seed();
  }
}

TEST(SlotSimulationTest, SlotsAreSharedEvenlyAndOwnedAfterFaults) {
  for (int i = 0; i < Rounds(kSlotSeeds); ++i) {
    const int members = 3 + i % 3;
    const int slots = 4 + i % 5;
    ClusterSimulation cluster(Rough(members, slots), Seed() + i);
    cluster.RunDisturbed(absl::Seconds(20));
    cluster.RunFor(absl::Seconds(30));
    // Records are lost and late still: a node may seem gone for a moment.
    EXPECT_LT(cluster.AwaitPlacement(absl::Seconds(20)), absl::Seconds(20))
        << "seed " << Seed() + i;
  }
}

TEST(SlotSimulationTest, TheSlotsOfANodeThatDiesHaveOwnersSoon) {
  for (int i = 0; i < Rounds(kSlotSeeds); ++i) {
    const int slots = 8;
    ClusterSimulation cluster(Slots(4, slots), Seed() + i);
    cluster.RunFor(absl::Seconds(5));
    ASSERT_LT(cluster.AwaitPlacement(absl::Seconds(10)), absl::Seconds(10));
    cluster.RunFor(absl::Seconds(3));
    ExpectBalance(cluster, {0, 1, 2, 3}, slots);
    const auto placement = cluster.membership(0).GetPlacement();
    cluster.Kill(1);
    EXPECT_LT(cluster.AwaitOwner(absl::Seconds(10)), absl::Milliseconds(2'600));
    for (int slot = 0; slot < slots; ++slot) {
      const auto& before = placement[static_cast<size_t>(slot)];
      const std::string now = ClusterSimulation::Name(cluster.owner(slot));
      // Its standby has caught up, and the others keep theirs.
      EXPECT_EQ(now,
                before.owner == "b" ? before.wanted_standby : before.owner);
    }
    EXPECT_LT(cluster.AwaitPlacement(absl::Seconds(10)), absl::Seconds(10));
    ExpectBalance(cluster, {0, 2, 3}, slots);
    EXPECT_EQ(cluster.overlaps(), 0);
  }
}

TEST(SlotSimulationTest, ANodeThatComesGetsItsShareAndNoMore) {
  for (int i = 0; i < Rounds(kSlotSeeds); ++i) {
    const int slots = 8;
    ClusterSimulation cluster(Slots(4, slots), Seed() + i);
    cluster.Kill(3);
    cluster.RunFor(absl::Seconds(5));
    ASSERT_LT(cluster.AwaitPlacement(absl::Seconds(10)), absl::Seconds(10));
    ExpectBalance(cluster, {0, 1, 2}, slots);
    std::vector<int> before;
    for (int slot = 0; slot < slots; ++slot) {
      before.push_back(cluster.owner(slot));
    }
    cluster.Restart(3);
    cluster.RunFor(absl::Seconds(2));
    ASSERT_LT(cluster.AwaitPlacement(absl::Seconds(10)), absl::Seconds(10));
    EXPECT_EQ(cluster.Owned(3), 2);
    for (int slot = 0; slot < slots; ++slot) {
      const int owner = cluster.owner(slot);
      if (owner != 3) {
        EXPECT_EQ(owner, before[static_cast<size_t>(slot)]);
      }
    }
    EXPECT_EQ(cluster.overlaps(), 0);
  }
}

TEST(SlotSimulationTest, ANodeThatLeavesHandsOverAll) {
  for (int i = 0; i < Rounds(kSlotSeeds) / 2 + 1; ++i) {
    ClusterSimulation cluster(Slots(3, 6), Seed() + i);
    cluster.RunFor(absl::Seconds(5));
    ASSERT_LT(cluster.AwaitPlacement(absl::Seconds(10)), absl::Seconds(10));
    cluster.RunFor(absl::Seconds(2));
    cluster.Yield(0);
    cluster.RunFor(absl::Milliseconds(500));
    ASSERT_LT(cluster.AwaitPlacement(absl::Seconds(10)), absl::Seconds(2));
    EXPECT_EQ(cluster.Owned(0), 0);
    ExpectBalance(cluster, {1, 2}, 6);
    for (const SlotPlacement& slot : cluster.membership(0).GetPlacement()) {
      EXPECT_FALSE(slot.host);
      EXPECT_NE(slot.wanted_owner, "a");
      EXPECT_NE(slot.wanted_standby, "a");
    }
    EXPECT_EQ(cluster.overlaps(), 0);
  }
}

TEST(SlotSimulationTest, RecordsAreNoMoreThanHeartbeatsNeed) {
  ClusterSimulation cluster(Slots(4, 8), Seed());
  cluster.RunFor(absl::Seconds(10));
  ASSERT_LT(cluster.AwaitPlacement(absl::Seconds(10)), absl::Seconds(10));
  cluster.RunFor(absl::Seconds(2));
  const size_t before = cluster.log().size();
  cluster.RunFor(absl::Seconds(10));
  EXPECT_LE(cluster.log().size() - before, 4u * 41);
  EXPECT_GE(cluster.log().size() - before, 4u * 38);
}

// Some nodes own all, or none: those of another version, or configuration.
TEST(SlotSimulationTest, NoOwnerOfAllServesBesideOwnersOfSlots) {
  int64_t terms = 0;
  for (int i = 0; i < Rounds(kSlotSeeds); ++i) {
    SimulationOptions options = Rough(5, 4);
    options.whole_members = 1 + i % 3;
    // So that who takes over has to wait for the lease, or not.
    if (i % 2 == 0) {
      options.failure_timeout = absl::Milliseconds(800);
      options.lease = absl::Milliseconds(1'600);
    }
    ClusterSimulation cluster(options, Seed() + i);
    cluster.RunDisturbed(absl::Seconds(60));
    EXPECT_EQ(cluster.overlaps(), 0) << "seed " << Seed() + i;
    terms += cluster.terms();
  }
  EXPECT_GT(terms, 10 * Rounds(kSlotSeeds));
}

TEST(SlotSimulationTest, SlotsWaitUntilNoNodeOwnsAll) {
  for (int i = 0; i < Rounds(kSlotSeeds) / 2 + 1; ++i) {
    SimulationOptions options = Slots(4, 4);
    options.whole_members = 1;
    ClusterSimulation cluster(options, Seed() + i);
    for (const int node : {1, 2, 3}) cluster.Kill(node);
    cluster.RunFor(absl::Seconds(3));
    ASSERT_EQ(cluster.Owned(0), 4);
    for (const int node : {1, 2, 3}) cluster.Restart(node);
    cluster.RunFor(absl::Seconds(10));
    EXPECT_EQ(cluster.Owned(0), 4);
    cluster.Kill(0);
    cluster.RunFor(absl::Seconds(3));
    EXPECT_LT(cluster.AwaitOwner(absl::Seconds(10)), absl::Seconds(2));
    EXPECT_LT(cluster.AwaitPlacement(absl::Seconds(10)), absl::Seconds(10));
    ExpectBalance(cluster, {1, 2, 3}, 4);
    // It comes back, and waits in turn.
    cluster.Restart(0);
    cluster.RunFor(absl::Seconds(10));
    EXPECT_EQ(cluster.logic(0).role(), MemberRole::kStandby);
    for (const int node : {1, 2, 3}) cluster.Kill(node);
    cluster.RunFor(absl::Seconds(5));
    EXPECT_EQ(cluster.Owned(0), 4);
    EXPECT_EQ(cluster.overlaps(), 0);
  }
}

}  // namespace
}  // namespace timecache::server
