// Consumer groups of durable maps: what members get outlives a crash.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

class DurableGroupsTest : public DurableStoreTest {
 protected:
  std::unique_ptr<EventReader> Join() {
    std::unique_ptr<EventReader> reader;
    absl::Notification done;
    const std::string name = "a";
    store_.store().JoinGroups(
        {&name, 1}, {.group = "g", .max_in_flight = 100, .created_by = "me"},
        [] {},
        [&](absl::StatusOr<Store::Readers> readers) {
          if (readers.ok()) reader = std::move(readers->front());
          done.Notify();
        });
    done.WaitForNotification();
    EXPECT_NE(reader, nullptr);
    return reader;
  }
  EventChunk Take(EventReader* reader, int max_events = 100) {
    return reader->Read(store_.clock().NowUs(), max_events, 1 << 20);
  }
  absl::Status Settle(const Settlement& settlement) {
    SettleResult result;
    absl::Status status;
    absl::Notification done;
    store_.store().Settle({"a", "g"}, {&settlement, 1}, {&result, 1},
                          [&](const absl::Status& settled) {
                            status = settled;
                            done.Notify();
                          });
    done.WaitForNotification();
    return status.ok() ? result.status : status;
  }
  // In two buckets.
  void PutAndLetDie() {
    ASSERT_TRUE(store_.Put("a", "early", std::string(100, 'v')).status.ok());
    store_.AdvanceBy(2 * kSecond);
    ASSERT_TRUE(store_.Put("a", "late", "value").status.ok());
    store_.AdvanceBy(120 * kSecond);
    ASSERT_TRUE(Await([&] { return ReadEarliest().events.size() == 2; }));
  }
  // Syncs wait for Free.
  void Hold() {
    store_.files().SetFault([this](const std::string&, uint64_t, bool sync) {
      if (sync && holds_) free_.WaitForNotification();
      return absl::OkStatus();
    });
  }
  void Free() {
    if (holds_.exchange(false)) free_.Notify();
  }
  void TearDown() override {
    Free();
    store_.files().SetFault(nullptr);
  }
  std::shared_ptr<ConsumerGroup> group() {
    return store_.map("a")->groups().Find("g").value();
  }

  std::vector<Delivery> held_;
  std::atomic<bool> holds_ = true;
  absl::Notification free_;
};

// However the attempt before ended.
TEST_F(DurableGroupsTest, TheNumberOfAnAttemptDoesNotGoBack) {
  auto one = Join();
  PutAndLetDie();
  ASSERT_EQ(Take(one.get()).deliveries.size(), 2u);
  std::pair<int, int> last_number = {1, 0};
  for (const char* how : {"timed out", "returned", "nacked"}) {
    SCOPED_TRACE(how);
    // Whose member takes it as soon as it can.
    auto other = Join();
    if (how[0] == 't') {
      store_.clock().AdvanceBy(GroupOptions().ack_timeout_us + kSecond);
    } else if (how[0] == 'r') {
      one = nullptr;
    } else {
      std::vector<Settlement> nacks;
      for (const Delivery& delivery : held_) {
        nacks.push_back(SettlementOf(delivery, SettleAction::kNack));
      }
      std::vector<SettleResult> results(nacks.size());
      ASSERT_TRUE(store_.map("a")
                      ->groups()
                      .Settle("g", nacks, store_.clock().NowUs(),
                              absl::MakeSpan(results))
                      .ok());
    }
    EventChunk chunk;
    ASSERT_TRUE(Await([&] {
      chunk = Take(other.get());
      return !chunk.deliveries.empty();
    }));
    // At once: what is not on its way to the disk is lost.
    store_.Freeze();
    const auto number = [&chunk] {
      return std::pair(chunk.deliveries[0].attempt,
                       chunk.deliveries[0].returns);
    };
    const auto first = number();
    EXPECT_GT(first, last_number);
    one = nullptr;
    other = nullptr;
    store_.Thaw();
    Reopen();
    one = Join();
    ASSERT_TRUE(Await([&] {
      chunk = Take(one.get());
      return !chunk.deliveries.empty();
    }));
    ASSERT_EQ(chunk.deliveries.size(), 2u);
    EXPECT_GE(number(), first);
    last_number = number();
    held_ = chunk.deliveries;
  }
}

TEST_F(DurableGroupsTest, AMemberThatWaitsForTheDiskLearnsThatItsGroupIsGone) {
  auto one = Join();
  PutAndLetDie();
  ASSERT_EQ(Take(one.get()).deliveries.size(), 2u);
  const auto other = Join();
  Hold();
  // Which returns them.
  one = nullptr;
  const EventChunk chunk = Take(other.get());
  EXPECT_TRUE(chunk.deliveries.empty());
  EXPECT_FALSE(chunk.closed);
  ASSERT_TRUE(store_.map("a")->groups().Delete("g").ok());
  EXPECT_TRUE(Take(other.get()).closed);
  Free();
}

TEST_F(DurableGroupsTest, AWatermarkPassesASettlementOnceThatIsKept) {
  const auto reader = Join();
  PutAndLetDie();
  const EventChunk chunk = Take(reader.get());
  ASSERT_EQ(chunk.deliveries.size(), 2u);
  const int64_t early_us = chunk.deliveries[0].batch->death_us();
  EXPECT_LT(chunk.watermark_us, early_us);
  Hold();
  const Settlement ack = SettlementOf(chunk.deliveries[0]);
  SettleResult result;
  ASSERT_TRUE(store_.map("a")
                  ->groups()
                  .Settle("g", {&ack, 1}, store_.clock().NowUs(), {&result, 1})
                  .ok());
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_LT(Take(reader.get()).watermark_us, early_us);
  EXPECT_LT(Take(reader.get()).watermark_us, early_us);
  Free();
  EXPECT_TRUE(
      Await([&] { return Take(reader.get()).watermark_us >= early_us; }));
}

// Its joining is a change that is not kept yet.
TEST_F(DurableGroupsTest, AMemberGetsTheWatermarkOfBeforeARestartAtOnce) {
  auto reader = Join();
  PutAndLetDie();
  const int64_t before_us = Take(reader.get()).watermark_us;
  reader = nullptr;
  // That no member uses the group is kept before this.
  store_.AdvanceBy(kSecond);
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  LosePower();
  Reopen();
  Hold();
  const auto member = group()->Join(/*max_in_flight=*/100, [] {});
  ASSERT_TRUE(group()->BeginKeeping());
  const EventChunk chunk =
      member->Take(store_.clock().NowUs(), 100, int64_t{1} << 20);
  EXPECT_EQ(chunk.deliveries.size(), 2u);
  EXPECT_EQ(chunk.watermark_us, before_us);
  group()->EndKeeping(false);
}

TEST_F(DurableGroupsTest, AWatermarkIsATimeWhereNothingIsKnownYet) {
  Hold();
  store_.clock().AdvanceBy(kSecond);
  const auto member = store_.map("a")
                          ->groups()
                          .FindOrCreate("g", ExpiryLog::Start::kEarliest,
                                        store_.clock().NowUs(), "me")
                          .value()
                          ->Join(/*max_in_flight=*/100, [] {});
  ASSERT_TRUE(group()->BeginKeeping());
  EXPECT_GE(member->Take(store_.clock().NowUs(), 100, 1 << 20).watermark_us, 0);
  group()->EndKeeping(false);
  EXPECT_GE(ReadEarliest().watermark_us, 0);
}

TEST_F(DurableGroupsTest, ALossIsReportedOnceItIsKept) {
  auto reader = Join();
  PutAndLetDie();
  Hold();
  ASSERT_TRUE(group()->DropBacklog(EventHolder::Kind::kBacklog, 1));
  ASSERT_EQ(group()->GetStatistics().lost, 1u);
  EXPECT_EQ(Take(reader.get(), 0).lost, 0u);
  EXPECT_EQ(Take(reader.get(), 0).lost, 0u);
  Free();
  uint64_t lost = 0;
  EXPECT_TRUE(Await([&] { return (lost += Take(reader.get(), 0).lost) > 0; }));
  EXPECT_EQ(lost, 1u);
  EXPECT_EQ(Take(reader.get(), 0).lost, 0u);
}

// A loss that was reported and not kept would be reported again.
TEST_F(DurableGroupsTest, ALossThatACrashTakesBackWasNotReported) {
  auto reader = Join();
  PutAndLetDie();
  Hold();
  ASSERT_TRUE(group()->DropBacklog(EventHolder::Kind::kBacklog, 1));
  const uint64_t lost = Take(reader.get(), 0).lost;
  store_.Freeze(Unsynced::kDropped, &random_);
  Free();
  reader = nullptr;
  store_.Thaw();
  Reopen();
  reader = Join();
  const EventChunk chunk = Take(reader.get());
  EXPECT_EQ(chunk.deliveries.size() + chunk.lost + lost, 2u);
}

// It is a put: the reserve is not for it.
TEST_F(DurableGroupsTest, AFullDiskRefusesToPutBackAndTheEventStaysUnsettled) {
  store_.options().reserve_bytes = 100'000;
  Reopen();
  const auto reader = Join();
  PutAndLetDie();
  const EventChunk chunk = Take(reader.get());
  ASSERT_EQ(chunk.deliveries.size(), 2u);
  store_.files().SetRoom(store_.files().used_bytes());
  ASSERT_TRUE(store_.Put("a", "key", "from the reserve").status.ok());
  ASSERT_TRUE(store_.journal().low_space());
  Settlement settlement =
      SettlementOf(chunk.deliveries[0], SettleAction::kPutBack);
  EXPECT_EQ(ReasonOf(Settle(settlement)), Reason::kDiskFull);
  EXPECT_EQ(Refused(LimitHit::kDiskFull), 1u);
  EXPECT_EQ(group()->GetStatistics().in_flight, 2u);
  settlement.action = SettleAction::kAck;
  EXPECT_TRUE(Settle(settlement).ok());
  store_.files().SetRoom(UINT64_MAX);
}

}  // namespace
}  // namespace timecache::server
