#include "tests/support/delivery/delivery_reference.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "gtest/gtest.h"

namespace timecache::server {
namespace {

size_t HashOf(absl::string_view text) {
  return std::hash<std::string_view>()({text.data(), text.size()});
}

}  // namespace

void DeliveryReference::Expect(std::vector<ReferenceModel::Death> deaths) {
  for (const ReferenceModel::Death& death : deaths) {
    const bool same = !buckets_.empty() &&
                      buckets_.back().cause == death.cause &&
                      buckets_.back().earliest_us == death.earliest_us &&
                      buckets_.back().latest_us == death.latest_us;
    if (!same) {
      buckets_.push_back(
          {end(), death.earliest_us, death.latest_us, death.cause});
    }
    const Entry& entry = death.entry;
    const Event event = {death.key,          HashOf(entry.value),
                         entry.value.size(), entry.put_us,
                         entry.deadline_us,  buckets_.size() - 1};
    const bool fresh = events_.emplace(entry.version, event).second;
    ASSERT_TRUE(fresh) << "version " << entry.version << " died twice";
    numbers_.push_back(0);
  }
}

uint64_t DeliveryReference::EndAt(int64_t time_us) const {
  const auto later = std::partition_point(
      buckets_.begin(), buckets_.end(),
      [&](const Bucket& bucket) { return bucket.latest_us <= time_us; });
  return later == buckets_.end() ? end() : later->first;
}

size_t DeliveryReference::BucketOf(uint64_t number) const {
  const auto behind = std::partition_point(
      buckets_.begin(), buckets_.end(),
      [&](const Bucket& bucket) { return bucket.first <= number; });
  return static_cast<size_t>(behind - buckets_.begin()) - 1;
}

void DeliveryReference::CheckEvent(uint64_t number, const ExpiredEvent& event,
                                   const Death& death) {
  ASSERT_LT(number, end()) << "an event of nothing that died";
  const auto it = events_.find(event.version);
  ASSERT_NE(it, events_.end()) << "an event of nothing that died: " << event.key
                               << " version " << event.version;
  Event& expected = it->second;
  const size_t index = BucketOf(number);
  ASSERT_EQ(expected.bucket, index) << event.key << ": another one's turn";
  ASSERT_EQ(event.key, expected.key);
  ASSERT_EQ(event.value.size(), expected.value_bytes);
  ASSERT_EQ(HashOf(event.value), expected.value_hash)
      << "the event of " << event.key << " has another value";
  ASSERT_EQ(event.put_us, expected.put_us);
  ASSERT_EQ(event.deadline_us, expected.deadline_us);
  Bucket& bucket = buckets_[index];
  ASSERT_EQ(death.cause, bucket.cause);
  ASSERT_GE(death.death_us, bucket.earliest_us);
  ASSERT_LE(death.death_us, bucket.latest_us);
  if (death.cause == Cause::kExpired) {
    ASSERT_GE(death.death_us, event.deadline_us) << "died early";
  }
  if (numbers_[number] == 0) {
    ASSERT_EQ(expected.number, kUnnumbered)
        << event.key << " was told as number " << expected.number
        << " and now as " << number;
    numbers_[number] = event.version;
    expected.number = number;
  }
  ASSERT_EQ(numbers_[number], event.version)
      << "number " << number << " was told as another event";
}

const std::string& DeliveryReference::KeyOf(uint64_t number) const {
  return events_.at(numbers_.at(number)).key;
}

void RetainedReference::Append(const EventBatch& batch) {
  batches_.push_back(
      {end_, batch.death().published_us, batch.death_us(), batch.bytes()});
  bytes_ += batch.bytes();
  end_ += static_cast<uint64_t>(batch.size());
}

uint64_t RetainedReference::oldest() const {
  return oldest_batch_ == batches_.size() ? end_
                                          : batches_[oldest_batch_].first;
}

void RetainedReference::Trim(int64_t now_us, uint64_t needed) {
  while (oldest_batch_ + 1 < batches_.size() && bytes_ > retention_bytes_) {
    DropOldest();
  }
  while (oldest_batch_ < batches_.size() &&
         batches_[oldest_batch_].appended_us + retention_us_ <= now_us &&
         batches_[oldest_batch_].first < needed) {
    DropOldest();
  }
}

void RetainedReference::Reclaim(uint64_t events, uint64_t needed) {
  while (events > 0) {
    ASSERT_LT(oldest_batch_, batches_.size()) << "reclaimed more than there is";
    const bool newest = oldest_batch_ + 1 == batches_.size();
    const uint64_t first = batches_[oldest_batch_].first;
    const uint64_t size =
        (newest ? end_ : batches_[oldest_batch_ + 1].first) - first;
    ASSERT_LE(size, events) << "reclaimed a part of a batch";
    ASSERT_TRUE(!newest || first < needed)
        << "reclaimed the newest batch, which is still to be read";
    events -= size;
    DropOldest();
  }
}

size_t RetainedReference::BatchOf(uint64_t number) const {
  const auto behind = std::partition_point(
      batches_.begin(), batches_.end(),
      [&](const Batch& batch) { return batch.first <= number; });
  return static_cast<size_t>(behind - batches_.begin()) - 1;
}

}  // namespace timecache::server
