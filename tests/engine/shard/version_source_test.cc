// Versions of many shards and maps, and over restarts.

#include "server/engine/shard/version_source.h"

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

// 2026-11-22 and 2054-09-01.
constexpr int64_t kSourceNowUs = 1'795'305'600 * kSecond;
constexpr int64_t kLastUs = 2'671'920'000 * kSecond;

TEST(VersionSourceTest, StartsGrowWithTheClockAndAreNeverZero) {
  uint64_t last = 0;
  for (const int64_t start_us :
       {int64_t{-5}, int64_t{0}, int64_t{1}, kSecond,
        VersionSource::kEpochUs - 1, VersionSource::kEpochUs,
        VersionSource::kEpochUs + 1, kSourceNowUs, kSourceNowUs + 1, kLastUs}) {
    const uint64_t first = VersionSource::FirstVersion(start_us);
    EXPECT_GT(first, 0u);
    EXPECT_GE(first, last);
    if (start_us >= kSecond) {
      EXPECT_GT(first, last);
    }
    last = first;
  }
}

TEST(VersionSourceTest, StartsAreAboveEarlierReleasesAndBelowTwoToThe53) {
  EXPECT_GE(VersionSource::FirstVersion(VersionSource::kEpochUs),
            static_cast<uint64_t>(VersionSource::kEpochUs));
  EXPECT_GT(VersionSource::FirstVersion(kSourceNowUs),
            static_cast<uint64_t>(kSourceNowUs));
  EXPECT_LT(VersionSource::FirstVersion(kLastUs), uint64_t{1} << 53);
}

TEST(VersionSourceTest, EightMillionChangesASecondStayBelowTheNextStart) {
  VersionSource source(kSourceNowUs);
  uint64_t last = 0;
  for (uint64_t taken = 0; taken < 8'000'000; taken += VersionSource::kBlock) {
    last = source.TakeBlock() + VersionSource::kBlock - 1;
  }
  EXPECT_LT(last, VersionSource::FirstVersion(kSourceNowUs + kSecond));
}

TEST(VersionSourceTest, ThreadsShareNoBlock) {
  constexpr int kThreads = 4;
  constexpr int kBlocks = 20'000;
  VersionSource source(kSourceNowUs);
  std::vector<std::vector<uint64_t>> taken(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<uint64_t>& mine : taken) {
    threads.emplace_back([&source, &mine] {
      for (int i = 0; i < kBlocks; ++i) mine.push_back(source.TakeBlock());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<uint64_t> all;
  for (const std::vector<uint64_t>& mine : taken) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  for (size_t i = 1; i < all.size(); ++i) {
    ASSERT_GE(all[i] - all[i - 1], VersionSource::kBlock);
  }
}

// A server at one moment; another one is its next start.
class Server {
 public:
  explicit Server(int64_t start_us)
      : clock_(start_us),
        reaper_(&clock_),
        registry_(&clock_, &reaper_, RegistryLimits()) {}

  Registry& registry() { return registry_; }
  ManualClock& clock() { return clock_; }

  uint64_t Put(const std::string& map, const std::string& key) {
    return (*registry_.Find(map))
        ->Apply(Operation::Put(key, "v"), clock_.NowUs())
        .version;
  }

 private:
  ManualClock clock_;
  Reaper reaper_;
  Registry registry_;
};

// 300,000 puts a second on one key, for a tenth of one.
TEST(VersionsOverRestartsTest, OneHotKeysVersionsGrow) {
  for (const int64_t start_us : {kStartUs, kSourceNowUs}) {
    SCOPED_TRACE(start_us);
    Server before(start_us);
    ASSERT_TRUE(before.registry().Create("map", NamespaceOptions()).ok());
    uint64_t last = 0;
    for (int i = 0; i < 30'000; ++i) {
      const uint64_t version = before.Put("map", "key");
      ASSERT_GT(version, last);
      last = version;
      before.clock().AdvanceBy(i % 3 == 0 ? 4 : 3);
    }
    Server after(before.clock().NowUs());
    ASSERT_TRUE(after.registry().Create("map", NamespaceOptions()).ok());
    EXPECT_GT(after.Put("map", "key"), last);
  }
}

// While the clock stands still.
TEST(VersionsOverRestartsTest, ANamespaceThatIsMadeAgainGoesOnAbove) {
  Server server(kSourceNowUs);
  std::set<uint64_t> seen;
  uint64_t last = 0;
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(server.registry().Create("map", NamespaceOptions()).ok());
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(seen.insert(server.Put("map", absl::StrCat(i))).second);
    }
    const uint64_t version = server.Put("map", "key");
    EXPECT_GT(version, last);
    last = version;
    ASSERT_TRUE(server.registry().Delete("map").ok());
  }
}

TEST(VersionsOverRestartsTest, NamespacesShareTheSource) {
  Server server(kSourceNowUs);
  std::set<uint64_t> seen;
  for (const char* map : {"a", "b", "c"}) {
    ASSERT_TRUE(server.registry().Create(map, NamespaceOptions()).ok());
  }
  for (int i = 0; i < 1'000; ++i) {
    for (const char* map : {"a", "b", "c"}) {
      EXPECT_TRUE(seen.insert(server.Put(map, absl::StrCat(i))).second);
    }
  }
}

}  // namespace
}  // namespace timecache::server
