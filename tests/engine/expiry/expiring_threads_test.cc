// What is going to die, told while many threads put.

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/engine/expiry/expiring_cursor.h"
#include "server/engine/map/time_cache_map.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

TEST(ExpiringConcurrencyTest, WhatManyThreadsPutIsAllTold) {
  constexpr int kWriters = 3;
  constexpr int kEntries = 20'000;
  NamespaceOptions options = WithBuckets(10 * kSecond, 11);
  options.num_shards = 4;
  TimeCacheMap map("map", options, nullptr, kStartUs);
  const auto cursor =
      *map.expiring().Subscribe({.lead_us = 3600 * kSecond}, [] {});
  std::atomic<int> writing{kWriters};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&map, &writing, writer] {
      for (int i = 0; i < kEntries; ++i) {
        const std::string key = absl::StrCat(writer, "/", i);
        map.Apply(Operation::Put(key, "v"), kStartUs + i);
        if (i % 4 == 0) {
          map.Apply(Operation::Remove(absl::StrCat(writer, "/", i / 2)),
                    kStartUs + i);
        }
      }
      --writing;
    });
  }
  std::set<std::string> seen;
  bool last = false;
  do {
    last = writing.load() == 0;
    cursor->Refresh();
    bool more = true;
    while (more) {
      const ExpiringCursor::Chunk chunk = cursor->Read(kStartUs, 1 << 20);
      for (const auto& batch : chunk.batches) {
        for (int i = 0; i < batch->size(); ++i) {
          seen.insert(std::string(batch->event(i).key));
        }
      }
      more = chunk.more;
    }
  } while (!last);
  for (std::thread& writer : writers) writer.join();
  ScanPosition place;
  int64_t live = 0;
  const EntryVisitor visit = [&](const EntryView& entry) {
    ++live;
    EXPECT_EQ(seen.count(std::string(entry.key)), 1u) << entry.key;
  };
  while (map.Scan("", kStartUs + kEntries, 1'000, 1 << 20, &place, visit)) {
  }
  EXPECT_GT(live, kWriters * kEntries / 2);
}

}  // namespace
}  // namespace timecache::server
