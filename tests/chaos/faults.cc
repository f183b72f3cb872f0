#include "tests/chaos/faults.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"

namespace timecache::test {
namespace {

using AwaitService = absl::FunctionRef<void()>;

// Longer than an owner may be silent, and than its calls wait.
constexpr absl::Duration kOutage = absl::Seconds(10);

std::string AnyBroker(TestCluster& cluster, Dice& dice) {
  return absl::StrCat(dice.Draw(1, cluster.brokers().count()));
}

// Of a node that runs, however long it takes to answer.
nlohmann::json StatusOf(const Node& node) {
  nlohmann::json status;
  EXPECT_TRUE(AwaitCluster([&] {
    status = TestCluster::Status(node.address());
    return !status.is_null();
  }));
  return status;
}

// What is done to the owner and to a broker, and undone once others serve.
void Break(TestCluster& cluster, AwaitService await_service,
           absl::FunctionRef<void(Node&)> begin,
           absl::FunctionRef<void(Node&)> end) {
  Node* const owner = cluster.AwaitOwner();
  ASSERT_NE(owner, nullptr);
  begin(*owner);
  await_service();
  // Whoever still asks the owner asks for what another one has changed.
  await_service();
  end(*owner);
}

void KillOwner(TestCluster& cluster, Dice& /*dice*/, AwaitService await) {
  Break(
      cluster, await, [](Node& owner) { owner.Kill(); },
      [](Node& owner) { owner.Start(); });
}

void PauseOwner(TestCluster& cluster, Dice& /*dice*/, AwaitService await) {
  Break(
      cluster, await, [](Node& owner) { owner.Pause(); },
      [](Node& owner) { owner.Resume(); });
}

void StopOwner(TestCluster& cluster, Dice& /*dice*/, AwaitService await) {
  Break(
      cluster, await, [](Node& owner) { EXPECT_EQ(owner.Stop(), 0); },
      [](Node& owner) { owner.Start(); });
}

void HandOver(TestCluster& cluster, Dice& /*dice*/, AwaitService await) {
  Break(
      cluster, await,
      [](Node& owner) {
        // Until a standby says in a heartbeat that it would take over.
        EXPECT_TRUE(AwaitCluster([&] {
          return RunToEnd({TIMECACHECTL, "--address", owner.address(),
                           "cluster", "handover"})
                     .code == 0;
        }));
      },
      [](Node&) {});
}

void KillStandby(TestCluster& cluster, Dice& dice, AwaitService await) {
  Node* const standby = cluster.Standby(dice);
  standby->Kill();
  await();
  standby->Start();
}

// No node is left but a standby.
void KillOwnerAndStandby(TestCluster& cluster, Dice& dice, AwaitService await) {
  Node* const owner = cluster.AwaitOwner();
  ASSERT_NE(owner, nullptr);
  Node* const standby = cluster.Standby(dice);
  owner->Kill();
  standby->Kill();
  await();
  owner->Start();
  standby->Start();
}

void RollNodes(TestCluster& cluster, Dice& /*dice*/, AwaitService await) {
  for (size_t i = 0; i < cluster.size(); ++i) {
    EXPECT_EQ(cluster.node(i).Stop(), 0);
    await();
    cluster.node(i).Start();
    cluster.AwaitWhole();
  }
}

void KillBroker(TestCluster& cluster, Dice& dice, AwaitService await) {
  const std::string broker = AnyBroker(cluster, dice);
  cluster.brokers().Do("kill " + broker);
  await();
  cluster.brokers().Do("start " + broker);
}

void PauseBroker(TestCluster& cluster, Dice& dice, AwaitService await) {
  const std::string broker = AnyBroker(cluster, dice);
  cluster.brokers().Do("pause " + broker);
  await();
  cluster.brokers().Do("resume " + broker);
}

// As an operator does it.
void RollBrokers(TestCluster& cluster, Dice& /*dice*/, AwaitService await) {
  for (int i = 1; i <= cluster.brokers().count(); ++i) {
    cluster.brokers().Do(absl::StrCat("end ", i));
    await();
    cluster.brokers().Do(absl::StrCat("start ", i));
    await();
  }
}

// It is nobody's silence: the same owner goes on.
void KillAllBrokers(TestCluster& cluster, Dice& /*dice*/, AwaitService await) {
  Node* const owner = cluster.AwaitOwner();
  ASSERT_NE(owner, nullptr);
  nlohmann::json before = StatusOf(*owner);
  for (int i = 1; i <= cluster.brokers().count(); ++i) {
    cluster.brokers().Do(absl::StrCat("kill ", i));
  }
  absl::SleepFor(kOutage);
  for (int i = 1; i <= cluster.brokers().count(); ++i) {
    cluster.brokers().Do(absl::StrCat("start ", i));
  }
  await();
  EXPECT_NE(cluster.AwaitOwner(), nullptr);
  nlohmann::json after = StatusOf(*owner);
  EXPECT_EQ(after["owner"], owner->name());
  EXPECT_EQ(after["claim"], before["claim"]) << before << after;
}

void CutOwnerOff(TestCluster& cluster, Dice& /*dice*/, AwaitService await) {
  Break(
      cluster, await,
      [&](Node& owner) { cluster.brokers().Do("cut " + owner.name()); },
      [&](Node& owner) { cluster.brokers().Do("heal " + owner.name()); });
}

// Other nodes do not reach it: callers do, and the brokers.
void CutOwnerFromNodes(TestCluster& cluster, Dice& /*dice*/,
                       AwaitService await) {
  Break(
      cluster, await,
      [&](Node& owner) {
        cluster.brokers().Do("cut " + TestCluster::PeersOf(owner.name()));
      },
      [&](Node& owner) {
        cluster.brokers().Do("heal " + TestCluster::PeersOf(owner.name()));
      });
}

// What others ask it hangs.
void HoldOwnerFromNodes(TestCluster& cluster, Dice& /*dice*/,
                        AwaitService await) {
  Break(
      cluster, await,
      [&](Node& owner) {
        cluster.brokers().Do("hold " + TestCluster::PeersOf(owner.name()));
      },
      [&](Node& owner) {
        cluster.brokers().Do("heal " + TestCluster::PeersOf(owner.name()));
      });
}

// What it has sent arrives when another node owns.
void HoldOwner(TestCluster& cluster, Dice& /*dice*/, AwaitService await) {
  Break(
      cluster, await,
      [&](Node& owner) { cluster.brokers().Do("hold " + owner.name()); },
      [&](Node& owner) { cluster.brokers().Do("heal " + owner.name()); });
}

// All that the owner has sent lately arrives once more when another node owns.
void ReplayOwner(TestCluster& cluster, Dice& /*dice*/, AwaitService await) {
  Break(
      cluster, await, [](Node& owner) { owner.Kill(); },
      [&](Node& owner) {
        cluster.brokers().Do("replay " + owner.name());
        await();
        owner.Start();
      });
}

void KillOwnerAndBroker(TestCluster& cluster, Dice& dice, AwaitService await) {
  const std::string broker = AnyBroker(cluster, dice);
  cluster.brokers().Do("kill " + broker);
  KillOwner(cluster, dice, await);
  cluster.brokers().Do("start " + broker);
}

void PauseOwnerKillBroker(TestCluster& cluster, Dice& dice,
                          AwaitService await) {
  const std::string broker = AnyBroker(cluster, dice);
  cluster.brokers().Do("kill " + broker);
  PauseOwner(cluster, dice, await);
  cluster.brokers().Do("start " + broker);
}

}  // namespace

const std::vector<Fault>& SharedFaults() {
  static const auto* const shared = new std::vector<Fault>{
      {"owner killed", KillOwner},
      {"standby killed", KillStandby},
      {"handed over", HandOver},
      {"owner paused", PauseOwner},
      {"owner cut off", CutOwnerOff},
      {"owner cut off from nodes", CutOwnerFromNodes},
      {"owner held from nodes", HoldOwnerFromNodes},
      {"owner and standby killed", KillOwnerAndStandby},
      {"nodes rolled", RollNodes},
  };
  return *shared;
}

const std::vector<Fault>& AllFaults() {
  static const auto* const all = new std::vector<Fault>{
      {"owner killed", KillOwner},
      {"owner paused", PauseOwner},
      {"owner stopped", StopOwner},
      {"handed over", HandOver},
      {"standby killed", KillStandby},
      {"broker killed", KillBroker},
      {"broker paused", PauseBroker},
      {"owner cut off", CutOwnerOff},
      {"owner's bytes held", HoldOwner},
      {"owner's bytes again", ReplayOwner},
      {"owner and broker killed", KillOwnerAndBroker},
      {"owner paused, broker killed", PauseOwnerKillBroker},
      {"owner and standby killed", KillOwnerAndStandby},
      {"nodes rolled", RollNodes},
      {"brokers rolled", RollBrokers},
      {"all brokers killed", KillAllBrokers},
  };
  return *all;
}

std::vector<Fault> FaultsNamed(const std::string& names,
                               const std::vector<Fault>& all) {
  std::vector<Fault> named;
  for (const std::string& name :
       std::vector<std::string>(absl::StrSplit(names, ','))) {
    const size_t before = named.size();
    for (const Fault& fault : all) {
      if (fault.name == name) named.push_back(fault);
    }
    if (named.size() == before) ADD_FAILURE() << "no fault is: " << name;
  }
  return named;
}

}  // namespace timecache::test
