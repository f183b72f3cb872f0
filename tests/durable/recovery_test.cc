// What a recovery costs while it runs, and how soon it can be ended.

#include "server/durable/recovery.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/memory_budget.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

using RecoveryTest = DurableStoreTest;

// Events that the server dropped for their memory: a tick says so only later.
TEST_F(RecoveryTest, ARecoveryKeepsToTheLimitOfMemory) {
  MemoryBudget& memory = MemoryBudget::Process();
  constexpr int64_t kLimitBytes = int64_t{16} << 20;
  constexpr int kEntries = 5'000;
  const std::string value(1'000, 'v');
  memory.SetLimit(kLimitBytes);
  int64_t most = 0;
  for (int round = 0; round < 6; ++round) {
    std::vector<std::string> keys;
    for (int i = 0; i < kEntries; ++i) {
      keys.push_back(absl::StrCat(round, "/", i));
    }
    std::vector<Operation> puts;
    for (const std::string& key : keys) {
      puts.push_back(Operation::Put(key, value));
    }
    for (auto at = puts.begin(); at != puts.end(); at += 100) {
      const std::vector<Result> results = ExecuteAll({at, at + 100});
      ASSERT_TRUE(results[99].status.ok()) << results[99].status;
      most = std::max(most, memory.used_bytes());
    }
    // All at once, as after a downtime.
    store_.AdvanceBy(120 * kSecond);
  }
  // Less what one reclaiming drops, from its high mark to below its low one: a
  // few KiB that are in use beside the events decide when the last one was.
  const size_t retained = ReadEarliest().events.size() * 3 / 4;
  store_.Crash();
  int64_t recovery_most = 0;
  store_.recovery_options().cancelled = [&] {
    recovery_most = std::max(recovery_most, memory.used_bytes());
    return false;
  };
  store_.recovery_options().threads = 1;
  Reopen();
  EXPECT_GE(ReadEarliest().events.size(), retained);
  EXPECT_GT(most, kLimitBytes / 2);
  EXPECT_LT(recovery_most, kLimitBytes + (int64_t{2} << 20));
  memory.SetLimit(0);
}

// SIGTERM does not wait for a record, or for what died at once.
TEST_F(RecoveryTest, ARecoveryLooksWhetherItIsCancelledWithinARecord) {
  constexpr int kEntries = 40'000;
  std::vector<std::string> keys;
  for (int i = 0; i < kEntries; ++i) keys.push_back(absl::StrCat(i));
  std::vector<Operation> puts;
  for (const std::string& key : keys) puts.push_back(Operation::Put(key, "v"));
  ExecuteAll(puts);
  store_.AdvanceBy(120 * kSecond);
  ASSERT_TRUE(Await([&] {
    return ReadEarliest().events.size() == static_cast<size_t>(kEntries);
  }));
  store_.Close();
  RecoveryOptions& options = store_.recovery_options();
  options.progress_records = options.progress_bytes = 1 << 30;
  std::atomic<int> looks = 0;
  options.cancelled = [&] {
    ++looks;
    return false;
  };
  Reopen();
  const int all = looks;
  EXPECT_GT(all, kEntries / 256 + kEntries / 16'384);
  for (int end = 1; end < all; end += all / 5) {
    store_.Close();
    looks = 0;
    options.cancelled = [&] { return ++looks >= end; };
    EXPECT_TRUE(absl::IsCancelled(store_.Open()));
  }
  store_.Close();
  options.cancelled = nullptr;
  Reopen();
  EXPECT_EQ(ReadEarliest().events.size(), static_cast<size_t>(kEntries));
}

}  // namespace
}  // namespace timecache::server
