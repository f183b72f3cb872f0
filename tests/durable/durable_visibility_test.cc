// What calls and watches of durable maps show before it is kept.

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::timecache::test::Await;

class DurableVisibilityTest : public DurableStoreTest {
 protected:
  // Holds up the disk's syncs, and with a put of "a", which is SYNC, the
  // journal's thread: who appends then commits nothing itself.
  void HoldDisk() {
    store_.files().SetFault([this](const std::string&, uint64_t, bool sync) {
      // And what is written beside it.
      if (!sync && !held_) return absl::OkStatus();
      held_ = true;
      free_.WaitForNotification();
      return absl::OkStatus();
    });
    store_.store().Execute("a", {&put_, 1}, {&result_, 1},
                           [this](const absl::Status&) { ++freed_; });
    ASSERT_TRUE(Await([this] { return held_.load(); }));
  }
  void FreeDisk() {
    free_.Notify();
    EXPECT_TRUE(Await([this] { return freed_ == 1; }));
  }

 private:
  const Operation put_ = Operation::Put("held", "value");
  Result result_;
  absl::Notification free_;
  std::atomic<bool> held_ = false;
  std::atomic<int> freed_ = 0;
};

TEST_F(DurableVisibilityTest,
       AWatchOfExpiringEntriesDeliversThemOnceTheyAreKept) {
  absl::Notification free;
  store_.files().SetFault([&](const std::string&, uint64_t, bool sync) {
    if (sync && !free.HasBeenNotified()) free.WaitForNotification();
    return absl::OkStatus();
  });
  const Operation put = Operation::Put("key", "value");
  Result result;
  std::atomic<bool> answered = false;
  store_.store().Execute("a", {&put, 1}, {&result, 1},
                         [&](const absl::Status&) { answered = true; });
  std::atomic<int> wakes = 0;
  std::unique_ptr<EventReader> reader;
  const std::string name = "a";
  store_.store().OpenExpiring(
      {&name, 1}, {.lead_us = 3'600 * kSecond}, [&] { ++wakes; },
      [&](absl::StatusOr<Store::Readers> readers) {
        ASSERT_TRUE(readers.ok()) << readers.status();
        reader = std::move(readers->front());
      });
  const auto read = [&] {
    size_t batches = 0;
    for (bool more = true; more;) {
      const EventChunk chunk =
          reader->Read(store_.clock().NowUs(), 100, 1 << 20);
      batches += chunk.batches.size();
      more = chunk.more;
    }
    return batches;
  };
  EXPECT_EQ(read(), 0u);
  EXPECT_EQ(read(), 0u);
  const int before = wakes;
  free.Notify();
  EXPECT_TRUE(Await([&] { return answered && wakes > before; }));
  EXPECT_EQ(read(), 1u);
  EXPECT_EQ(read(), 0u);
  store_.files().SetFault(nullptr);
}

// The watch of an ASYNC namespace does not wait for the disk.
TEST_F(DurableVisibilityTest, AWatchOfChangesDeliversThemOnceTheyAreKept) {
  const auto keeps_changes = [](NamespaceOptions* options) {
    options->change_retention_us = 60 * kSecond;
    return absl::OkStatus();
  };
  Update("a", keeps_changes);
  std::unique_ptr<EventReader> reader;
  std::atomic<int> wakes = 0;
  const std::string name = "a";
  store_.store().OpenChanges(
      {&name, 1}, LogStart::kNow, {}, [&] { ++wakes; },
      [&](absl::StatusOr<Store::Readers> readers) {
        ASSERT_TRUE(readers.ok()) << readers.status();
        reader = std::move(readers->front());
      });
  const auto read = [&] {
    std::vector<std::string> keys;
    for (bool more = true; more;) {
      const EventChunk chunk =
          reader->Read(store_.clock().NowUs(), 100, 1 << 20);
      for (const auto& batch : chunk.batches) {
        for (int i = 0; i < batch->size(); ++i) {
          keys.emplace_back(batch->key(i));
        }
      }
      more = chunk.more;
    }
    return keys;
  };
  HoldDisk();
  store_.map("a")->Advance(store_.clock().NowUs());
  EXPECT_THAT(read(), ElementsAre());
  EXPECT_THAT(read(), ElementsAre());
  // A token that is given meanwhile is before them.
  const LogPoint before =
      reader->Read(store_.clock().NowUs(), 100, 1 << 20).point;
  EXPECT_NE(before.log_id, 0u);
  EXPECT_EQ(before.next_event, 1u);
  EXPECT_GT(before.watermark_us, 0);
  FreeDisk();
  EXPECT_TRUE(Await([&] { return !read().empty(); }));
  store_.files().SetFault(nullptr);
  // A log of its own after each start.
  const LogPoint point =
      reader->Read(store_.clock().NowUs(), 100, 1 << 20).point;
  reader = nullptr;
  Reopen();
  store_.store().OpenChanges(
      {&name, 1}, LogStart::kNow, {{name, point}}, [] {},
      [](absl::StatusOr<Store::Readers> readers) {
        EXPECT_EQ(ReasonOf(readers.status()), Reason::kLogChanged);
      });
  EXPECT_EQ(
      store_.map("a")->GetStatistics(store_.clock().NowUs()).changes_retained,
      0u);
}

// Its token is good after a crash that takes back the put of the held disk,
// which died before it, and gives another event its number.
TEST_F(DurableVisibilityTest, AWatchFromNowBeginsBehindWhatIsKept) {
  ASSERT_TRUE(store_.Put("a", "kept", "v").status.ok());
  HoldDisk();
  store_.clock().AdvanceBy(62 * kSecond);
  LogPoint begin;
  {
    const auto cursor = store_.map("a")->Subscribe(
        ExpiryLog::Start::kNow, store_.clock().NowUs(), [] {});
    begin = cursor->Read(1 << 20).point;
  }
  store_.Freeze(Unsynced::kDropped, &random_);
  FreeDisk();
  store_.Thaw();
  Reopen();
  ASSERT_TRUE(store_.Put("a", "later", "v").status.ok());
  store_.AdvanceBy(62 * kSecond);
  EXPECT_THAT(ReadFrom(begin).Texts(), ElementsAre("kept=v", "later=v"));
}

// What it answers may be lost with the power anyway.
TEST_F(DurableVisibilityTest, AReadOfAnAsyncMapDoesNotWaitForTheDisk) {
  ASSERT_TRUE(
      store_.Create("n", DurableOptions(NamespaceDurability::kAsync)).ok());
  HoldDisk();
  std::atomic<int> answered = 0;
  const std::vector<Operation> operations = {Operation::Put("key", "value"),
                                             Operation::Get("key")};
  std::vector<Result> results(operations.size());
  store_.store().Execute("n", operations, absl::MakeSpan(results),
                         [&](const absl::Status&) { ++answered; });
  EXPECT_EQ(store_.Get("n", "key"), "value");
  EXPECT_TRUE(store_.Execute("n", Operation::Contains("key")).found);
  EXPECT_EQ(answered, 0);
  FreeDisk();
  EXPECT_TRUE(Await([&] { return answered == 1; }));
  store_.files().SetFault(nullptr);
}

// Also of what was recorded before, of which no keys are known.
TEST_F(DurableVisibilityTest,
       NoClientSeesWhatACrashCouldTakeBackOfAMapThatBecomesSync) {
  const NamespaceOptions async = DurableOptions(NamespaceDurability::kAsync);
  ASSERT_TRUE(store_.Create("n", async).ok());
  HoldDisk();
  std::atomic<int> answered = 0;
  const auto count = [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    ++answered;
  };
  // One is on its way, one waits for that.
  const Operation puts[] = {Operation::Put("key", "value"),
                            Operation::Put("later", "value")};
  const Operation gets[] = {Operation::Get("key"), Operation::Get("later")};
  Result results[4];
  for (size_t i = 0; i < 2; ++i) {
    store_.store().Execute("n", {&puts[i], 1}, {&results[i], 1}, count);
  }
  store_.store().UpdateNamespace(
      "n",
      [](NamespaceOptions* options) {
        options->durability = NamespaceDurability::kSync;
        return absl::OkStatus();
      },
      [&](const absl::StatusOr<NamespaceInfo>& info) { count(info.status()); });
  for (size_t i = 0; i < 2; ++i) {
    store_.store().Execute("n", {&gets[i], 1}, {&results[2 + i], 1}, count);
  }
  EXPECT_EQ(answered, 0);
  FreeDisk();
  EXPECT_TRUE(Await([&] { return answered == 5; }));
  EXPECT_EQ(results[3].entry.value, "value");
  EXPECT_EQ(store_.Get("n", "none"), "(none)");
  store_.files().SetFault(nullptr);
}

}  // namespace
}  // namespace timecache::server
