// All times of entries and events last: own TTLs apart from deadlines, due
// dates, create times.

#include <cstdint>
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::timecache::test::Await;

class EntryTimesTest : public DurableStoreTest {
 protected:
  Result Do(const Operation& op) { return store_.Execute("a", op); }
  Entry At(const std::string& key) {
    const Result get = Do(Operation::Get(key));
    EXPECT_TRUE(get.found) << key;
    return get.entry;
  }
  void Trim() {
    store_.checkpointer_options() = {.min_journal_bytes = 1, .factor = 0};
    Reopen();
    ASSERT_TRUE(Await([&] {
      store_.checkpointer().Look();
      return store_.checkpointer().GetStatistics().rounds > 0;
    }));
  }
  void FillAndAge() {
    Do(Operation::Put("own", "v").WithTtl(600 * kSecond));
    Do(Operation::Put("due", "v")
           .WithTtl(30 * kSecond)
           .ExpiringAt(kStartUs + 500 * kSecond));
    Do(Operation::Put("overwritten", "v"));
    Do(Operation::Append("log", "v"));
    store_.AdvanceBy(10 * kSecond);
    Do(Operation::Touch("own").ExpiringAt(kStartUs + 700 * kSecond));
    Do(Operation::Put("overwritten", "w"));
    Operation append = Operation::Append("log", "w");
    append.touch = true;
    Do(append.WithTtl(90 * kSecond));
  }
  void ExpectAll() {
    EXPECT_EQ(At("own").own_ttl_us, 600 * kSecond);
    EXPECT_EQ(At("own").deadline_us, kStartUs + 700 * kSecond);
    EXPECT_EQ(At("due").own_ttl_us, 30 * kSecond);
    EXPECT_EQ(At("due").deadline_us, kStartUs + 500 * kSecond);
    EXPECT_EQ(At("overwritten").own_ttl_us, 0);
    EXPECT_EQ(At("overwritten").put_us, kStartUs + 10 * kSecond);
    EXPECT_EQ(At("log").value, "vw");
    EXPECT_EQ(At("log").own_ttl_us, 90 * kSecond);
    EXPECT_EQ(At("log").deadline_us, kStartUs + 100 * kSecond);
    for (const char* key : {"own", "due", "overwritten", "log"}) {
      EXPECT_EQ(At(key).create_us, kStartUs) << key;
    }
  }
};

TEST_F(EntryTimesTest, AllTimesOutliveCrashesACheckpointAndABackup) {
  FillAndAge();
  for (const bool trims : {false, true}) {
    if (trims) Trim();
    LosePower();
    Reopen();
    ExpectAll();
  }
  ASSERT_TRUE(store_.Restore(store_.BackUp()).ok());
  Reopen();
  ExpectAll();
}

// Retained and kept events, in the journal by themselves after a checkpoint.
TEST_F(EntryTimesTest, EventsKeepTheirTimes) {
  ASSERT_TRUE(store_.map("a")
                  ->groups()
                  .Create("g", GroupOptions(), ExpiryLog::Start::kNow, kStartUs,
                          "alice")
                  .ok());
  Do(Operation::Put("key", "v").WithTtl(5 * kSecond));
  store_.AdvanceBy(kSecond);
  Do(Operation::Touch("key"));
  store_.AdvanceBy(20 * kSecond);
  for (const bool trims : {false, true}) {
    if (trims) Trim();
    LosePower();
    Reopen();
    const Reading reading = ReadEarliest();
    ASSERT_EQ(reading.events.size(), 1u);
    EXPECT_EQ(reading.events[0].create_us, kStartUs);
    EXPECT_EQ(reading.events[0].put_us, kStartUs + kSecond);
    EXPECT_EQ(reading.events[0].own_ttl_us, 5 * kSecond);
    const auto group = store_.map("a")->groups().Find("g");
    ASSERT_TRUE(group.ok());
    const auto member = (*group)->Join(10, [] {});
    const EventChunk chunk =
        member->Take(store_.clock().NowUs(), 10, int64_t{1} << 20);
    ASSERT_EQ(chunk.deliveries.size(), 1u);
    EXPECT_EQ(chunk.deliveries[0].event().create_us, kStartUs);
    EXPECT_EQ(chunk.deliveries[0].event().own_ttl_us, 5 * kSecond);
  }
}

// The same of a traceparent, of entries, retained and kept events.
TEST_F(EntryTimesTest, ATraceparentOutlivesCrashesACheckpointAndABackup) {
  ASSERT_TRUE(store_.map("a")
                  ->groups()
                  .Create("g", GroupOptions(), ExpiryLog::Start::kNow, kStartUs,
                          "alice")
                  .ok());
  Operation put = Operation::Put("traced", "v").WithTtl(5 * kSecond);
  put.SetTrace(kTraces[0]);
  Do(put);
  Do(Operation::Put("untraced", "v").WithTtl(5 * kSecond));
  Operation append = Operation::Append("log", "v").WithTtl(90 * kSecond);
  append.SetTrace(kTraces[1]);
  Do(append);
  for (const bool trims : {false, true}) {
    if (trims) Trim();
    LosePower();
    Reopen();
    Do(Operation::Append("log", "w"));
  }
  const auto traces = [&] {
    std::map<std::string, std::string> traces;
    for (const DeliveredEvent& event : ReadEarliest().events) {
      traces[event.key] = event.trace;
    }
    return traces;
  };
  std::map<std::string, std::string> expected = {
      {"traced", std::string(kTraces[0])}, {"untraced", ""}};
  store_.AdvanceBy(20 * kSecond);
  for (const bool trims : {false, true}) {
    if (trims) Trim();
    LosePower();
    Reopen();
    EXPECT_EQ(traces(), expected);
    const auto group = store_.map("a")->groups().Find("g");
    ASSERT_TRUE(group.ok());
    const auto member = (*group)->Join(10, [] {});
    const EventChunk chunk =
        member->Take(store_.clock().NowUs(), 10, int64_t{1} << 20);
    ASSERT_EQ(chunk.deliveries.size(), 2u);
    for (const Delivery& delivery : chunk.deliveries) {
      const ExpiredEvent event = delivery.event();
      EXPECT_EQ(event.trace, expected.at(std::string(event.key)));
    }
  }
  ASSERT_TRUE(store_.Restore(store_.BackUp()).ok());
  Reopen();
  store_.AdvanceBy(90 * kSecond);
  expected["log"] = std::string(kTraces[1]);
  EXPECT_EQ(traces(), expected);
}

// Its deadline is long over when it is put, and the process ends before it
// dies.
TEST_F(EntryTimesTest, APastDueDateOutlivesACrash) {
  const int64_t due_us = kStartUs - 1'000 * kSecond;
  const Result put =
      Do(Operation::Put("key", "v").ExpiringAt(due_us, /*past_too=*/true));
  ASSERT_TRUE(put.status.ok()) << put.status;
  LosePower();
  Reopen();
  store_.AdvanceBy(1);
  const Reading reading = ReadEarliest();
  ASSERT_THAT(reading.Texts(), ElementsAre("key=v"));
  EXPECT_EQ(reading.events[0].deadline_us, due_us);
  EXPECT_EQ(reading.events[0].death_us, kStartUs + 1);
  EXPECT_EQ(store_.Get("a", "key"), "(none)");
}

}  // namespace
}  // namespace timecache::server
