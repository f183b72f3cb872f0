// A durable store with a namespace "a", for the tests of what lasts.

#ifndef TIMECACHED_TESTS_DURABLE_DURABLE_STORE_FIXTURE_H_
#define TIMECACHED_TESTS_DURABLE_DURABLE_STORE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/local_readers.h"
#include "tests/support/await.h"
#include "tests/support/effort.h"
#include "tests/support/engine/group_harness.h"
#include "tests/support/journal/durable_store.h"
#include "tests/support/journal/journal_harness.h"

namespace timecache::server {

using Unsynced = MemoryFileSystem::Unsynced;

class DurableStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SCOPED_TRACE(absl::StrCat("TIMECACHED_SEED=", test::Seed()));
    ASSERT_TRUE(store_.Open().ok());
    ASSERT_TRUE(store_.Create("a").ok());
  }
  void LosePower() { store_.LosePower(Unsynced::kDropped, &random_); }
  void Reopen() {
    const absl::Status status = store_.Open();
    ASSERT_TRUE(status.ok()) << status;
  }
  Reading ReadFrom(LogPoint point, const std::string& name = "a") {
    auto cursor =
        store_.map(name)->Resume(point, store_.clock().NowUs(), [] {});
    EXPECT_TRUE(cursor.ok()) << cursor.status();
    return cursor.ok() ? ReadAll(cursor->get()) : Reading();
  }
  Reading ReadEarliest(const std::string& name = "a") {
    const auto cursor = store_.map(name)->Subscribe(
        ExpiryLog::Start::kEarliest, store_.clock().NowUs(), [] {});
    return ReadAll(cursor.get());
  }

  // What comes behind the point, or the reason why it is refused.
  std::vector<std::string> From(const LogPoint& point,
                                const std::string& name = "a") {
    auto cursor =
        store_.map(name)->Resume(point, store_.clock().NowUs(), [] {});
    if (!cursor.ok()) return {std::string(ReasonNameOf(cursor.status()))};
    return ReadAll(cursor->get()).Texts();
  }
  // An entry of this key dies, and is delivered.
  void Die(const std::string& key, const std::string& name = "a") {
    ASSERT_TRUE(store_.Put(name, key, "v").status.ok());
    const uint64_t end = store_.End(name).next_event + 1;
    store_.AdvanceBy(62 * kSecond);
    ASSERT_TRUE(
        test::Await([&] { return store_.End(name).next_event >= end; }));
  }
  // In one batch of "a".
  std::vector<Result> ExecuteAll(const std::vector<Operation>& operations) {
    std::vector<Result> results(operations.size());
    absl::Notification done;
    store_.store().Execute("a", operations, absl::MakeSpan(results),
                           [&](const absl::Status& status) {
                             EXPECT_TRUE(status.ok()) << status;
                             done.Notify();
                           });
    done.WaitForNotification();
    return results;
  }
  void Update(const std::string& name, OptionsChange<NamespaceOptions> change) {
    absl::Notification done;
    store_.store().UpdateNamespace(name, std::move(change),
                                   [&](const auto&) { done.Notify(); });
    done.WaitForNotification();
  }
  void Delete(const std::string& name) {
    absl::Notification done;
    store_.store().DeleteNamespace(name,
                                   [&](const absl::Status&) { done.Notify(); });
    done.WaitForNotification();
  }
  // A member of the group "g", which is made if it is not there.
  std::unique_ptr<EventReader> JoinGroup(const std::string& name = "a") {
    Membership member;
    member.group = "g";
    auto reader = JoinGroupReader(store_.map(name), member,
                                  store_.clock().NowUs(), [] {});
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? *std::move(reader) : nullptr;
  }
  absl::Status Settle(const std::string& name, const Delivery& delivery,
                      SettleAction action = SettleAction::kAck) {
    const Settlement settlement = SettlementOf(delivery, action);
    SettleResult result;
    absl::Status status;
    absl::Notification done;
    store_.store().Settle({name, "g"}, {&settlement, 1}, {&result, 1},
                          [&](absl::Status settled) {
                            status = std::move(settled);
                            done.Notify();
                          });
    done.WaitForNotification();
    return status.ok() ? result.status : status;
  }

  // Operations of "a", by what refused them.
  uint64_t Refused(LimitHit hit) {
    return store_.map("a")
        ->GetStatistics(store_.clock().NowUs())
        .refused[static_cast<size_t>(hit)];
  }

  DurableStore store_;
  std::mt19937_64 random_{test::Seed()};
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_DURABLE_DURABLE_STORE_FIXTURE_H_
