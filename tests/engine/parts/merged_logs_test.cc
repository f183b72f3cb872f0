// Watches of a namespace of several partitions.

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/engine/parts/parts_harness.h"
#include "tests/support/effort.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> KeysOf(const EventChunk& chunk) {
  std::vector<std::string> keys;
  for (const auto& batch : chunk.batches) {
    for (int i = 0; i < batch->size(); ++i) {
      keys.emplace_back(batch->key(i));
    }
  }
  return keys;
}

// What a client may expect of all that it reads, over all its watches.
class WatchAuditor {
 public:
  explicit WatchAuditor(const PartsHarness* parts) : parts_(*parts) {}

  void Read(const EventChunk& chunk) {
    ASSERT_EQ(chunk.shared, chunk.batches.size());
    int64_t last_us = INT64_MIN;
    for (const auto& batch : chunk.batches) {
      ASSERT_GE(batch->death_us(), last_us) << "within one message";
      last_us = batch->death_us();
      ASSERT_GT(batch->death_us(), watermark_us_) << "after its watermark";
      for (int i = 0; i < batch->size(); ++i) {
        const std::string key(batch->key(i));
        ASSERT_TRUE(keys_.insert(key).second) << key << " comes twice";
        int64_t& before_us = last_of_partition_[parts_.PartitionOf(key)];
        ASSERT_GE(batch->death_us(), before_us) << "within a partition";
        before_us = batch->death_us();
      }
    }
    lost_ += chunk.lost;
    ASSERT_GE(chunk.watermark_us, watermark_us_) << "it goes back";
    watermark_us_ = chunk.watermark_us;
  }

  size_t events() const { return keys_.size(); }
  uint64_t lost() const { return lost_; }
  int64_t watermark_us() const { return watermark_us_; }

 private:
  const PartsHarness& parts_;
  std::set<std::string> keys_;
  std::map<int, int64_t> last_of_partition_;
  uint64_t lost_ = 0;
  int64_t watermark_us_ = 0;
};

TEST(MergedLogs, ReadsAllPartitionsInOneMessageInOrderOfDeath) {
  PartsHarness parts(4);
  TestReader watch = parts.OpenLog();
  ASSERT_TRUE(watch.status().ok()) << watch.status();
  for (const int tenth : {4, 1, 3, 2}) {
    parts.Put(parts.KeyIn(tenth - 1, absl::StrCat("die-", tenth)), "v",
              tenth * kSecond);
  }
  parts.Pass(10 * kSecond);
  const EventChunk chunk = watch->Read(parts.now_us(), 1000, kMessageBytes);
  EXPECT_THAT(KeysOf(chunk),
              ElementsAre(HasSubstr("die-1"), HasSubstr("die-2"),
                          HasSubstr("die-3"), HasSubstr("die-4")));
  EXPECT_EQ(chunk.points.size(), 4u);
  EXPECT_EQ(chunk.watermark_us, parts.now_us());
  EXPECT_FALSE(chunk.more);
}

TEST(MergedLogs, EachEventComesOnceOrIsLostThoughAWatchResumesAnywhere) {
  std::mt19937_64 random(test::Seed());
  for (const int partitions : {2, 3, 16, 64}) {
    SCOPED_TRACE(partitions);
    NamespaceOptions options = Tens();
    options.retention_bytes = kMinRetentionBytes;
    PartsHarness parts(partitions, options);
    WatchAuditor auditor(&parts);
    TestReader watch = parts.OpenLog();
    size_t put = 0;
    for (int round = 0; round < 60; ++round) {
      // Some rounds are more than a partition retains.
      const bool flood = random() % 10 == 0;
      const std::string value(flood ? 40'000 : 100, 'v');
      for (int i = flood ? 60 * partitions / 2 : 40; i > 0; --i) {
        parts.Put(absl::StrCat("key-", ++put), value,
                  static_cast<int64_t>(1 + random() % 5) * kSecond);
      }
      parts.Pass(static_cast<int64_t>(random() % 3) * kSecond);
      if (random() % 2 == 0) watch->RefreshWatermark(parts.now_us(), 0);
      // As far as the client reads.
      for (int reads = static_cast<int>(random() % 12); reads > 0; --reads) {
        const auto bytes = static_cast<int64_t>(random() % 200'000);
        const EventChunk chunk = watch->Read(parts.now_us(), 8192, bytes);
        ASSERT_NO_FATAL_FAILURE(auditor.Read(chunk));
        ASSERT_EQ(chunk.points.size(), static_cast<size_t>(partitions));
        if (random() % 4 > 0) continue;
        watch =
            parts.OpenLog(LogStart::kNow, PartsHarness::PointsOf(chunk.points));
        ASSERT_TRUE(watch.status().ok()) << watch.status();
      }
    }
    parts.Pass(20 * kSecond);
    watch->RefreshWatermark(parts.now_us(), 0);
    for (bool more = true; more;) {
      const EventChunk chunk = watch->Read(parts.now_us(), 8192, kMessageBytes);
      ASSERT_NO_FATAL_FAILURE(auditor.Read(chunk));
      more = chunk.more;
    }
    EXPECT_EQ(auditor.events() + auditor.lost(), put);
    EXPECT_EQ(auditor.watermark_us(), parts.now_us());
    uint64_t owed = 0;
    uint64_t accounted = 0;
    for (int i = 0; i < partitions; ++i) {
      const NamespaceStatistics statistics =
          parts.map(i).GetStatistics(parts.now_us());
      owed += statistics.watch_owed;
      accounted += statistics.watch_delivered + statistics.watch_lost +
                   statistics.watch_left + statistics.watch_pending;
    }
    EXPECT_EQ(owed, accounted);
  }
}

TEST(MergedLogs, NoMessageIsLargerThanAsked) {
  PartsHarness parts(8);
  TestReader watch = parts.OpenLog();
  const std::string value(30'000, 'v');
  for (int i = 0; i < 400; ++i) parts.Put(absl::StrCat(i), value);
  parts.Pass(20 * kSecond);
  for (const int64_t most : {int64_t{1}, int64_t{400'000}, kMessageBytes}) {
    for (int reads = 0; reads < 3; ++reads) {
      const EventChunk chunk = watch->Read(parts.now_us(), 8192, most);
      size_t bytes = 0;
      for (const auto& batch : chunk.batches) bytes += batch->encoded().size();
      EXPECT_TRUE(chunk.batches.size() == 1 ||
                  static_cast<int64_t>(bytes) <= most)
          << bytes;
    }
  }
}

TEST(MergedLogs, PartitionsTakeTurns) {
  PartsHarness parts(3);
  TestReader watch = parts.OpenLog();
  for (int partition = 0; partition < 3; ++partition) {
    for (int second = 1; second <= 4; ++second) {
      parts.Put(parts.KeyIn(partition, absl::StrCat("at-", second)), "v",
                second * kSecond);
    }
  }
  // A batch for each second.
  for (int second = 0; second < 6; ++second) parts.Pass(kSecond);
  std::vector<int> turns;
  for (bool more = true; more;) {
    const EventChunk chunk = watch->Read(parts.now_us(), 8192, 1);
    for (const std::string& key : KeysOf(chunk)) {
      turns.push_back(parts.PartitionOf(key));
    }
    more = chunk.more;
  }
  EXPECT_THAT(turns, ElementsAre(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2));
}

TEST(MergedLogs, OneWakeUntilAllIsRead) {
  PartsHarness parts(4);
  TestReader watch = parts.OpenLog();
  EXPECT_FALSE(watch->Read(parts.now_us(), 8192, kMessageBytes).more);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) parts.Put(parts.KeyIn(i, "a"));
    parts.Pass(20 * kSecond);
    EXPECT_EQ(watch.TakeWakes(), 1);
    EXPECT_EQ(KeysOf(watch->Read(parts.now_us(), 8192, kMessageBytes)).size(),
              4u);
  }
}

TEST(MergedLogs, APartitionBehindHoldsTheWatermarkBack) {
  PartsHarness parts(2);
  TestReader watch = parts.OpenLog();
  const std::string value(50'000, 'v');
  for (int i = 0; i < 10; ++i) {
    parts.Put(parts.KeyIn(0, absl::StrCat(i)), value, kSecond);
  }
  parts.Put(parts.KeyIn(1, "late"), value, 5 * kSecond);
  const int64_t begin_us = parts.now_us();
  parts.Pass(20 * kSecond);
  EventChunk chunk = watch->Read(parts.now_us(), 8192, 1);
  EXPECT_EQ(KeysOf(chunk).size(), 10u);
  EXPECT_TRUE(chunk.more);
  EXPECT_EQ(chunk.watermark_us, begin_us + 5 * kSecond - 1);
  chunk = watch->Read(parts.now_us(), 8192, 1);
  EXPECT_EQ(KeysOf(chunk).size(), 1u);
  EXPECT_EQ(chunk.watermark_us, parts.now_us());
}

TEST(MergedLogs, ADeletedNamespaceIsReadToItsEnd) {
  PartsHarness parts(3);
  TestReader watch = parts.OpenLog();
  EXPECT_FALSE(watch->Read(parts.now_us(), 8192, kMessageBytes).more);
  for (int i = 0; i < 3; ++i) parts.Put(parts.KeyIn(i, "a"));
  parts.Pass(20 * kSecond);
  ASSERT_TRUE(parts.registry().Delete(PartsHarness::kName).ok());
  std::vector<std::string> keys;
  bool closed = false;
  for (int reads = 0; reads < 5 && !closed; ++reads) {
    const EventChunk chunk = watch->Read(parts.now_us(), 8192, 1);
    for (std::string& key : KeysOf(chunk)) keys.push_back(std::move(key));
    closed = chunk.closed;
  }
  EXPECT_TRUE(closed);
  EXPECT_EQ(keys.size(), 3u);
  EXPECT_EQ(ReasonOf(watch->WhyClosed()), Reason::kNamespaceNotFound);
  EXPECT_THAT(std::string(watch->WhyClosed().message()),
              HasSubstr("namespace orders was deleted"));
}

TEST(MergedLogs, PointsOfAnotherNumberOfPartitionsAreOfAnotherLog) {
  PartsHarness parts(4);
  const std::vector<LogPoint> points =
      parts.OpenLog()->Read(parts.now_us(), 8192, kMessageBytes).points;
  const auto resume = [&](const std::vector<LogPoint>& from) {
    return parts.OpenLog(LogStart::kNow, PartsHarness::PointsOf(from)).status();
  };
  EXPECT_TRUE(resume(points).ok());
  EXPECT_TRUE(parts.OpenLog().status().ok());
  for (const int partitions : {1, 2, 3}) {
    parts.TakePartitions(partitions);
    const absl::Status status = resume(points);
    EXPECT_EQ(ReasonOf(status), Reason::kLogChanged) << partitions;
    EXPECT_EQ(MetadataOf(status)["namespace"], PartsHarness::kName);
  }
  parts.TakePartitions(4);
  EXPECT_EQ(ReasonOf(resume({points[0]})), Reason::kLogChanged);
  EXPECT_EQ(ReasonOf(resume({points[1], points[0], points[2], points[3]})),
            Reason::kLogChanged);
}

TEST(MergedLogs, ChangesOfAllPartitionsComeOnceAndResume) {
  NamespaceOptions options = Tens();
  options.change_retention_us = 60 * kSecond;
  PartsHarness parts(5, options);
  const std::vector<std::string> name = {PartsHarness::kName};
  const auto open = [&](const LogPoints& points) {
    return TestReader([&](auto wake, auto done) {
      parts.store().OpenChanges(name, LogStart::kNow, points, wake,
                                std::move(done));
    });
  };
  TestReader watch = open({});
  ASSERT_TRUE(watch.status().ok()) << watch.status();
  std::set<std::string> seen;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 30; ++i) parts.Put(absl::StrCat("k", round, "-", i));
    parts.Pass(kSecond / 10);
    watch->RefreshWatermark(parts.now_us(), 0);
    EventChunk chunk;
    do {
      chunk = watch->Read(parts.now_us(), 8192, 1'000);
      for (const std::string& key : KeysOf(chunk)) {
        EXPECT_TRUE(seen.insert(key).second) << key;
      }
    } while (chunk.more);
    EXPECT_EQ(chunk.watermark_us, parts.now_us());
    watch = open(PartsHarness::PointsOf(chunk.points));
    ASSERT_TRUE(watch.status().ok()) << watch.status();
  }
  EXPECT_EQ(seen.size(), 300u);
}

TEST(MergedLogs, ExpiringEntriesOfAllPartitionsComeOnce) {
  PartsHarness parts(5);
  std::set<std::string> put;
  for (int i = 0; i < 200; ++i) {
    const std::string key = absl::StrCat("key-", i);
    put.insert(key);
    parts.Put(key);
  }
  TestReader watch = parts.OpenExpiring({.lead_us = 5 * kSecond});
  ASSERT_TRUE(watch.status().ok()) << watch.status();
  std::set<std::string> seen;
  int64_t watermark_us = 0;
  for (int second = 0; second < 9; ++second) {
    for (bool more = true; more;) {
      const EventChunk chunk = watch->Read(parts.now_us(), 8192, kMessageBytes);
      for (const std::string& key : KeysOf(chunk)) {
        EXPECT_TRUE(seen.insert(key).second) << key;
      }
      EXPECT_GE(chunk.watermark_us, watermark_us);
      watermark_us = chunk.watermark_us;
      more = chunk.more;
    }
    EXPECT_GT(watch->NextDueUs(), parts.now_us());
    EXPECT_EQ(watermark_us, parts.now_us());
    parts.Pass(kSecond);
  }
  EXPECT_EQ(seen, put);
}

TEST(MergedLogs, NamesOfPartitionsAreNoNames) {
  PartsHarness parts(2);
  const std::vector<std::string> name = {"orders#1"};
  const TestReader watch([&](auto wake, auto done) {
    parts.store().OpenLogs(name, LogStart::kNow, {}, wake, std::move(done));
  });
  EXPECT_EQ(watch.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(watch.status()), "namespace");
}

}  // namespace
}  // namespace timecache::server
