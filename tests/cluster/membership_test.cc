// The thread of several slots, and what a runtime asks of it.

#include "server/cluster/membership.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/steady_cond_var.h"
#include "tests/support/cluster/fake_boot_clock.h"
#include "tests/support/cluster/memory_control_log.h"

namespace timecache::server {
namespace {

using testing::Contains;
using testing::Pair;

constexpr int kSlots = 4;

// A node that hosts what it is wanted for, and has caught up at once.
class SlotNode {
 public:
  SlotNode(const std::string& name, MemoryControlTopic* topic,
           const BootClock* clock)
      : name_(name), log_(topic), hosts_(kSlots) {
    MemberOptions options;
    options.node = name;
    options.incarnation = 1;
    options.address = name + ":7600";
    membership_ = std::make_unique<ClusterMembership>(
        options, Sharing::kSlots, kSlots, &log_, clock,
        [this](int slot, MemberRole role) {
          absl::MutexLock lock(&mu_);
          roles_.emplace_back(slot, role);
        },
        nullptr);
    membership_->Start();
  }

  ClusterMembership& membership() { return *membership_; }
  Member& At(int slot) { return *membership_->At(slot); }
  void Stop() { membership_.reset(); }
  // Reads nothing of the control log from now on, and writes it; or goes on.
  void SetDeaf(bool deaf) { log_.SetDeaf(deaf); }
  std::vector<std::pair<int, MemberRole>> roles() const {
    absl::MutexLock lock(&mu_);
    return roles_;
  }

  // What a runtime does, but for the wait for the lease before.
  void Follow() {
    const std::vector<SlotPlacement> placement = membership_->GetPlacement();
    for (int slot = 0; slot < kSlots; ++slot) {
      const SlotPlacement& wanted = placement[static_cast<size_t>(slot)];
      Member& member = At(slot);
      std::vector<bool>::reference hosts = hosts_[static_cast<size_t>(slot)];
      if (member.role() == MemberRole::kEnded || (hosts && !wanted.host)) {
        membership_->Renew(slot);
        hosts = false;
      } else if (wanted.host) {
        hosts = true;
        member.SetLag(0);
      }
      member.BeginService();
      if (wanted.is_mine && !wanted.wanted_owner.empty() &&
          wanted.wanted_owner != name_ &&
          member.CheckSuccessor(wanted.wanted_owner).ok()) {
        member.Release(wanted.wanted_owner, absl::ZeroDuration()).IgnoreError();
      }
    }
  }
  // Slots of which it may delete what their checkpoints have given up.
  int MayTrim() const {
    int may = 0;
    for (int slot = 0; slot < kSlots; ++slot) may += membership_->MayTrim(slot);
    return may;
  }
  int MaySettle() const {
    int may = 0;
    for (int slot = 0; slot < kSlots; ++slot) {
      may += membership_->MaySettle(slot);
    }
    return may;
  }
  int Served() {
    int served = 0;
    for (int slot = 0; slot < kSlots; ++slot) {
      if (At(slot).CheckService().ok()) ++served;
    }
    return served;
  }

 private:
  const std::string name_;
  MemoryControlLog log_;
  mutable absl::Mutex mu_;
  std::vector<std::pair<int, MemberRole>> roles_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> hosts_;
  std::unique_ptr<ClusterMembership> membership_;
};

class MembershipTest : public testing::Test {
 protected:
  // Time passes, and the nodes follow, until it is so.
  template <typename Condition>
  bool Await(const std::vector<SlotNode*>& nodes, Condition condition) {
    for (int i = 0; i < 20'000; ++i) {
      for (SlotNode* node : nodes) node->Follow();
      if (condition()) return true;
      clock_.Pass(absl::Milliseconds(2));
      absl::MutexLock lock(&mu_);
      wake_.WaitFor(&mu_, std::chrono::microseconds(200));
    }
    return false;
  }

  // What `call`, which waits, returns.
  template <typename Call>
  absl::Status Returned(const std::vector<SlotNode*>& nodes, Call call) {
    absl::Status returned;
    std::atomic<bool> done = false;
    std::thread waits([&] {
      returned = call();
      done = true;
    });
    EXPECT_TRUE(Await(nodes, [&] { return done.load(); }));
    waits.join();
    return returned;
  }
  absl::Status AwaitHold(const std::vector<SlotNode*>& nodes, SlotNode* node,
                         uint64_t hold) {
    return Returned(nodes, [&] {
      return node->membership().AwaitHold(hold, absl::Seconds(10));
    });
  }
  absl::Status EndCut(const std::vector<SlotNode*>& nodes, SlotNode* node,
                      uint64_t hold) {
    return Returned(nodes, [&] {
      return node->membership().EndCut(hold, absl::Seconds(10));
    });
  }

  FakeBootClock clock_;
  MemoryControlTopic topic_{&clock_};
  absl::Mutex mu_;
  SteadyCondVar wake_;
};

TEST_F(MembershipTest, NodesShareTheSlotsAndKnowWhoHasThem) {
  SlotNode a("a", &topic_, &clock_);
  ASSERT_TRUE(Await({&a}, [&] { return a.Served() == kSlots; }));
  SlotNode b("b", &topic_, &clock_);
  // All at the same time: on a busy machine a lease may end for a moment, and what the
  // nodes know comes later than what they do.
  MembershipStatus status;
  ASSERT_TRUE(Await({&a, &b}, [&] {
    if (a.Served() != kSlots / 2 || b.Served() != kSlots / 2) return false;
    status = a.membership().GetStatus();
    for (int slot = 0; slot < kSlots; ++slot) {
      const SlotStatus& of_slot = status.slots[static_cast<size_t>(slot)];
      const bool mine = a.At(slot).CheckService().ok();
      if (of_slot.placement.owner != (mine ? "a" : "b") ||
          of_slot.standbys.size() != 1 || !of_slot.standbys[0].ready) {
        return false;
      }
    }
    return true;
  }));
  EXPECT_EQ(status.nodes.size(), 2u);
  for (int slot = 0; slot < kSlots; ++slot) {
    const SlotStatus& of_slot = status.slots[static_cast<size_t>(slot)];
    const bool mine = a.At(slot).CheckService().ok();
    EXPECT_EQ(of_slot.placement.is_mine, mine);
    EXPECT_EQ(of_slot.placement.owner, mine ? "a" : "b");
    EXPECT_EQ(of_slot.owner->node.name, mine ? "a" : "b");
    EXPECT_EQ(of_slot.standbys[0].name, mine ? "b" : "a");
    EXPECT_EQ(of_slot.standbys[0].lag_messages, 0u);
    EXPECT_EQ(of_slot.role, mine ? MemberRole::kOwner : MemberRole::kStandby);
    EXPECT_EQ(a.membership().OwnerAddress(slot), mine ? "" : "b:7600");
    const absl::Status refused = (mine ? b : a).At(slot).CheckService();
    EXPECT_EQ(ReasonOf(refused), Reason::kNotOwner);
    EXPECT_THAT(MetadataOf(refused),
                Contains(Pair("owner_address", mine ? "a:7600" : "b:7600")));
  }
}

TEST_F(MembershipTest, ANodeThatLeavesHandsOverAllSlots) {
  SlotNode a("a", &topic_, &clock_);
  ASSERT_TRUE(Await({&a}, [&] { return a.Served() == kSlots; }));
  SlotNode b("b", &topic_, &clock_);
  ASSERT_TRUE(Await({&a, &b}, [&] { return b.Served() == kSlots / 2; }));
  a.membership().Yield();
  EXPECT_TRUE(Await({&a, &b}, [&] { return b.Served() == kSlots; }));
  EXPECT_THAT(a.roles(), Contains(Pair(testing::_, MemberRole::kEnded)));
}

TEST_F(MembershipTest, ATermEndsWhatWaitsForIt) {
  SlotNode a("a", &topic_, &clock_);
  ASSERT_TRUE(Await({&a}, [&] { return a.Served() == kSlots; }));
  topic_.SetAway(true);
  std::atomic<int> answers = 0;
  a.At(1).Confirm([&](bool owns) { answers += owns ? 100 : 1; });
  absl::Status released;
  std::thread waits([&] { released = a.At(1).Release("", absl::Minutes(1)); });
  while (a.At(1).GetStatus().successor.empty() && a.At(1).HoldsLease()) {
    std::this_thread::yield();
  }
  a.membership().Renew(1);
  waits.join();
  EXPECT_TRUE(absl::IsCancelled(released)) << released;
  EXPECT_EQ(a.At(1).role(), MemberRole::kStandby);
  EXPECT_FALSE(a.At(1).HoldsLease());
  EXPECT_TRUE(a.At(2).HoldsLease());
  while (answers == 0) std::this_thread::yield();
  EXPECT_EQ(answers, 1);
  // The next term owns it in turn.
  topic_.SetAway(false);
  EXPECT_TRUE(Await({&a}, [&] { return a.Served() == kSlots; }));
}

TEST_F(MembershipTest, OneRecordConfirmsManySlots) {
  SlotNode a("a", &topic_, &clock_);
  ASSERT_TRUE(Await({&a}, [&] { return a.Served() == kSlots; }));
  // The clock stands still.
  std::atomic<int> confirmed = 0;
  for (int slot = 0; slot < kSlots; ++slot) {
    a.At(slot).Confirm([&](bool owns) { confirmed += owns; });
  }
  while (confirmed < kSlots) std::this_thread::yield();
  a.Stop();
  const ControlRecord last = topic_.entries().back().record;
  EXPECT_EQ(last.slots_size(), kSlots);
  EXPECT_EQ(last.slot_count(), static_cast<uint32_t>(kSlots));
}

TEST_F(MembershipTest, NoOwnerTrimsWhatANodeHolds) {
  SlotNode a("a", &topic_, &clock_);
  ASSERT_TRUE(Await({&a}, [&] { return a.MayTrim() == kSlots; }));
  SlotNode b("b", &topic_, &clock_);
  ASSERT_TRUE(Await({&a, &b}, [&] {
    return a.MayTrim() == kSlots / 2 && b.MayTrim() == kSlots / 2;
  }));
  // Of two holds of a node, until both have ended.
  ClusterMembership& holder = b.membership();
  const uint64_t hold = holder.BeginHold(absl::Hours(1));
  const uint64_t other = holder.BeginHold(absl::Hours(1));
  ASSERT_EQ(AwaitHold({&a, &b}, &b, hold), absl::OkStatus());
  EXPECT_EQ(a.MayTrim() + b.MayTrim(), 0);
  EXPECT_EQ(a.MaySettle() + b.MaySettle(), 0);
  ASSERT_TRUE(Await({&a, &b}, [&] {
    return a.Served() == kSlots / 2 && b.Served() == kSlots / 2;
  }));
  EXPECT_EQ(a.MayTrim() + b.MayTrim(), 0);
  holder.EndHold(other);
  ASSERT_EQ(EndCut({&a, &b}, &b, hold), absl::OkStatus());
  EXPECT_TRUE(
      Await({&a, &b}, [&] { return a.MaySettle() + b.MaySettle() == kSlots; }));
  EXPECT_EQ(a.MayTrim() + b.MayTrim(), 0);
  EXPECT_EQ(holder.CheckHold(hold), absl::OkStatus());
  holder.EndHold(hold);
  EXPECT_TRUE(
      Await({&a, &b}, [&] { return a.MayTrim() + b.MayTrim() == kSlots; }));

  // It ends with its time, and with its node.
  const uint64_t brief = holder.BeginHold(absl::Seconds(5));
  ASSERT_EQ(AwaitHold({&a, &b}, &b, brief), absl::OkStatus());
  EXPECT_EQ(a.MayTrim() + b.MayTrim(), 0);
  EXPECT_TRUE(
      Await({&a, &b}, [&] { return a.MayTrim() + b.MayTrim() == kSlots; }));
  EXPECT_TRUE(absl::IsDeadlineExceeded(holder.CheckHold(brief)));
  holder.EndHold(brief);
  const uint64_t last = holder.BeginHold(absl::Hours(1));
  ASSERT_EQ(AwaitHold({&a, &b}, &b, last), absl::OkStatus());
  b.Stop();
  EXPECT_EQ(a.MayTrim(), 0);
  EXPECT_TRUE(Await({&a}, [&] { return a.MayTrim() == kSlots; }));
}

// Nor one that has not read of it: its lease has ended.
TEST_F(MembershipTest, AHoldIsCertainOnceNoOlderLeaseRuns) {
  SlotNode a("a", &topic_, &clock_);
  ASSERT_TRUE(Await({&a}, [&] { return a.MayTrim() == kSlots; }));
  SlotNode b("b", &topic_, &clock_);
  ASSERT_TRUE(Await({&a, &b}, [&] { return b.MayTrim() == kSlots / 2; }));
  a.SetDeaf(true);
  const uint64_t hold = b.membership().BeginHold(absl::Hours(1));
  ASSERT_EQ(AwaitHold({&a, &b}, &b, hold), absl::OkStatus());
  EXPECT_EQ(a.MayTrim(), 0);
  EXPECT_EQ(a.MaySettle(), 0);
}

// So what it took for cut was not, for them.
TEST_F(MembershipTest, AHoldIsOverOnceOthersTakeItsNodeForGone) {
  SlotNode a("a", &topic_, &clock_);
  ASSERT_TRUE(Await({&a}, [&] { return a.MayTrim() == kSlots; }));
  SlotNode b("b", &topic_, &clock_);
  ASSERT_TRUE(Await({&a, &b}, [&] { return b.MayTrim() == kSlots / 2; }));
  const uint64_t hold = b.membership().BeginHold(absl::Hours(1));
  ASSERT_EQ(AwaitHold({&a, &b}, &b, hold), absl::OkStatus());
  b.SetDeaf(true);
  ASSERT_TRUE(Await({&a}, [&] { return a.MaySettle() == kSlots; }));
  b.SetDeaf(false);
  EXPECT_TRUE(absl::IsUnavailable(EndCut({&a, &b}, &b, hold)));
  EXPECT_TRUE(absl::IsUnavailable(b.membership().CheckHold(hold)));
  b.membership().EndHold(hold);
  EXPECT_TRUE(
      Await({&a, &b}, [&] { return a.MayTrim() + b.MayTrim() == kSlots; }));
}

TEST_F(MembershipTest, AHoldNeedsTheControlLog) {
  SlotNode a("a", &topic_, &clock_);
  ASSERT_TRUE(Await({&a}, [&] { return a.MayTrim() == kSlots; }));
  topic_.SetAway(true);
  const uint64_t hold = a.membership().BeginHold(absl::Hours(2));
  EXPECT_TRUE(absl::IsUnavailable(AwaitHold({&a}, &a, hold)));
}

TEST_F(MembershipTest, AClusterOfOneOwnerKnowsOfNoSlots) {
  MemoryControlLog log(&topic_);
  MemberOptions options;
  options.node = "a";
  options.incarnation = 7;
  ClusterMembership membership(options, Sharing::kOneOwner, 1, &log, &clock_,
                               nullptr, nullptr);
  membership.At(0)->SetLag(0);
  membership.Start();
  ASSERT_TRUE(Await(
      {}, [&] { return membership.At(0)->role() == MemberRole::kTakingOver; }));
  EXPECT_TRUE(membership.GetPlacement()[0].host);
  EXPECT_TRUE(membership.GetPlacement()[0].is_mine);
  for (const ControlEntry& entry : topic_.entries()) {
    const ControlRecord& record = entry.record;
    EXPECT_EQ(record.incarnation(), 7u);
    EXPECT_EQ(record.slots_size(), 0);
    EXPECT_EQ(record.slot_count(), 0u);
    EXPECT_EQ(record.cluster_takeover(), 0);
    EXPECT_GE(record.takeover(), 0);
  }
}

}  // namespace
}  // namespace timecache::server
