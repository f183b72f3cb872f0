// A broker whose disk is full ends: calls go on with the others, and it comes back
// when there is room.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/chaos/test_cluster.h"
#include "tests/support/await.h"
#include "timecache/client.h"

namespace timecache::test {
namespace {

constexpr int kSmallDiskMib = 64;
constexpr int kPutsOnFullDisk = 100;
constexpr size_t kBytesOfPut = 100'000;

void Fill(const std::string& path) {
  const std::vector<char> mebibyte(1 << 20, 'x');
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < 2 * kSmallDiskMib && file.good(); ++i) {
    file.write(mebibyte.data(), static_cast<std::streamsize>(mebibyte.size()));
    file.flush();
  }
  EXPECT_FALSE(file.good()) << path;
}

TEST(ClusterDiskTest, CallsGoOnWithoutABrokerWhoseDiskIsFull) {
  if (!TestCluster::MayMount()) {
    GTEST_SKIP() << "this user may not mount a small disk";
  }
  TestClusterOptions options;
  options.small_disk_mib = kSmallDiskMib;
  TestCluster cluster(options);
  NamespaceOptions ns;
  ns.durability = Durability::kReplicated;
  ns.ttl = absl::Hours(1);
  cluster.Create("kept", ns);
  const Client client = cluster.ImpatientCaller("kept", absl::Seconds(3));
  const std::string value(kBytesOfPut, 'v');
  absl::Duration longest;
  const auto put = [&](int i) {
    const absl::Time began = absl::Now();
    EXPECT_TRUE(AwaitCluster(
        [&] { return client.Put(absl::StrCat("key", i), value).ok(); }));
    longest = std::max(longest, absl::Now() - began);
  };
  put(0);
  cluster.AwaitWhole();

  longest = absl::ZeroDuration();
  const std::string filler = cluster.DataOf(1) + "/filler";
  Fill(filler);
  for (int i = 1; i <= kPutsOnFullDisk; ++i) put(i);
  std::fprintf(stderr, "a caller waited %d ms\n",
               static_cast<int>(absl::ToInt64Milliseconds(longest)));
  EXPECT_EQ(cluster.WhyNodesEnded(), "");

  std::remove(filler.c_str());
  Brokers& brokers = cluster.brokers();
  brokers.Do("kill 1");
  brokers.Do("start 1");
  // Two of three have to have what is put: one of them is this one.
  EXPECT_TRUE(AwaitCluster([&] { return client.Put("back", value).ok(); }));
  cluster.AwaitWhole();
  brokers.Do("kill 2");
  put(1);
  for (int i = 0; i <= kPutsOnFullDisk; ++i) {
    const auto got = cluster.Caller("kept").Get(absl::StrCat("key", i));
    EXPECT_TRUE(got.ok() && *got) << i << ": " << got.status();
  }
}

}  // namespace
}  // namespace timecache::test
