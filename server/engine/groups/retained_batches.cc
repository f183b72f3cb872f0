#include "server/engine/groups/retained_batches.h"

#include <iterator>
#include <utility>

#include "server/base/check.h"

namespace timecache::server {

void RetainedBatches::Append(uint64_t first,
                             std::shared_ptr<const EventBatch> batch,
                             int next) {
  TIMECACHED_CHECK(batches_.empty() || batches_.rbegin()->first < first);
  TIMECACHED_CHECK(next < batch->size());
  Keep(*batch);
  fresh_ += static_cast<uint64_t>(batch->size() - next);
  const auto it = batches_.emplace_hint(batches_.end(), first, RetainedBatch());
  it->second = {std::move(batch), first, next, 0};
  if (first_fresh_ == batches_.end()) first_fresh_ = it;
}

void RetainedBatches::Clear() {
  for (const auto& [first, retained] : batches_) Release(*retained.batch);
  batches_.clear();
  first_fresh_ = batches_.end();
  fresh_ = 0;
}

void RetainedBatches::Keep(const EventBatch& batch) {
  bytes_ += batch.bytes();
  if (batch.AddRetainer()) account_->Add(batch.bytes());
}

void RetainedBatches::Release(const EventBatch& batch) {
  bytes_ -= batch.bytes();
  if (batch.RemoveRetainer()) account_->Add(-batch.bytes());
}

const RetainedBatch* RetainedBatches::FirstFresh() const {
  return fresh_ == 0 ? nullptr : &first_fresh_->second;
}

const RetainedBatch* RetainedBatches::FreshFrom(uint64_t number) const {
  if (fresh_ == 0) return nullptr;
  if (number <= first_fresh_->first) return &first_fresh_->second;
  auto it = std::prev(batches_.upper_bound(number));
  const RetainedBatch& retained = it->second;
  const uint64_t end =
      retained.first + static_cast<uint64_t>(retained.batch->size());
  if (number >= end) ++it;
  return it == batches_.end() ? nullptr : &it->second;
}

RetainedBatches::Opened RetainedBatches::OpenNext() {
  TIMECACHED_CHECK(fresh_ > 0);
  RetainedBatch* const retained = &first_fresh_->second;
  const int index = retained->next++;
  ++retained->unsettled;
  --fresh_;
  if (retained->fresh() == 0) ++first_fresh_;
  return {retained, index, retained->first + static_cast<uint64_t>(index)};
}

void RetainedBatches::Settled(RetainedBatch* retained) {
  TIMECACHED_CHECK(retained->unsettled > 0);
  --retained->unsettled;
  EraseIfDone(retained);
}

void RetainedBatches::EraseIfDone(RetainedBatch* retained) {
  if (retained->unsettled > 0 || retained->fresh() > 0) return;
  Release(*retained->batch);
  batches_.erase(retained->first);
}

int64_t RetainedBatches::DroppableBytes() const {
  return batches_.empty() ? 0
                          : bytes_ - batches_.rbegin()->second.batch->bytes();
}

int64_t RetainedBatches::OldestPublishedUs() const {
  return batches_.empty()
             ? kNeverUs
             : batches_.begin()->second.batch->death().published_us;
}

RetainedBatch* RetainedBatches::Oldest() {
  return batches_.empty() ? nullptr : &batches_.begin()->second;
}

RetainedBatch* RetainedBatches::After(const RetainedBatch* retained) {
  const auto it = batches_.upper_bound(retained->first);
  return it == batches_.end() ? nullptr : &it->second;
}

bool RetainedBatches::IsNewest(const RetainedBatch* retained) const {
  return retained->first == batches_.rbegin()->first;
}

uint64_t RetainedBatches::DropFresh(RetainedBatch* retained) {
  const int dropped = retained->fresh();
  if (dropped == 0) return 0;
  TIMECACHED_CHECK(retained == &first_fresh_->second);
  ++first_fresh_;
  retained->next = retained->batch->size();
  fresh_ -= static_cast<uint64_t>(dropped);
  EraseIfDone(retained);
  return static_cast<uint64_t>(dropped);
}

bool RetainedBatches::Shrink(RetainedBatch* retained,
                             absl::Span<const int> events) {
  TIMECACHED_CHECK(retained->fresh() == 0);
  std::shared_ptr<const EventBatch> less = retained->batch->Select(events);
  if (less->bytes() >= retained->batch->bytes()) return false;
  Keep(*less);
  Release(*retained->batch);
  retained->batch = std::move(less);
  retained->next = retained->batch->size();
  return true;
}

}  // namespace timecache::server
