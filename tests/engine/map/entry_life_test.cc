// Entries with a time until which they live: what is refused, and times that are
// past. The rest is checked beside the reference model.

#include <algorithm>
#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;

class EntryLifeTest : public ::testing::Test {
 protected:
  MapHarness harness_{Tens()};
};

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

TEST_F(EntryLifeTest, WhatExcludesEachOtherIsAnError) {
  Operation kept = Operation::Put("a", "v").ExpiringAt(kStartUs + kSecond);
  kept.keep_deadline = true;
  EXPECT_EQ(FieldOf(harness_.Apply(kept).status), "keep_deadline");
  kept = Operation::Put("a", "v").WithTtl(kSecond);
  kept.keep_deadline = true;
  EXPECT_EQ(FieldOf(harness_.Apply(kept).status), "keep_deadline");
  Operation past = Operation::Put("a", "v");
  past.allow_past = true;
  EXPECT_EQ(FieldOf(harness_.Apply(past).status), "allow_past");
  Operation touch = Operation::Touch("a").WithTtl(kSecond);
  touch.namespace_ttl = true;
  EXPECT_EQ(FieldOf(harness_.Apply(touch).status), "namespace_ttl");
}

// Whatever renews it or takes its place.
TEST_F(EntryLifeTest, NoRenewalReachesBeyondTheMaxLife) {
  NamespaceOptions options = Tens();
  options.max_life_us = 25 * kSecond;
  options.sliding = true;
  harness_.Update(options);
  const int64_t last_us = kStartUs + options.max_life_us;
  const auto deadline_us = [this](absl::string_view key) {
    return harness_.ScanAll()[std::string(key)].deadline_us;
  };
  harness_.PutFor("long", "v", 40 * kSecond);
  EXPECT_EQ(deadline_us("long"), last_us);
  for (const char* key : {"get", "touch", "put", "append"}) {
    harness_.Put(key, "v");
  }
  for (int i = 0; i < 3; ++i) {
    harness_.Pass(8 * kSecond);
    harness_.Get("get");
    harness_.Apply(Operation::Touch("touch"));
    harness_.Put("put", "w");
    Operation append = Operation::Append("append", "w");
    append.touch = true;
    harness_.Apply(append);
    for (const char* key : {"get", "touch", "put", "append"}) {
      EXPECT_EQ(deadline_us(key),
                std::min(harness_.now_us() + 10 * kSecond, last_us));
    }
  }
  harness_.GoTo(last_us);
  EXPECT_EQ(harness_.Entries(), 0);
  harness_.Put("put", "again");
  EXPECT_EQ(deadline_us("put"), last_us + 10 * kSecond);
}

TEST_F(EntryLifeTest, ARenewalInTheLastBucketEndsALifeThatIsUsedUp) {
  NamespaceOptions options = Tens();
  options.max_life_us = 10 * kSecond + 1;
  harness_.Update(options);
  harness_.PutFor("a", "v", 20 * kSecond);
  harness_.Pass(options.max_life_us + 1);
  EXPECT_TRUE(harness_.Contains("a"));
  EXPECT_TRUE(harness_.Apply(Operation::Touch("a")).found);
  harness_.Pass(1);
  EXPECT_FALSE(harness_.Contains("a"));
}

TEST_F(EntryLifeTest, AShorterMaxLifeTakesNoDeadlineAway) {
  harness_.PutFor("a", "v", 60 * kSecond);
  NamespaceOptions options = Tens();
  options.max_life_us = 20 * kSecond;
  harness_.Update(options);
  harness_.Pass(30 * kSecond);
  harness_.Apply(Operation::Touch("a").WithTtl(50 * kSecond));
  EXPECT_EQ(harness_.ScanAll()["a"].deadline_us, kStartUs + 60 * kSecond);
  harness_.Apply(Operation::Touch("a").WithTtl(5 * kSecond));
  EXPECT_EQ(harness_.ScanAll()["a"].deadline_us, kStartUs + 35 * kSecond);
  harness_.Apply(Operation::Touch("a").WithTtl(7 * kSecond));
  EXPECT_EQ(harness_.ScanAll()["a"].deadline_us, kStartUs + 35 * kSecond);
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
  const int64_t put_us = harness_.now_us();
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

// A value that grows where it lies, whose header no longer fits.
TEST_F(EntryLifeTest, AnAppendWithOtherTimesKeepsTheValue) {
  std::string value;
  for (int i = 0; i < 60; ++i) {
    Operation append = Operation::Append("a", "piece");
    append.touch = i % 2 == 1;
    harness_.Apply(i % 7 == 3 ? append.WithTtl(4 * kSecond) : append);
    value += "piece";
    ASSERT_EQ(harness_.Get("a"), value);
    ASSERT_EQ(harness_.ScanAll().at("a").create_us, kStartUs);
    harness_.Pass(kSecond / 8);
  }
}

}  // namespace
}  // namespace timecache::server
