#include "tests/support/engine/event_auditor.h"

#include <string>

#include "gtest/gtest.h"

namespace timecache::server {

void EventAuditor::Expect(std::vector<ReferenceModel::Death> deaths) {
  for (ReferenceModel::Death& death : deaths) {
    ++died_;
    const uint64_t version = death.entry.version;
    by_death_.insert({death.latest_us, version});
    const bool fresh = expected_.emplace(version, std::move(death)).second;
    ASSERT_TRUE(fresh) << "version " << version << " died twice";
  }
}

void EventAuditor::Check(const ExpiryLog::Chunk& chunk) {
  lost_ += chunk.lost;
  if (!may_lose_) {
    ASSERT_EQ(chunk.lost, 0u);
  }
  for (const auto& batch : chunk.batches) {
    ASSERT_GT(batch->size(), 0);
    ASSERT_LE(batch->size(), kMaxEventBatchEvents);
    ASSERT_GE(batch->death_us(), latest_death_us_) << "deaths out of order";
    latest_death_us_ = batch->death_us();
    for (int i = 0; i < batch->size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(CheckEvent(batch->event(i), *batch));
    }
  }
  ASSERT_GE(chunk.watermark_us, watermark_us_) << "the watermark went back";
  watermark_us_ = chunk.watermark_us;
  if (!may_lose_ && !by_death_.empty()) {
    const ReferenceModel::Death& next = expected_.at(by_death_.begin()->second);
    ASSERT_GT(next.latest_us, watermark_us_)
        << "the watermark promises " << next.key << ", which was not told";
  }
}

void EventAuditor::CheckEvent(const ExpiredEvent& event,
                              const EventBatch& batch) {
  ++delivered_;
  told_.push_back({batch.death_us(), event.version});
  const auto it = expected_.find(event.version);
  ASSERT_NE(it, expected_.end())
      << "an event of nothing that died, or for the second time: " << event.key
      << " version " << event.version;
  const ReferenceModel::Death& death = it->second;
  ASSERT_EQ(event.key, death.key);
  ASSERT_TRUE(event.value == death.entry.value)
      << "the event of " << event.key << " has another value";
  ASSERT_EQ(event.put_us, death.entry.put_us);
  ASSERT_EQ(event.deadline_us, death.entry.deadline_us);
  ASSERT_EQ(event.create_us, death.entry.create_us);
  ASSERT_EQ(event.own_ttl_us, death.entry.own_ttl_us);
  ASSERT_EQ(event.trace, death.trace);
  ASSERT_EQ(batch.cause(), death.cause);
  ASSERT_GE(batch.death_us(), event.put_us);
  ASSERT_GE(batch.death().published_us, batch.death_us())
      << "delivered before it died";
  ASSERT_GE(batch.death_us(), death.earliest_us);
  ASSERT_LE(batch.death_us(), death.latest_us);
  if (batch.cause() == Cause::kExpired) {
    ASSERT_GE(batch.death_us(), event.deadline_us) << "died early";
  }
  ASSERT_GT(batch.death_us(), watermark_us_)
      << "an event after a watermark that promised it";
  by_death_.erase({death.latest_us, event.version});
  expected_.erase(it);
}

void EventAuditor::CheckComplete() const {
  ASSERT_EQ(delivered_ + lost_, died_);
  if (may_lose_) return;
  ASSERT_TRUE(expected_.empty())
      << expected_.size() << " events never came, the first of "
      << expected_.at(by_death_.begin()->second).key;
}

}  // namespace timecache::server
