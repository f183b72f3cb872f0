// How long an entry lives: its own TTL, the time until which it was put, and
// since when its key has been there.

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/store/gathered_parts.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;

class EntryLifeTest : public ::testing::Test {
 protected:
  // The entry of `key` as a scan finds it, which renews nothing.
  Entry At(const std::string& key) { return harness_.ScanAll().at(key); }
  Result Touch(const std::string& key) {
    return harness_.Apply(Operation::Touch(key));
  }
  int64_t now_us() { return harness_.now_us(); }

  MapHarness harness_{Tens()};
};

TEST_F(EntryLifeTest, ADueDateIsTheDeadlineOfThisLifeAlone) {
  const int64_t due_us = kStartUs + 25 * kSecond;
  harness_.Apply(Operation::Put("a", "v").ExpiringAt(due_us));
  EXPECT_EQ(At("a").deadline_us, due_us);
  EXPECT_EQ(At("a").own_ttl_us, 0);
  harness_.Pass(3 * kSecond);
  Touch("a");
  EXPECT_EQ(At("a").deadline_us, now_us() + 10 * kSecond);
}

TEST_F(EntryLifeTest, ATtlBesideADueDateIsWhatARenewalGives) {
  const int64_t due_us = kStartUs + 25 * kSecond;
  harness_.Apply(
      Operation::Put("a", "v").WithTtl(4 * kSecond).ExpiringAt(due_us));
  EXPECT_EQ(At("a").deadline_us, due_us);
  EXPECT_EQ(At("a").own_ttl_us, 4 * kSecond);
  Touch("a");
  EXPECT_EQ(At("a").deadline_us, now_us() + 4 * kSecond);
}

TEST_F(EntryLifeTest, ATouchUntilATimeKeepsTheOwnTtl) {
  harness_.PutFor("a", "v", 4 * kSecond);
  harness_.Apply(Operation::Touch("a").ExpiringAt(kStartUs + 9 * kSecond));
  EXPECT_EQ(At("a").deadline_us, kStartUs + 9 * kSecond);
  EXPECT_EQ(At("a").own_ttl_us, 4 * kSecond);
  harness_.Apply(Operation::Touch("a")
                     .WithTtl(6 * kSecond)
                     .ExpiringAt(kStartUs + 9 * kSecond));
  EXPECT_EQ(At("a").own_ttl_us, 6 * kSecond);
  harness_.Pass(kSecond);
  Touch("a");
  EXPECT_EQ(At("a").deadline_us, now_us() + 6 * kSecond);
}

TEST_F(EntryLifeTest, EachRenewalGivesTheOwnTtl) {
  const Gathering gathering = [] {
    Gathering g;
    EXPECT_TRUE(g.Set("part", 3, {}).ok());
    return g;
  }();
  const Gathering other = [] {
    Gathering g;
    EXPECT_TRUE(g.Set("other", 3, {}).ok());
    return g;
  }();
  const int64_t own_us = 20 * kSecond;
  harness_.PutFor("get", "v", own_us);
  harness_.PutFor("append", "v", own_us);
  harness_.PutFor("combine", "1", own_us);
  harness_.Apply(Operation::Gather("gather", &gathering, "v").WithTtl(own_us));
  harness_.Pass(15 * kSecond);
  for (Operation op : {Operation::Get("get"), Operation::Append("append", "w"),
                       Operation::Combine("combine", Combination::kAdd, 1),
                       Operation::Gather("gather", &other, "w")}) {
    op.touch = true;
    const Result result = harness_.Apply(op);
    EXPECT_TRUE(result.status.ok()) << result.status;
    const Entry entry = At(std::string(op.key));
    EXPECT_EQ(entry.deadline_us, now_us() + own_us) << op.key;
    EXPECT_EQ(entry.own_ttl_us, own_us) << op.key;
    EXPECT_EQ(entry.create_us, kStartUs) << op.key;
  }
}

TEST_F(EntryLifeTest, APutHasNoOwnTtlButItsOwn) {
  harness_.PutFor("a", "v", 4 * kSecond);
  harness_.Put("a", "w");
  EXPECT_EQ(At("a").own_ttl_us, 0);
  EXPECT_EQ(At("a").deadline_us, now_us() + 10 * kSecond);
}

TEST_F(EntryLifeTest, KeepDeadlineKeepsAllTimes) {
  harness_.Apply(Operation::Put("a", "v")
                     .WithTtl(4 * kSecond)
                     .ExpiringAt(kStartUs + 25 * kSecond));
  harness_.Pass(kSecond);
  Operation put = Operation::Put("a", "w");
  put.keep_deadline = true;
  harness_.Apply(put);
  const Entry entry = At("a");
  EXPECT_EQ(entry.value, "w");
  EXPECT_EQ(entry.put_us, kStartUs);
  EXPECT_EQ(entry.create_us, kStartUs);
  EXPECT_EQ(entry.deadline_us, kStartUs + 25 * kSecond);
  EXPECT_EQ(entry.own_ttl_us, 4 * kSecond);
}

TEST_F(EntryLifeTest, TheKeyIsThereSinceItsFirstPut) {
  harness_.Put("a", "v");
  harness_.Pass(kSecond);
  harness_.Put("a", "w");
  EXPECT_EQ(At("a").create_us, kStartUs);
  harness_.Pass(kSecond);
  Touch("a");
  EXPECT_EQ(At("a").create_us, kStartUs);
  EXPECT_EQ(At("a").put_us, now_us());
  harness_.Pass(kSecond);
  harness_.Apply(Operation::Append("a", "x"));
  EXPECT_EQ(At("a").create_us, kStartUs);
}

TEST_F(EntryLifeTest, ARemovalOrADeathBeginsAnew) {
  harness_.Put("removed", "v");
  harness_.Put("dead", "v");
  harness_.Pass(kSecond);
  harness_.Apply(Operation::Remove("removed"));
  harness_.Put("removed", "w");
  EXPECT_EQ(At("removed").create_us, now_us());
  harness_.Pass(10 * kSecond);
  harness_.Put("dead", "w");
  EXPECT_EQ(At("dead").create_us, now_us());
}

TEST_F(EntryLifeTest, EventsTellTheOwnTtlAndTheCreateTime) {
  harness_.PutFor("a", "v", 4 * kSecond);
  harness_.Pass(kSecond);
  Touch("a");
  harness_.Put("b", "v");
  harness_.Pass(20 * kSecond);
  const Reading reading = harness_.ReadEvents();
  ASSERT_EQ(reading.events.size(), 2u);
  EXPECT_EQ(reading.events[0].own_ttl_us, 4 * kSecond);
  EXPECT_EQ(reading.events[0].create_us, kStartUs);
  EXPECT_EQ(reading.events[0].put_us, kStartUs + kSecond);
  EXPECT_EQ(reading.events[1].own_ttl_us, 0);
  EXPECT_EQ(reading.events[1].create_us, kStartUs + kSecond);
}

TEST_F(EntryLifeTest, APastDueDateIsAnErrorThatNamesIt) {
  for (const int64_t due_us : {kStartUs, kStartUs - 1, -kStartUs}) {
    for (const Operation& op :
         {Operation::Put("a", "v"), Operation::Touch("a")}) {
      const Result result = harness_.Apply(op.ExpiringAt(due_us));
      EXPECT_EQ(FieldOf(result.status), "expire_at") << result.status;
    }
  }
  EXPECT_EQ(harness_.Entries(), 0);
}

TEST_F(EntryLifeTest, ADueDateIsAtMostTheMaxTtlAway) {
  NamespaceOptions options = Tens();
  options.max_ttl_us = 60 * kSecond;
  harness_.Update(options);
  const Operation put = Operation::Put("a", "v");
  EXPECT_TRUE(
      harness_.Apply(put.ExpiringAt(kStartUs + 60 * kSecond)).status.ok());
  const Result late =
      harness_.Apply(put.ExpiringAt(kStartUs + 60 * kSecond + 1));
  EXPECT_EQ(FieldOf(late.status), "expire_at") << late.status;
}

TEST_F(EntryLifeTest, WhatExcludesADueDateIsAnError) {
  Operation kept = Operation::Put("a", "v").ExpiringAt(kStartUs + kSecond);
  kept.keep_deadline = true;
  EXPECT_EQ(FieldOf(harness_.Apply(kept).status), "keep_deadline");
  Operation past = Operation::Put("a", "v");
  past.allow_past = true;
  EXPECT_EQ(FieldOf(harness_.Apply(past).status), "allow_past");
}

// At the moment after its put, at which no death can have been published.
TEST_F(EntryLifeTest, WhatIsPutWithAPastDueDateDiesAtOnce) {
  harness_.Put("other", "v");
  harness_.Pass(kSecond);
  harness_.Sweep();
  const int64_t due_us = kStartUs - 3 * kHour;
  const Result put =
      harness_.Apply(Operation::Put("a", "v").ExpiringAt(due_us, true));
  ASSERT_TRUE(put.status.ok()) << put.status;
  EXPECT_NE(put.version, 0u);
  EXPECT_THAT(harness_.ReadEvents().Texts(), ElementsAre());
  const int64_t put_us = now_us();
  harness_.Pass(1);
  EXPECT_FALSE(harness_.Contains("a"));
  EXPECT_EQ(harness_.Entries(), 1);
  const Reading reading = harness_.ReadEvents();
  ASSERT_THAT(reading.Texts(), ElementsAre("a=v"));
  const DeliveredEvent& event = reading.events[0];
  EXPECT_EQ(event.cause, Cause::kExpired);
  EXPECT_EQ(event.version, put.version);
  EXPECT_EQ(event.put_us, put_us);
  EXPECT_EQ(event.create_us, put_us);
  EXPECT_EQ(event.deadline_us, due_us);
  EXPECT_EQ(event.death_us, put_us + 1);
  EXPECT_EQ(reading.watermark_us, put_us + 1);
}

TEST_F(EntryLifeTest, ATouchWithAPastDueDateKillsTheEntry) {
  harness_.PutFor("a", "v", 4 * kSecond);
  harness_.Pass(kSecond);
  const Result touch =
      harness_.Apply(Operation::Touch("a").ExpiringAt(kStartUs, true));
  EXPECT_TRUE(touch.found);
  harness_.Pass(1);
  const Reading reading = harness_.ReadEvents();
  ASSERT_THAT(reading.Texts(), ElementsAre("a=v"));
  EXPECT_EQ(reading.events[0].deadline_us, kStartUs);
  EXPECT_EQ(reading.events[0].create_us, kStartUs);
  EXPECT_EQ(reading.events[0].own_ttl_us, 4 * kSecond);
  EXPECT_EQ(harness_.Entries(), 0);
}

// Someone else's time is later than that of the operation.
TEST_F(EntryLifeTest, ADueDateThatHasPassedMeanwhileIsNoError) {
  EXPECT_FALSE(
      harness_.map().Apply(Operation::Get("a"), kStartUs + 5 * kSecond).found);
  const Result put = harness_.map().Apply(
      Operation::Put("a", "v").ExpiringAt(kStartUs + kSecond), kStartUs);
  EXPECT_TRUE(put.status.ok()) << put.status;
  harness_.Pass(6 * kSecond);
  const Reading reading = harness_.ReadEvents();
  ASSERT_EQ(reading.events.size(), 1u);
  EXPECT_EQ(reading.events[0].deadline_us, kStartUs + kSecond);
}

TEST_F(EntryLifeTest, ManyPastDueDatesDieInOrder) {
  for (int i = 0; i < 100; ++i) {
    harness_.Apply(Operation::Put("k" + std::to_string(i), "v")
                       .ExpiringAt(kStartUs - i * kSecond, true));
    harness_.Pass(i % 3);
    if (i % 10 == 0) harness_.Sweep();
  }
  harness_.Pass(1);
  const Reading reading = harness_.ReadEvents();
  ASSERT_EQ(reading.events.size(), 100u);
  int64_t last_us = 0;
  for (const DeliveredEvent& event : reading.events) {
    EXPECT_GE(event.death_us, last_us);
    EXPECT_GT(event.death_us, event.put_us);
    last_us = event.death_us;
  }
}

// A value that grows where it lies, whose header no longer fits.
TEST_F(EntryLifeTest, AnAppendWithOtherTimesKeepsTheValue) {
  std::string value;
  for (int i = 0; i < 60; ++i) {
    Operation append = Operation::Append("a", "piece");
    append.touch = i % 2 == 1;
    harness_.Apply(i % 7 == 3 ? append.WithTtl(4 * kSecond) : append);
    value += "piece";
    ASSERT_EQ(harness_.Get("a"), value);
    ASSERT_EQ(At("a").create_us, kStartUs);
    harness_.Pass(kSecond / 8);
  }
}

}  // namespace
}  // namespace timecache::server
