#include "server/cluster/control_state.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using cluster::v1::CONTROL_KIND_HEARTBEAT;
using cluster::v1::CONTROL_KIND_RELEASE;
using cluster::v1::CONTROL_KIND_TAKEOVER;
using cluster::v1::ControlKind;
using testing::ElementsAre;

// A log, written at chosen times, and its state.
class ControlStateTest : public testing::Test {
 protected:
  static ControlRecord Record(ControlKind kind, const std::string& node) {
    ControlRecord record;
    record.set_kind(kind);
    record.set_node(node);
    record.set_incarnation(7);
    record.set_address(node + ":7600");
    record.set_lease_us(1'000'000);
    record.set_failure_timeout_us(2'000'000);
    record.set_ready(true);
    return record;
  }
  void Append(const ControlRecord& record) {
    state_.Apply(offset_++, now_ms_, record);
  }
  void Heartbeat(const std::string& node) {
    Append(Record(CONTROL_KIND_HEARTBEAT, node));
  }
  void HeartbeatReading(const std::string& node, int64_t read_offset) {
    ControlRecord record = Record(CONTROL_KIND_HEARTBEAT, node);
    record.set_read_offset(read_offset);
    Append(record);
  }
  // Whether it counts.
  bool TakeOver(const std::string& node, int64_t replaces) {
    ControlRecord record = Record(CONTROL_KIND_TAKEOVER, node);
    record.set_takeover(replaces);
    Append(record);
    return state_.takeover() == offset_;
  }
  void Release(const std::string& node, int64_t takeover,
               const std::string& successor) {
    ControlRecord record = Record(CONTROL_KIND_RELEASE, node);
    record.set_takeover(takeover);
    record.set_owns(true);
    record.set_successor(successor);
    Append(record);
  }
  // The node says that it lives, four times a second.
  void Pass(int64_t ms, const std::string& node) {
    for (; ms > 0; ms -= 250) {
      now_ms_ += std::min<int64_t>(ms, 250);
      Heartbeat(node);
    }
  }
  std::string Owner() const {
    const auto owner = state_.owner();
    return owner ? owner->node.name : "";
  }
  std::vector<std::string> Live() const {
    std::vector<std::string> live;
    state_.VisitLive(
        [&](const ControlRecord& record) { live.push_back(record.node()); });
    return live;
  }

  ControlState state_;
  int64_t offset_ = 0;
  int64_t now_ms_ = 1'800'000'000'000;
};

TEST_F(ControlStateTest, TheFirstTakeoverCounts) {
  EXPECT_TRUE(TakeOver("a", 0));
  EXPECT_FALSE(TakeOver("b", 0));
  EXPECT_FALSE(TakeOver("b", 1));
  EXPECT_EQ(Owner(), "a");
  EXPECT_TRUE(state_.IsOwner("a", 7));
  EXPECT_FALSE(state_.IsOwner("a", 8));
}

TEST_F(ControlStateTest, ANodeIsGoneAfterItsFailureTimeout) {
  ASSERT_TRUE(TakeOver("a", 0));
  Pass(1'999, "b");
  EXPECT_THAT(Live(), ElementsAre("a", "b"));
  EXPECT_FALSE(TakeOver("b", 1));
  now_ms_ += 1;
  EXPECT_TRUE(TakeOver("b", 1));
  EXPECT_THAT(Live(), ElementsAre("b"));
}

TEST_F(ControlStateTest, AnyRecordIsASignOfLife) {
  ASSERT_TRUE(TakeOver("a", 0));
  Pass(1'500, "b");
  Append(Record(static_cast<ControlKind>(99), "a"));
  Pass(1'500, "b");
  EXPECT_FALSE(TakeOver("b", 1));
  EXPECT_THAT(Live(), ElementsAre("a", "b"));
}

TEST_F(ControlStateTest, TimeWithoutRecordsCountsAsTwoHeartbeats) {
  ASSERT_TRUE(TakeOver("a", 0));
  now_ms_ += 3'600'000;
  EXPECT_FALSE(TakeOver("b", 1));
  EXPECT_EQ(state_.owner()->node.silence, absl::Milliseconds(500));
  Heartbeat("a");
  EXPECT_EQ(state_.owner()->node.silence, absl::ZeroDuration());
}

TEST_F(ControlStateTest, ABrokersClockThatGoesBackCountsAsNothing) {
  ASSERT_TRUE(TakeOver("a", 0));
  now_ms_ -= 10'000;
  Heartbeat("b");
  EXPECT_EQ(state_.owner()->node.silence, absl::ZeroDuration());
  now_ms_ += 100;
  Heartbeat("b");
  EXPECT_EQ(state_.owner()->node.silence, absl::Milliseconds(100));
}

TEST_F(ControlStateTest, ATakeoverThatArrivesLateDoesNothing) {
  ASSERT_TRUE(TakeOver("a", 0));
  Pass(2'000, "b");
  ASSERT_TRUE(TakeOver("b", 1));
  Pass(2'000, "c");
  // Sent when `a` was the one to be replaced.
  EXPECT_FALSE(TakeOver("c", 1));
  EXPECT_EQ(Owner(), "b");
}

TEST_F(ControlStateTest, AReleaseEndsOwnershipAtOnce) {
  ASSERT_TRUE(TakeOver("a", 0));
  Release("a", 1, "");
  EXPECT_TRUE(state_.owner()->released);
  EXPECT_TRUE(TakeOver("b", 1));
  EXPECT_FALSE(state_.owner()->released);
}

TEST_F(ControlStateTest, AReleaseIsForItsSuccessorWhileThatOneLives) {
  ASSERT_TRUE(TakeOver("a", 0));
  Heartbeat("b");
  Release("a", 1, "b");
  EXPECT_FALSE(TakeOver("c", 1));
  EXPECT_TRUE(TakeOver("b", 1));
  const int64_t takeover = state_.takeover();
  Release("b", takeover, "nobody");
  EXPECT_TRUE(TakeOver("c", takeover));
}

TEST_F(ControlStateTest, AReleaseOfAnotherTakeoverDoesNothing) {
  ASSERT_TRUE(TakeOver("a", 0));
  Release("b", 1, "");
  Release("a", 0, "");
  EXPECT_FALSE(state_.owner()->released);
}

// The log is read from its middle on.
TEST_F(ControlStateTest, AnOwnerOfATrimmedLogIsKnownByItsHeartbeats) {
  offset_ = 1'000;
  ControlRecord old = Record(CONTROL_KIND_HEARTBEAT, "old");
  old.set_takeover(100);
  old.set_owns(true);
  Append(old);
  EXPECT_EQ(Owner(), "old");
  ControlRecord record = Record(CONTROL_KIND_HEARTBEAT, "a");
  record.set_takeover(700);
  record.set_owns(true);
  record.set_owner_since_ms(5'000);
  Append(record);
  Append(old);
  EXPECT_EQ(Owner(), "a");
  EXPECT_EQ(state_.takeover(), 700);
  EXPECT_EQ(state_.owner()->since, absl::FromUnixSeconds(5));
  Release("a", 700, "");
  Append(record);
  EXPECT_TRUE(state_.owner()->released);
}

TEST_F(ControlStateTest, ATrimmedLogWithoutAnOwnerIsTakenAfterSilence) {
  offset_ = 1'000;
  EXPECT_FALSE(TakeOver("a", 0));
  Pass(2'000, "a");
  EXPECT_TRUE(TakeOver("a", 0));
}

// A record of an owner that was replaced long ago arrives late.
TEST_F(ControlStateTest, StandbysOfATrimmedLogKnowOfALaterTakeover) {
  offset_ = 1'000;
  ControlRecord old = Record(CONTROL_KIND_HEARTBEAT, "old");
  old.set_takeover(100);
  old.set_owns(true);
  Append(old);
  Pass(2'000, "b");
  ControlRecord record = Record(CONTROL_KIND_HEARTBEAT, "b");
  record.set_takeover(700);
  Append(record);
  EXPECT_EQ(Owner(), "");
  EXPECT_FALSE(TakeOver("b", 100));
  EXPECT_FALSE(TakeOver("b", 700));
  Pass(2'000, "b");
  EXPECT_TRUE(TakeOver("b", 700));
}

TEST_F(ControlStateTest, ATakeoverThatIsNotInTheLogIsNotBelieved) {
  Heartbeat("b");
  ControlRecord record = Record(CONTROL_KIND_HEARTBEAT, "a");
  record.set_takeover(700);
  record.set_owns(true);
  Append(record);
  EXPECT_EQ(Owner(), "");
}

TEST_F(ControlStateTest, ARecordWithoutANodeIsIgnored) {
  EXPECT_FALSE(TakeOver("", 0));
  EXPECT_THAT(state_.view().nodes, testing::IsEmpty());
}

// "a" owns and reads nothing after its takeover.
TEST_F(ControlStateTest, ANodeThatDoesNotReadIsGone) {
  ASSERT_TRUE(TakeOver("a", 0));
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(Live(), testing::Contains("a")) << i;
    EXPECT_FALSE(TakeOver("b", 1));
    now_ms_ += 250;
    HeartbeatReading("a", 1);
    HeartbeatReading("b", offset_);
  }
  EXPECT_THAT(Live(), ElementsAre("b"));
  EXPECT_EQ(state_.owner()->node.silence, absl::ZeroDuration());
  EXPECT_EQ(state_.owner()->node.unread, absl::Milliseconds(2'500));
  EXPECT_TRUE(TakeOver("b", 1));
}

TEST_F(ControlStateTest, WhoeverDoesNotReadTakesNothingOver) {
  ASSERT_TRUE(TakeOver("a", 0));
  Release("a", 1, "");
  now_ms_ += 500;
  HeartbeatReading("b", 2);
  for (int i = 0; i < 8; ++i) {
    now_ms_ += 250;
    HeartbeatReading("c", offset_);
  }
  ControlRecord late = Record(CONTROL_KIND_TAKEOVER, "b");
  late.set_takeover(1);
  late.set_read_offset(2);
  Append(late);
  EXPECT_EQ(state_.takeover(), 1);
  late.set_read_offset(offset_);
  Append(late);
  EXPECT_EQ(state_.takeover(), offset_);
}

TEST_F(ControlStateTest, NoNodeIsGoneWhileNoneReads) {
  ASSERT_TRUE(TakeOver("a", 0));
  for (int i = 0; i < 20; ++i) {
    now_ms_ += 250;
    HeartbeatReading("a", 1);
    HeartbeatReading("b", 1);
  }
  EXPECT_THAT(Live(), ElementsAre("a", "b"));
}

TEST_F(ControlStateTest, TheViewSaysWhatEachNodeSaid) {
  ASSERT_TRUE(TakeOver("b", 0));
  now_ms_ += 100;
  ControlRecord record = Record(CONTROL_KIND_HEARTBEAT, "a");
  record.set_version("1.2");
  record.set_lag_messages(5);
  record.set_lag_age_us(1'500'000);
  Append(record);
  const ControlState::View view = state_.view();
  ASSERT_EQ(view.nodes.size(), 2);
  EXPECT_EQ(view.nodes[0].name, "a");
  EXPECT_EQ(view.nodes[0].address, "a:7600");
  EXPECT_EQ(view.nodes[0].version, "1.2");
  EXPECT_EQ(view.nodes[0].lag_messages, 5);
  EXPECT_EQ(view.nodes[0].lag_age, absl::Milliseconds(1'500));
  EXPECT_EQ(view.nodes[1].lag_messages, std::nullopt);
  EXPECT_EQ(view.nodes[1].lag_age, std::nullopt);
  EXPECT_EQ(view.nodes[1].silence, absl::Milliseconds(100));
  EXPECT_EQ(view.owner->node.name, "b");
  EXPECT_EQ(view.owner->takeover, 1);
}

TEST_F(ControlStateTest, AnotherProcessOfANameReplacesItOnceItIsGone) {
  Heartbeat("a");
  ControlRecord record = Record(CONTROL_KIND_HEARTBEAT, "a");
  record.set_incarnation(8);
  Append(record);
  EXPECT_EQ(state_.view().nodes.size(), 2);
  Pass(2'000, "b");
  Append(record);
  EXPECT_EQ(state_.view().nodes.size(), 2);
  EXPECT_THAT(Live(), ElementsAre("a", "b"));
}

TEST_F(ControlStateTest, WhereANameHasTermsTheNextReplacesItAtOnce) {
  ControlState state(/*one_of_a_name=*/true);
  ControlRecord record = Record(CONTROL_KIND_TAKEOVER, "a");
  state.Apply(0, now_ms_, record);
  record.set_kind(CONTROL_KIND_HEARTBEAT);
  record.set_incarnation(8);
  state.Apply(1, now_ms_, record);
  ASSERT_EQ(state.view().nodes.size(), 1);
  EXPECT_EQ(state.view().nodes[0].incarnation, 8);
  // It owns until it is replaced, all the same.
  EXPECT_TRUE(state.IsOwner("a", 7));
  EXPECT_EQ(state.live_owner()->incarnation(), 7);
}

TEST_F(ControlStateTest, WhileItIsClosedNoTakeoverCounts) {
  state_.SetClosed(true);
  EXPECT_FALSE(TakeOver("a", 0));
  state_.SetClosed(false);
  EXPECT_TRUE(TakeOver("a", 0));
}

TEST_F(ControlStateTest, RemembersABoundedNumberOfNodes) {
  ASSERT_TRUE(TakeOver("owner", 0));
  for (int i = 0; i < 1'000; ++i) {
    now_ms_ += 1;
    Heartbeat("n" + std::to_string(i));
  }
  EXPECT_EQ(state_.view().nodes.size(), ControlState::kMaxNodes);
  EXPECT_EQ(Owner(), "owner");
  Pass(absl::ToInt64Milliseconds(ControlState::kForgetAfter), "a");
  EXPECT_EQ(state_.view().nodes.size(), 1);
  EXPECT_EQ(Owner(), "owner");
}

}  // namespace
}  // namespace timecache::server
