// A durable store with a namespace "a", for the tests of what lasts.

#ifndef TIMECACHED_TESTS_DURABLE_DURABLE_STORE_FIXTURE_H_
#define TIMECACHED_TESTS_DURABLE_DURABLE_STORE_FIXTURE_H_

#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/journal/durable_store.h"
#include "tests/support/journal/journal_harness.h"

namespace timecache::server {

using Unsynced = MemoryFileSystem::Unsynced;

class DurableStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SCOPED_TRACE(absl::StrCat("TIMECACHED_SEED=", Seed()));
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

  // Operations of "a", by what refused them.
  uint64_t Refused(LimitHit hit) {
    return store_.map("a")
        ->GetStatistics(store_.clock().NowUs())
        .refused[static_cast<size_t>(hit)];
  }

  DurableStore store_;
  std::mt19937_64 random_{Seed()};
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_DURABLE_DURABLE_STORE_FIXTURE_H_
