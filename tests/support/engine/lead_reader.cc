#include "tests/support/engine/lead_reader.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace timecache::server {

std::vector<DeliveredEvent> LeadReader::Read(int64_t max_bytes) {
  const int64_t now_us = harness_->now_us();
  const int64_t width_us = harness_->Statistics().bucket_width_us;
  chunk_ = cursor_->Read(now_us, max_bytes);
  const Scanned live = harness_->ScanAll();
  for (const auto& [key, entry] : live) {
    (*history_)[{entry.version, entry.deadline_us}] = {key, entry.value};
  }
  std::vector<DeliveredEvent> events;
  for (size_t b = 0; b < chunk_.batches.size(); ++b) {
    const auto& batch = chunk_.batches[b];
    const bool shared = b < chunk_.shared;
    EXPECT_EQ(batch->cause(), Cause::kExpiring);
    if (shared) {
      EXPECT_LE(batch->death().published_us, now_us);
      EXPECT_GE(batch->death().published_us, now_us - ExpiringFeed::kMaxAgeUs);
    } else {
      EXPECT_EQ(batch->death().published_us, now_us);
    }
    EXPECT_GT(batch->death_us(), now_us);
    EXPECT_LE(batch->death_us(), now_us + lead_us_);
    for (int i = 0; i < batch->size(); ++i) {
      const ExpiredEvent event = batch->event(i);
      Check(event, shared, live);
      EXPECT_EQ(batch->death_us(), DeathTimeUs(event.deadline_us, width_us));
      ++told_[{event.version, event.deadline_us}];
      deaths_[std::string(event.key)] = batch->death_us();
      events.push_back({std::string(event.key), std::string(event.value),
                        event.version, event.put_us, event.deadline_us,
                        batch->death_us(), batch->cause()});
    }
  }
  return events;
}

void LeadReader::Check(const ExpiredEvent& event, bool shared,
                       const Scanned& live) {
  if (shared) {
    const auto it = history_->find({event.version, event.deadline_us});
    ASSERT_TRUE(it != history_->end()) << event.key << " never was like this";
    EXPECT_EQ(event.key, it->second.first);
    EXPECT_TRUE(event.value == it->second.second) << event.key;
    return;
  }
  const auto it = live.find(std::string(event.key));
  ASSERT_TRUE(it != live.end()) << event.key << " was told and is not there";
  EXPECT_TRUE(event.value == it->second.value) << event.key;
  EXPECT_EQ(event.version, it->second.version);
  EXPECT_EQ(event.put_us, it->second.put_us);
  EXPECT_EQ(event.deadline_us, it->second.deadline_us);
}

std::vector<DeliveredEvent> LeadReader::Drain(int64_t max_bytes) {
  std::vector<DeliveredEvent> events;
  do {
    for (DeliveredEvent& event : Read(max_bytes)) {
      events.push_back(std::move(event));
    }
  } while (more());
  return events;
}

void LeadReader::ExpectAllTold() const {
  EXPECT_EQ(chunk_.watermark_us, harness_->now_us());
  const int64_t width_us = harness_->Statistics().bucket_width_us;
  for (const auto& [key, entry] : harness_->ScanAll()) {
    const int64_t death_us = DeathTimeUs(entry.deadline_us, width_us);
    if (death_us > harness_->now_us() + lead_us_) continue;
    const auto it = deaths_.find(key);
    ASSERT_TRUE(it != deaths_.end()) << key << " was not told";
    ASSERT_EQ(it->second, death_us) << key << " was not told again";
  }
}

std::vector<std::string> KeysOf(const std::vector<DeliveredEvent>& events) {
  std::vector<std::string> keys;
  for (const DeliveredEvent& told : events) keys.push_back(told.key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace timecache::server
