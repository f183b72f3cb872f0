// The thread around the decisions, and what its callers ask.

#include "server/cluster/member.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/cluster/fake_boot_clock.h"
#include "tests/support/cluster/memory_control_log.h"

namespace timecache::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// A member and what it said.
class TestNode {
 public:
  TestNode(const std::string& name, MemoryControlTopic* topic,
           const BootClock* clock)
      : log_(topic) {
    MemberOptions options;
    options.node = name;
    options.incarnation = 1;
    options.address = name + ":7600";
    member_ = std::make_unique<Member>(
        options, &log_, clock,
        [this](MemberRole role) {
          absl::MutexLock lock(&mu_);
          roles_.push_back(role);
        },
        [this](const MemberEvent& event) {
          absl::MutexLock lock(&mu_);
          events_.push_back(event.kind);
        });
    member_->SetLag(0);
    member_->Start();
  }

  Member& member() { return *member_; }
  MemoryControlLog& log() { return log_; }
  void Stop() { member_.reset(); }
  std::vector<MemberRole> roles() const {
    absl::MutexLock lock(&mu_);
    return roles_;
  }
  bool Said(MemberEvent::Kind kind) const {
    absl::MutexLock lock(&mu_);
    return std::find(events_.begin(), events_.end(), kind) != events_.end();
  }

 private:
  MemoryControlLog log_;
  mutable absl::Mutex mu_;
  std::vector<MemberRole> roles_ ABSL_GUARDED_BY(mu_);
  std::vector<MemberEvent::Kind> events_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Member> member_;
};

class MemberTest : public testing::Test {
 protected:
  // Time passes by a few milliseconds for each look, until it is so.
  template <typename Condition>
  bool Await(Condition condition) {
    for (int i = 0; i < 20'000; ++i) {
      if (condition()) return true;
      clock_.Pass(absl::Milliseconds(2));
      std::this_thread::yield();
      absl::MutexLock lock(&mu_);
      wake_.WaitFor(&mu_, std::chrono::microseconds(200));
    }
    return false;
  }
  bool AwaitRole(TestNode* node, MemberRole role) {
    return Await([&] { return node->member().role() == role; });
  }
  // While time passes.
  template <typename Call>
  absl::Status Finish(Call call) {
    std::atomic<bool> done = false;
    absl::Status status;
    std::thread thread([&] {
      status = call();
      done = true;
    });
    Await([&] { return done.load(); });
    thread.join();
    return status;
  }
  void Own(TestNode* node) {
    ASSERT_TRUE(AwaitRole(node, MemberRole::kTakingOver));
    ASSERT_TRUE(Finish([&] { return node->member().AwaitFormerLease(); }).ok());
    node->member().BeginService();
    ASSERT_TRUE(Await([&] { return node->member().CheckService().ok(); }));
  }

  FakeBootClock clock_;
  MemoryControlTopic topic_{&clock_};
  absl::Mutex mu_;
  SteadyCondVar wake_;
};

TEST_F(MemberTest, ServesFromBeginServiceToEndServiceWhileTheLeaseHolds) {
  TestNode a("a", &topic_, &clock_);
  ASSERT_TRUE(AwaitRole(&a, MemberRole::kTakingOver));
  ASSERT_TRUE(Finish([&] { return a.member().AwaitFormerLease(); }).ok());
  EXPECT_TRUE(Await([&] { return a.member().HoldsLease(); }));
  const absl::Status before = a.member().CheckService();
  EXPECT_EQ(before.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(before), Reason::kNotOwner);
  Own(&a);
  EXPECT_EQ(a.member().role(), MemberRole::kOwner);

  topic_.SetAway(true);
  EXPECT_TRUE(Await([&] { return !a.member().HoldsLease(); }));
  EXPECT_FALSE(a.member().CheckService().ok());
  EXPECT_TRUE(Await([&] { return a.Said(MemberEvent::Kind::kLeaseLate); }));
  topic_.SetAway(false);
  EXPECT_TRUE(Await([&] { return a.member().CheckService().ok(); }));
  EXPECT_TRUE(a.Said(MemberEvent::Kind::kLeaseRenewed));

  a.member().EndService();
  EXPECT_FALSE(a.member().CheckService().ok());
  EXPECT_TRUE(Await([&] { return a.member().HoldsLease(); }));
}

TEST_F(MemberTest, AStandbyNamesTheOwner) {
  TestNode a("a", &topic_, &clock_);
  Own(&a);
  TestNode b("b", &topic_, &clock_);
  EXPECT_TRUE(Await([&] {
    return MetadataOf(b.member().CheckService()).contains("owner_address");
  }));
  EXPECT_THAT(MetadataOf(b.member().CheckService()),
              ElementsAre(Pair("owner_address", "a:7600")));
  EXPECT_EQ(b.member().role(), MemberRole::kStandby);
  const Member::Status status = b.member().GetStatus();
  EXPECT_EQ(status.view.owner->node.name, "a");
  EXPECT_EQ(status.waits_for, "");
}

TEST_F(MemberTest, HandsOverAndEnds) {
  TestNode a("a", &topic_, &clock_);
  Own(&a);
  EXPECT_EQ(a.member().CheckSuccessor("").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(a.member().Release("b", absl::Seconds(60)).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Await([&] { return a.member().CheckService().ok(); }));
  TestNode b("b", &topic_, &clock_);
  ASSERT_TRUE(Await([&] { return a.member().CheckSuccessor("b").ok(); }));

  a.member().EndService();
  EXPECT_THAT(MetadataOf(a.member().CheckService()),
              ElementsAre(Pair("owner_address", "b:7600")));
  EXPECT_TRUE(
      Finish([&] { return a.member().Release("b", absl::Seconds(60)); }).ok());
  EXPECT_FALSE(a.member().HoldsLease());
  EXPECT_EQ(a.member().role(), MemberRole::kEnded);
  EXPECT_THAT(MetadataOf(a.member().CheckService()),
              ElementsAre(Pair("owner_address", "b:7600")));
  ASSERT_TRUE(AwaitRole(&b, MemberRole::kTakingOver));
  EXPECT_THAT(MetadataOf(b.member().CheckService()), IsEmpty());
  Own(&b);
  EXPECT_TRUE(Await([&] {
    return a.roles() == std::vector<MemberRole>{MemberRole::kTakingOver,
                                                MemberRole::kOwner,
                                                MemberRole::kEnded};
  }));
  EXPECT_FALSE(a.Said(MemberEvent::Kind::kFenced));
  EXPECT_FALSE(b.member().CheckSuccessor("a").ok());
}

TEST_F(MemberTest, ANodeThatLeavesIsChosenOnlyWhereNoOtherIsReady) {
  TestNode a("a", &topic_, &clock_);
  Own(&a);
  TestNode b("b", &topic_, &clock_);
  TestNode c("c", &topic_, &clock_);
  ASSERT_TRUE(Await([&] {
    return a.member().CheckSuccessor("b").ok() &&
           a.member().CheckSuccessor("c").ok();
  }));
  b.member().Yield();
  EXPECT_TRUE(Await([&] { return !a.member().CheckSuccessor("b").ok(); }));
  // Also when the owner is gone without a word, though it is the first by name.
  a.Stop();
  ASSERT_TRUE(AwaitRole(&c, MemberRole::kTakingOver));
  EXPECT_EQ(b.member().role(), MemberRole::kStandby);
  c.Stop();
  EXPECT_TRUE(AwaitRole(&b, MemberRole::kTakingOver));
}

TEST_F(MemberTest, ANodeWithAnotherJournalDoesNotTakeOver) {
  TestNode a("a", &topic_, &clock_);
  a.member().SetJournal(1);
  Own(&a);
  TestNode b("b", &topic_, &clock_);
  b.member().SetJournal(2);
  const auto waits = [&] { return b.member().GetStatus().waits_for; };
  EXPECT_TRUE(Await([&] {
    return absl::StrContains(waits(), "lacks what the cluster held");
  }));
  EXPECT_TRUE(Await([&] { return !a.member().CheckSuccessor("b").ok(); }));
  a.Stop();
  EXPECT_TRUE(Await([&] {
    const auto owner = b.member().GetStatus().view.owner;
    return owner.has_value() && owner->node.gone;
  }));
  EXPECT_EQ(b.member().role(), MemberRole::kStandby);
  b.member().SetJournal(1);
  EXPECT_TRUE(AwaitRole(&b, MemberRole::kTakingOver));
}

TEST_F(MemberTest, AReleaseWithoutAStandbyIsToAny) {
  TestNode a("a", &topic_, &clock_);
  Own(&a);
  EXPECT_TRUE(
      Finish([&] { return a.member().Release("", absl::Seconds(60)); }).ok());
  EXPECT_EQ(topic_.entries().back().record.successor(), "");
}

TEST_F(MemberTest, AReleaseThatNoBrokerTakesTimesOut) {
  TestNode a("a", &topic_, &clock_);
  Own(&a);
  topic_.SetAway(true);
  EXPECT_EQ(a.member().Release("", absl::Milliseconds(1)).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(a.member().HoldsLease());
}

TEST_F(MemberTest, AStandbyTakesOverFromANodeThatIsGone) {
  TestNode a("a", &topic_, &clock_);
  Own(&a);
  TestNode b("b", &topic_, &clock_);
  ASSERT_TRUE(Await([&] { return a.member().CheckSuccessor("b").ok(); }));
  a.Stop();
  Own(&b);
  EXPECT_TRUE(b.Said(MemberEvent::Kind::kTakeover));
}

TEST_F(MemberTest, ALogThatIsLostEndsTheRole) {
  TestNode a("a", &topic_, &clock_);
  Own(&a);
  topic_.Lose(absl::DataLossError("made anew"));
  EXPECT_TRUE(AwaitRole(&a, MemberRole::kEnded));
  EXPECT_FALSE(a.member().CheckService().ok());
  EXPECT_EQ(a.member().AwaitFormerLease().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(Await([&] { return a.Said(MemberEvent::Kind::kLogLost); }));
}

// What Member::Confirm said.
struct Confirmation {
  std::atomic<bool> done{false};
  std::atomic<bool> owns{false};

  static std::shared_ptr<Confirmation> Of(TestNode* node) {
    auto confirmation = std::make_shared<Confirmation>();
    node->member().Confirm([confirmation](bool owns) {
      confirmation->owns = owns;
      confirmation->done = true;
    });
    return confirmation;
  }
};

TEST_F(MemberTest, AConfirmationIsOfARecordThatWasSentAfterIt) {
  TestNode a("a", &topic_, &clock_);
  Own(&a);
  // What was sent before it comes back alone.
  a.log().SetDeaf(true);
  const size_t before = topic_.entries().size();
  EXPECT_TRUE(Await([&] { return topic_.entries().size() > before; }));
  topic_.SetAway(true);
  const auto confirmation = Confirmation::Of(&a);
  a.log().SetDeaf(false);
  EXPECT_TRUE(Await([&] { return !a.member().HoldsLease(); }));
  EXPECT_FALSE(confirmation->done);
  topic_.SetAway(false);
  EXPECT_TRUE(Await([&] { return confirmation->done.load(); }));
  EXPECT_TRUE(confirmation->owns);
}

TEST_F(MemberTest, AConfirmationDoesNotWaitForAHeartbeat) {
  TestNode a("a", &topic_, &clock_);
  Own(&a);
  // The clock stands still.
  for (int i = 0; i < 100; ++i) {
    const auto confirmation = Confirmation::Of(&a);
    while (!confirmation->done) std::this_thread::yield();
    EXPECT_TRUE(confirmation->owns);
  }
}

// It has not read yet that another one has taken over.
TEST_F(MemberTest, AFormerOwnerIsNotConfirmed) {
  TestNode a("a", &topic_, &clock_);
  Own(&a);
  TestNode b("b", &topic_, &clock_);
  ASSERT_TRUE(Await([&] { return a.member().CheckSuccessor("b").ok(); }));
  a.log().SetDeaf(true);
  Own(&b);
  const auto confirmation = Confirmation::Of(&a);
  const size_t before = topic_.entries().size();
  EXPECT_TRUE(Await([&] { return topic_.entries().size() > before + 8; }));
  EXPECT_FALSE(confirmation->done);
  EXPECT_EQ(a.member().role(), MemberRole::kOwner);
  a.log().SetDeaf(false);
  EXPECT_TRUE(Await([&] { return confirmation->done.load(); }));
  EXPECT_FALSE(confirmation->owns);
}

}  // namespace
}  // namespace timecache::server
