// How long events stay over restarts: downtime does not count.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

// "a" retains its events for an hour.
class RetentionTest : public DurableStoreTest {
 protected:
  void Restart(int64_t downtime_us) {
    LosePower();
    store_.clock().AdvanceBy(downtime_us);
    Reopen();
    store_.AdvanceBy(0);
  }
  void PutAndLetDie(const std::string& key, const std::string& name = "a") {
    const uint64_t next = store_.End(name).next_event;
    ASSERT_TRUE(store_.Put(name, key, "value").status.ok());
    store_.AdvanceBy(120 * kSecond);
    ASSERT_TRUE(Await([&] { return store_.End(name).next_event > next; }));
  }
  size_t retained(const std::string& name = "a") {
    return ReadEarliest(name).events.size();
  }
  // With a pass of time that the map has seen.
  void LiveFor(int64_t time_us) {
    store_.AdvanceBy(time_us);
    store_.AdvanceBy(0);
    ASSERT_TRUE(store_.Put("a", "alive", "").status.ok());
    ASSERT_TRUE(store_.Execute("a", Operation::Remove("alive")).status.ok());
  }
};

TEST_F(RetentionTest, DowntimeDoesNotCount) {
  ASSERT_NO_FATAL_FAILURE(PutAndLetDie("key"));
  LiveFor(1'000 * kSecond);
  Restart(100'000 * kSecond);
  EXPECT_EQ(retained(), 1u);
  store_.AdvanceBy(2'590 * kSecond);
  EXPECT_EQ(retained(), 1u);
  store_.AdvanceBy(20 * kSecond);
  EXPECT_EQ(retained(), 0u);
}

TEST_F(RetentionTest, ManyRestartsNeitherShortenNorRenewIt) {
  ASSERT_NO_FATAL_FAILURE(PutAndLetDie("key"));
  for (int i = 0; i < 35; ++i) {
    LiveFor(100 * kSecond);
    Restart(i % 3 * 5'000 * kSecond);
    ASSERT_EQ(retained(), 1u) << i;
  }
  LiveFor(110 * kSecond);
  EXPECT_EQ(retained(), 0u);
}

// What another namespace has in the journal shows that the server lived.
TEST_F(RetentionTest, UptimeOfAnIdleNamespaceCounts) {
  ASSERT_TRUE(store_.Create("b").ok());
  ASSERT_NO_FATAL_FAILURE(PutAndLetDie("key", "b"));
  for (int i = 0; i < 40; ++i) {
    store_.clock().AdvanceBy(100 * kSecond);
    ASSERT_TRUE(store_.Put("a", absl::StrCat(i), "").status.ok());
    Restart(0);
  }
  store_.AdvanceBy(60 * kSecond);
  EXPECT_EQ(retained("b"), 0u);
}

TEST_F(RetentionTest, ANamespaceWithEventsRecordsTheTime) {
  const int64_t now_us = store_.clock().NowUs();
  EXPECT_EQ(store_.map("a")->NextDueUs(now_us), kNeverUs);
  ASSERT_NO_FATAL_FAILURE(PutAndLetDie("key"));
  EXPECT_LE(store_.map("a")->NextDueUs(store_.clock().NowUs()),
            store_.clock().NowUs() + TimeCacheMap::kRetainTickUs);
}

TEST_F(RetentionTest, DeathsOfTheDowntimeAreRetainedFromTheStartOn) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  Restart(100'000 * kSecond);
  ASSERT_TRUE(Await([&] { return retained() == 1; }));
  Restart(100'000 * kSecond);
  EXPECT_EQ(retained(), 1u);
  store_.AdvanceBy(3'590 * kSecond);
  EXPECT_EQ(retained(), 1u);
  store_.AdvanceBy(20 * kSecond);
  EXPECT_EQ(retained(), 0u);
}

TEST_F(RetentionTest, AStartOnAFullDiskNeedsNoRoomForIt) {
  ASSERT_NO_FATAL_FAILURE(PutAndLetDie("key"));
  for (int i = 0; i < 3; ++i) {
    LosePower();
    store_.clock().AdvanceBy(100'000 * kSecond);
    store_.files().SetRoom(store_.files().used_bytes());
    Reopen();
    EXPECT_EQ(retained(), 1u);
  }
  store_.files().SetRoom(UINT64_MAX);
}

TEST_F(RetentionTest, OfANamespaceThatPausesToo) {
  NamespaceOptions options = DurableOptions();
  options.restart_policy = RestartPolicy::kPause;
  ASSERT_TRUE(store_.Create("p", options).ok());
  ASSERT_NO_FATAL_FAILURE(PutAndLetDie("key", "p"));
  Restart(100'000 * kSecond);
  Restart(100'000 * kSecond);
  EXPECT_EQ(retained("p"), 1u);
  store_.AdvanceBy(3'590 * kSecond);
  EXPECT_EQ(retained("p"), 1u);
  store_.AdvanceBy(20 * kSecond);
  EXPECT_EQ(retained("p"), 0u);
}

TEST_F(RetentionTest, TimesOfAnEventStayTheSame) {
  ASSERT_NO_FATAL_FAILURE(PutAndLetDie("early"));
  ASSERT_TRUE(store_.Put("a", "late", "value").status.ok());
  Restart(100'000 * kSecond);
  ASSERT_TRUE(Await([&] { return retained() == 2; }));
  const std::vector<DeliveredEvent> before = ReadEarliest().events;
  for (int i = 0; i < 2; ++i) {
    Restart(1'000 * kSecond);
    const std::vector<DeliveredEvent> after = ReadEarliest().events;
    ASSERT_EQ(after.size(), before.size());
    for (size_t j = 0; j < before.size(); ++j) {
      EXPECT_EQ(after[j].death_us, before[j].death_us);
      EXPECT_EQ(after[j].published_us, before[j].published_us);
    }
  }
}

// A watch that lags keeps events beyond their retention. It gets them, too, if
// it comes back soon after the start.
TEST_F(RetentionTest, WhatAWatchHadNotReadWaitsForItToResume) {
  for (const int64_t retention_us : {int64_t{0}, kSecond}) {
    const std::string name = absl::StrCat("n", retention_us);
    NamespaceOptions options = DurableOptions();
    options.retention_us = retention_us;
    ASSERT_TRUE(store_.Create(name, options).ok());
    LogPoint point;
    {
      const auto cursor = store_.map(name)->Subscribe(
          ExpiryLog::Start::kNow, store_.clock().NowUs(), [] {});
      point = cursor->Read(1 << 20).point;
      ASSERT_NO_FATAL_FAILURE(PutAndLetDie("unread", name));
      store_.AdvanceBy(1'000 * kSecond);
      ASSERT_TRUE(store_.Put(name, "meanwhile", "").status.ok());
      store_.Freeze(Unsynced::kDropped, &random_);
    }
    store_.Thaw();
    store_.clock().AdvanceBy(100'000 * kSecond);
    Reopen();
    store_.AdvanceBy(5 * kSecond);
    store_.AdvanceBy(0);
    Reading reading;
    EXPECT_TRUE(Await([&] {
      reading = ReadFrom(point, name);
      return reading.events.size() == 2;
    })) << reading.events.size();
    EXPECT_EQ(reading.lost, 0u);
    store_.AdvanceBy(40 * kSecond);
    EXPECT_EQ(retained(name), 0u);
  }
}

}  // namespace
}  // namespace timecache::server
