// Ownership under kills, pauses, outages and clocks that differ, in simulated time.

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_simulation.h"
#include "tests/support/effort.h"

namespace timecache::server {
namespace {

using test::Rounds;
using test::Seed;

constexpr int kSeeds = 40;

SimulationOptions Rough() {
  SimulationOptions options;
  options.members = 4;
  options.delay = absl::Milliseconds(100);
  options.lost_per_mille = 50;
  options.late_per_mille = 20;
  options.wall_skew = absl::Milliseconds(100);
  return options;
}

// The sum of the overlaps of many runs.
int64_t Overlaps(const SimulationOptions& options, int64_t* terms,
                 absl::Duration time = absl::Seconds(60)) {
  int64_t overlaps = 0;
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster(options, Seed() + i);
    cluster.RunDisturbed(time);
    overlaps += cluster.overlaps();
    EXPECT_EQ(cluster.skewed_takeovers(), 0) << "seed " << Seed() + i;
    *terms += cluster.terms();
  }
  return overlaps;
}

TEST(MemberSimulationTest, NoTwoNodesServeAtATime) {
  int64_t terms = 0;
  EXPECT_EQ(Overlaps(Rough(), &terms), 0);
  EXPECT_GT(terms, 4 * Rounds(kSeeds));
}

TEST(MemberSimulationTest, NoTwoNodesServeWhateverTheWallClocksSay) {
  SimulationOptions options = Rough();
  options.wall_skew = absl::Seconds(30);
  options.max_clock_skew = absl::Hours(1);
  options.erratic_brokers = true;
  int64_t terms = 0;
  EXPECT_EQ(Overlaps(options, &terms), 0);
  EXPECT_GT(terms, 4 * Rounds(kSeeds));
}

// A record is late by 30 s at most here: the retention has to be longer.
TEST(MemberSimulationTest, NoTwoNodesServeWhereTheLogIsTrimmed) {
  SimulationOptions options = Rough();
  options.retention = absl::Seconds(40);
  int64_t terms = 0;
  EXPECT_EQ(Overlaps(options, &terms, absl::Seconds(100)), 0);
  EXPECT_GT(terms, 7 * Rounds(kSeeds));
}

// A failure timeout below the lease, as no configuration has: the wait for the lease
// alone keeps the two apart, and without it the simulation sees two.
TEST(MemberSimulationTest, TheWaitForTheLeaseKeepsOwnersApart) {
  SimulationOptions options = Rough();
  options.failure_timeout = absl::Milliseconds(800);
  options.lease = absl::Milliseconds(1'600);
  int64_t terms = 0;
  EXPECT_EQ(Overlaps(options, &terms), 0);
  options.skip_lease_wait = true;
  EXPECT_GT(Overlaps(options, &terms), 0);
}

// All nodes start at once: any of them may be the first owner.
int RunUntilOwned(ClusterSimulation* cluster, int extra_ms) {
  EXPECT_LE(cluster->AwaitOwner(absl::Seconds(10)), absl::Seconds(1));
  cluster->RunFor(absl::Milliseconds(3'000 + extra_ms));
  return cluster->owner();
}

// The first by name of the others.
int Next(int owner) { return owner == 0 ? 1 : 0; }

TEST(MemberSimulationTest, AStandbyTakesOverFromAnOwnerThatDies) {
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster({}, Seed() + i);
    const int owner = RunUntilOwned(&cluster, i * 10);
    ASSERT_GE(owner, 0);
    cluster.Kill(owner);
    EXPECT_LE(cluster.AwaitOwner(absl::Seconds(10)), absl::Seconds(3));
    EXPECT_EQ(cluster.owner(), Next(owner));
    EXPECT_EQ(cluster.overlaps(), 0);
  }
}

TEST(MemberSimulationTest, AnOwnerThatIsPausedOrCutOffIsReplaced) {
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster({}, Seed() + i);
    const int owner = RunUntilOwned(&cluster, i * 10);
    ASSERT_GE(owner, 0);
    if (i % 2 == 0) {
      cluster.Pause(owner, absl::Seconds(6));
    } else {
      cluster.Cut(owner, absl::Seconds(6));
    }
    cluster.RunFor(absl::Seconds(3));
    EXPECT_EQ(cluster.owner(), Next(owner));
    cluster.RunFor(absl::Seconds(6));
    EXPECT_EQ(cluster.owner(), Next(owner));
    // Its next incarnation.
    EXPECT_EQ(cluster.logic(owner).role(), MemberRole::kStandby);
    EXPECT_EQ(cluster.overlaps(), 0);
  }
}

TEST(MemberSimulationTest, AnOwnerThatDoesNotReadIsReplacedOnce) {
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster({}, Seed() + i);
    const int owner = RunUntilOwned(&cluster, i * 10);
    cluster.Deafen(owner, absl::Seconds(10));
    cluster.RunFor(absl::Seconds(5));
    const int next = Next(owner);
    EXPECT_EQ(cluster.owner(), next);
    const int64_t takeover = cluster.logic(next).state().takeover();
    const ControlState::View view = cluster.logic(next).state().view();
    EXPECT_TRUE(view.nodes[owner].gone);
    EXPECT_LT(view.nodes[owner].silence, absl::Seconds(1));
    cluster.RunFor(absl::Seconds(8));
    EXPECT_EQ(cluster.owner(), next);
    EXPECT_EQ(cluster.logic(next).state().takeover(), takeover);
    EXPECT_EQ(cluster.logic(owner).role(), MemberRole::kStandby);
    EXPECT_EQ(cluster.overlaps(), 0);
  }
}

TEST(MemberSimulationTest, AStandbyThatDoesNotReadIsNotChosen) {
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster({}, Seed() + i);
    const int owner = RunUntilOwned(&cluster, i * 10);
    const int deaf = Next(owner);
    const int other = 3 - owner - deaf;
    cluster.Deafen(deaf, absl::Seconds(20));
    cluster.RunFor(absl::Seconds(4));
    EXPECT_FALSE(cluster.logic(owner)
                     .CheckSuccessor(ClusterSimulation::Name(deaf))
                     .ok());
    if (i % 2 == 0) {
      cluster.Kill(owner);
    } else {
      EXPECT_TRUE(cluster.Release(owner, "").ok());
    }
    cluster.RunFor(absl::Seconds(4));
    EXPECT_EQ(cluster.owner(), other);
    EXPECT_EQ(cluster.overlaps(), 0);
  }
}

TEST(MemberSimulationTest, NoOwnershipIsLostWhileNoNodeReads) {
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster({}, Seed() + i);
    const int owner = RunUntilOwned(&cluster, i * 10);
    const int64_t takeover = cluster.logic(owner).state().takeover();
    for (int node = 0; node < 3; ++node) {
      cluster.Deafen(node, absl::Seconds(6));
    }
    cluster.RunFor(absl::Seconds(5));
    EXPECT_EQ(cluster.owner(), -1);
    cluster.RunFor(absl::Seconds(5));
    EXPECT_EQ(cluster.owner(), owner);
    EXPECT_EQ(cluster.logic(owner).state().takeover(), takeover);
  }
}

// Whoever takes over here does so while the lease of the one before it runs.
SimulationOptions LongLease() {
  SimulationOptions options;
  options.failure_timeout = absl::Milliseconds(800);
  options.lease = absl::Milliseconds(1'600);
  options.delay = absl::ZeroDuration();
  return options;
}

TEST(MemberSimulationTest, TheWaitForTheLeaseCoversClocksThatDrift) {
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster(LongLease(), Seed() + i);
    const int owner = RunUntilOwned(&cluster, i * 10);
    cluster.Cut(owner, absl::Seconds(10));
    cluster.RunFor(absl::Seconds(4));
    EXPECT_EQ(cluster.owner(), Next(owner));
    EXPECT_EQ(cluster.overlaps(), 0);
  }
}

TEST(MemberSimulationTest, AReleaseWaitsForTheLeaseOfTheOwnerBefore) {
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster(LongLease(), Seed() + i);
    const int owner = RunUntilOwned(&cluster, i * 10);
    const int second = Next(owner);
    const int third = 3 - owner - second;
    cluster.Cut(owner, absl::Seconds(10));
    ASSERT_TRUE(cluster.AwaitRole(second, MemberRole::kTakingOver));
    EXPECT_EQ(cluster.owner(), owner);
    EXPECT_TRUE(cluster.Release(second, ClusterSimulation::Name(third)).ok());
    cluster.RunFor(absl::Seconds(4));
    EXPECT_EQ(cluster.owner(), third);
    EXPECT_EQ(cluster.overlaps(), 0);
  }
}

TEST(MemberSimulationTest, AnOutageOfTheBrokersCostsNoOwnership) {
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster({}, Seed() + i);
    const int owner = RunUntilOwned(&cluster, i * 10);
    const int64_t takeover = cluster.logic(owner).state().takeover();
    cluster.Outage(absl::Milliseconds(500 + i * 300));
    cluster.RunFor(absl::Milliseconds(500 + i * 300));
    if (i * 300 > 1'000) {
      EXPECT_EQ(cluster.owner(), -1);
    }
    cluster.RunFor(absl::Seconds(4));
    EXPECT_EQ(cluster.owner(), owner);
    EXPECT_EQ(cluster.logic(Next(owner)).state().takeover(), takeover);
  }
}

// The control of the test before it: if all time counted, whoever is the first to
// reach the brokers again would decide.
TEST(MemberSimulationTest, SilenceThatCountedWouldCostTheOwnership) {
  int lost = 0;
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster({}, Seed() + i);
    const int owner = RunUntilOwned(&cluster, i * 10);
    const int64_t takeover = cluster.logic(owner).state().takeover();
    cluster.Outage(absl::Seconds(6));
    cluster.RunFor(absl::Seconds(6));
    cluster.CountSilence(absl::Seconds(6));
    cluster.RunFor(absl::Seconds(4));
    if (cluster.logic(Next(owner)).state().takeover() != takeover) ++lost;
  }
  EXPECT_GT(lost, Rounds(kSeeds) / 4);
}

TEST(MemberSimulationTest, AReleasedOwnershipIsTakenAtOnce) {
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster({}, Seed() + i);
    const int owner = RunUntilOwned(&cluster, i * 10);
    // To the last one by name, or to any.
    const int last = owner == 2 ? 1 : 2;
    const bool named = i % 2 == 0;
    EXPECT_TRUE(
        cluster.Release(owner, named ? ClusterSimulation::Name(last) : "")
            .ok());
    // Way to the log, to the standby, of the takeover, back, and of the claim.
    EXPECT_LE(cluster.AwaitOwner(absl::Seconds(10)), absl::Milliseconds(150));
    EXPECT_EQ(cluster.owner(), named ? last : Next(owner));
    EXPECT_EQ(cluster.overlaps(), 0);
  }
}

TEST(MemberSimulationTest, NoNodeWhoseClockIsWrongTakesOver) {
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster({}, Seed() + i);
    cluster.SetWallSkew(0, absl::Milliseconds(-600));
    cluster.SetWallSkew(2, absl::Seconds(30));
    cluster.RunFor(absl::Milliseconds(4'000 + i));
    EXPECT_EQ(cluster.owner(), 1);
    cluster.Kill(1);
    cluster.RunFor(absl::Seconds(20));
    EXPECT_EQ(cluster.owner(), -1);
    EXPECT_EQ(cluster.skewed_takeovers(), 0);
    cluster.SetWallSkew(2, absl::ZeroDuration());
    cluster.RunFor(absl::Seconds(4));
    EXPECT_EQ(cluster.owner(), 2);
  }
}

TEST(MemberSimulationTest, AStandbyThatIsBehindLeavesOthersTheFirstChance) {
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster({}, Seed() + i);
    const int owner = RunUntilOwned(&cluster, i * 10);
    const int behind = Next(owner);
    const int other = 3 - owner - behind;
    cluster.SetLag(behind, 1'000'000);
    cluster.RunFor(absl::Seconds(1));
    cluster.Kill(owner);
    cluster.RunFor(absl::Seconds(4));
    EXPECT_EQ(cluster.owner(), other);
    // Alone, it does take over.
    cluster.Kill(other);
    cluster.RunFor(absl::Seconds(4));
    EXPECT_EQ(cluster.owner(), behind);
  }
}

TEST(MemberSimulationTest, AllGoDownAndOneComesBack) {
  for (int i = 0; i < Rounds(kSeeds); ++i) {
    ClusterSimulation cluster({}, Seed() + i);
    RunUntilOwned(&cluster, i * 10);
    for (int node = 0; node < 3; ++node) cluster.Kill(node);
    cluster.RunFor(absl::Seconds(10));
    cluster.Restart(2);
    EXPECT_LE(cluster.AwaitOwner(absl::Seconds(10)), absl::Seconds(3));
    EXPECT_EQ(cluster.owner(), 2);
  }
}

}  // namespace
}  // namespace timecache::server
