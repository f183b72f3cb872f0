#include "tests/support/engine/map_harness.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace timecache::server {

std::vector<std::string> Reading::Texts() const {
  std::vector<std::string> texts;
  for (const DeliveredEvent& told : events) {
    texts.push_back(absl::StrCat(told.key, "=", told.value));
  }
  return texts;
}

Reading ReadAll(ExpiryLog::Cursor* cursor, int64_t max_bytes) {
  Reading reading;
  for (bool more = true; more;) {
    const ExpiryLog::Chunk chunk = cursor->Read(max_bytes);
    for (const auto& batch : chunk.batches) {
      reading.batch_sizes.push_back(batch->size());
      for (int i = 0; i < batch->size(); ++i) {
        const ExpiredEvent event = batch->event(i);
        reading.events.push_back(
            {std::string(event.key), std::string(event.value), event.version,
             event.put_us, event.deadline_us, batch->death_us(), batch->cause(),
             batch->death().published_us, event.parts, event.create_us,
             event.own_ttl_us, std::string(event.trace)});
      }
    }
    reading.watermark_us = chunk.watermark_us;
    reading.lost += chunk.lost;
    reading.closed = chunk.closed;
    more = chunk.more;
  }
  return reading;
}

MapHarness::MapHarness(const NamespaceOptions& options, int64_t start_us,
                       Usage* server_usage)
    : now_us_(start_us), map_("test", options, server_usage, start_us) {
  EXPECT_TRUE(Validate(options).ok()) << Validate(options);
  cursor_ = Subscribe(ExpiryLog::Start::kEarliest);
}

std::string MapHarness::Get(absl::string_view key) {
  const Result result = Apply(Operation::Get(key));
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.found, result.has_entry);
  return result.found ? result.entry.value : "(none)";
}

bool MapHarness::Contains(absl::string_view key) {
  const Result result = Apply(Operation::Contains(key));
  EXPECT_TRUE(result.status.ok()) << result.status;
  return result.found;
}

void MapHarness::Sweep() {
  map_.Advance(now_us_);
  while (map_.Sweep(now_us_, 1000)) {
  }
  map_.RefreshWatermark(now_us_);
}

Reading MapHarness::ReadEvents() {
  Sweep();
  return ReadAll(cursor_.get());
}

Scanned MapHarness::ScanAll(absl::string_view prefix, int page_entries,
                            int64_t page_bytes) {
  Scanned scanned;
  ScanPosition place;
  const EntryVisitor visit = [&](const EntryView& entry) {
    const bool first =
        scanned
            .insert({std::string(entry.key),
                     {std::string(entry.value), entry.version, entry.put_us,
                      entry.deadline_us, entry.parts, entry.create_us,
                      entry.own_ttl_us}})
            .second;
    EXPECT_TRUE(first) << "a scan came to this key twice: " << entry.key;
  };
  while (map_.Scan(prefix, now_us_, page_entries, page_bytes, &place, visit)) {
  }
  return scanned;
}

NamespaceOptions WithBuckets(int64_t ttl_us, int num_buckets) {
  NamespaceOptions options;
  options.ttl_us = ttl_us;
  options.num_buckets = num_buckets;
  options.max_ttl_us = std::max(options.max_ttl_us, ttl_us);
  return options;
}

}  // namespace timecache::server
