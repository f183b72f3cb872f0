// Deleted namespaces, and lists of them with their statistics.
#include "server/engine/map_bin.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/memory_budget.h"
#include "server/engine/local_store.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

std::unique_ptr<TimeCacheMap> MapOf(int entries) {
  auto map = std::make_unique<TimeCacheMap>(
      "map", WithBuckets(10 * kSecond, 11), nullptr, kStartUs);
  for (int i = 0; i < entries; ++i) {
    map->Apply(Operation::Put(absl::StrCat("key", i), std::string(100, 'v')),
               kStartUs);
  }
  return map;
}

TEST(MapBinTest, FreesLargeMapsAndSmallOnes) {
  const int64_t before = MemoryBudget::Process().used_bytes();
  MapBin bin;
  bin.Free(MapOf(10));
  EXPECT_LE(MemoryBudget::Process().used_bytes(), before);
  for (int i = 0; i < 4; ++i) bin.Free(MapOf(50'000));
  bin.Close();
  EXPECT_LE(MemoryBudget::Process().used_bytes(), before);
  // Later ones, too.
  bin.Free(MapOf(50'000));
  EXPECT_LE(MemoryBudget::Process().used_bytes(), before);
}

TEST(ListNamespacesTest, APageOfStatisticsEndsBehindManyShards) {
  constexpr int kNamespaces = 40;
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  Registry registry(&clock, &reaper, RegistryLimits());
  LocalStore store(&registry, &clock);
  NamespaceOptions options = WithBuckets(10 * kSecond, 11);
  options.num_shards = 256;
  for (int i = 0; i < kNamespaces; ++i) {
    ASSERT_TRUE(registry.Create(absl::StrCat("ns-", 10 + i), options).ok());
  }
  const auto list = [&](ListQuery query) {
    Page<NamespaceInfo> page;
    store.ListNamespaces(std::move(query), [&](auto found) {
      ASSERT_TRUE(found.ok());
      page = *std::move(found);
    });
    return page;
  };
  EXPECT_EQ(list({}).items.size(), size_t{kNamespaces});
  std::string after;
  int pages = 0;
  size_t namespaces = 0;
  for (bool more = true; more; ++pages) {
    ListQuery query;
    query.after = after;
    query.include_statistics = true;
    const auto page = list(std::move(query));
    ASSERT_FALSE(page.items.empty());
    EXPECT_LE(page.items.size(), 16u);
    namespaces += page.items.size();
    after = page.items.back().name;
    more = page.more;
  }
  EXPECT_EQ(namespaces, size_t{kNamespaces});
  EXPECT_EQ(pages, 3);
}

}  // namespace
}  // namespace timecache::server
