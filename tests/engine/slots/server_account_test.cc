#include "server/engine/server_account.h"

#include <memory>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

class ServerAccountTest : public testing::Test {
 protected:
  static NamespaceOptions Options() { return WithBuckets(10 * kSecond, 11); }
  absl::Status Put(TimeCacheMap* map, const std::string& key) {
    return map->Apply(Operation::Put(key, "v"), clock_.NowUs()).status;
  }

  ManualClock clock_{kStartUs};
  Reaper reaper_{&clock_};
  const std::shared_ptr<ServerAccount> account_ =
      std::make_shared<ServerAccount>(
          RegistryLimits{.max_namespaces = 2, .max_entries = 2});
  Registry one_{&clock_, &reaper_, account_};
  std::optional<Registry> two_{std::in_place, &clock_, &reaper_, account_};
};

TEST_F(ServerAccountTest, LimitsHoldForAllThatShareIt) {
  const auto a = *one_.Create("a", Options());
  const auto b = *two_->Create("b", Options());
  EXPECT_EQ(ReasonOf(one_.Create("c", Options()).status()),
            Reason::kMaxNamespaces);
  EXPECT_TRUE(Put(a.get(), "1").ok());
  EXPECT_TRUE(Put(b.get(), "1").ok());
  EXPECT_EQ(ReasonOf(Put(a.get(), "2")), Reason::kServerMaxEntries);
  EXPECT_TRUE(
      account_->SetLimits({.max_namespaces = 3, .max_entries = 3}).ok());
  EXPECT_TRUE(Put(a.get(), "2").ok());
  EXPECT_TRUE(one_.Create("c", Options()).ok());
}

TEST_F(ServerAccountTest, WhatARegistryHadGoesWithIt) {
  const auto a = *one_.Create("a", Options());
  auto b = *two_->Create("b", Options());
  EXPECT_TRUE(Put(b.get(), "1").ok());
  EXPECT_TRUE(Put(b.get(), "2").ok());
  EXPECT_FALSE(Put(a.get(), "1").ok());
  two_.reset();
  EXPECT_EQ(account_->namespaces(), 1);
  // As long as it is held.
  EXPECT_EQ(account_->usage()->entries(), 2);
  b = nullptr;
  EXPECT_EQ(account_->usage()->entries(), 0);
  EXPECT_TRUE(Put(a.get(), "1").ok());
  EXPECT_TRUE(one_.Create("c", Options()).ok());
}

TEST_F(ServerAccountTest, WhatAStandbyRebuildsCountsOnceItIsServed) {
  const auto a = *one_.Create("a", Options());
  const auto rebuilt = two_->Make("b", Options(), {});
  for (const char* key : {"1", "2", "3"}) {
    EXPECT_TRUE(Put(rebuilt.get(), key).ok()) << key;
  }
  EXPECT_EQ(account_->usage()->entries(), 0);
  EXPECT_EQ(account_->namespaces(), 1);
  EXPECT_TRUE(Put(a.get(), "1").ok());
  ASSERT_TRUE(two_->Add(rebuilt).ok());
  EXPECT_EQ(account_->usage()->entries(), 4);
  EXPECT_EQ(account_->usage()->bytes(), 8);
  EXPECT_EQ(account_->namespaces(), 2);
  EXPECT_EQ(ReasonOf(Put(a.get(), "2")), Reason::kServerMaxEntries);
  EXPECT_EQ(ReasonOf(Put(rebuilt.get(), "4")), Reason::kServerMaxEntries);
  rebuilt->Apply(Operation::Remove("1"), clock_.NowUs());
  EXPECT_EQ(account_->usage()->entries(), 3);
}

}  // namespace
}  // namespace timecache::server
