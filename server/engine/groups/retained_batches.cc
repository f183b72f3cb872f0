#include "server/engine/groups/retained_batches.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/base/check.h"

namespace timecache::server {

int RetainedBatch::IndexFrom(uint64_t number) const {
  if (number <= first) return 0;
  const uint64_t place = number - first;
  if (places == nullptr) {
    return static_cast<int>(
        std::min(place, static_cast<uint64_t>(batch->size())));
  }
  const auto end = places->begin() + batch->size();
  return static_cast<int>(std::lower_bound(places->begin(), end, place) -
                          places->begin());
}

void RetainedBatches::Append(
    uint64_t first, std::shared_ptr<const EventBatch> batch, int next,
    std::shared_ptr<const std::vector<uint32_t>> places) {
  TIMECACHED_CHECK(batches_.empty() || batches_.rbegin()->first < first);
  TIMECACHED_CHECK(next < batch->size());
  Keep(*batch);
  fresh_ += static_cast<uint64_t>(batch->size() - next);
  const auto it = batches_.emplace_hint(batches_.end(), first, RetainedBatch());
  it->second = {std::move(batch), first, next, 0, std::move(places)};
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
  if (it->second.IndexFrom(number) == it->second.batch->size()) ++it;
  return it == batches_.end() ? nullptr : &it->second;
}

RetainedBatches::Opened RetainedBatches::OpenNext() {
  TIMECACHED_CHECK(fresh_ > 0);
  RetainedBatch* const retained = &first_fresh_->second;
  const int index = retained->next++;
  ++retained->unsettled;
  --fresh_;
  if (retained->fresh() == 0) ++first_fresh_;
  return {retained, index, retained->number(index)};
}

bool RetainedBatches::IsFresh(uint64_t number) const {
  if (fresh_ == 0 || number < first_fresh_->first) return false;
  const RetainedBatch& retained =
      std::prev(batches_.upper_bound(number))->second;
  const int index = retained.IndexFrom(number);
  return index >= retained.next && index < retained.batch->size() &&
         retained.number(index) == number;
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

void RetainedBatches::SettleAll(
    std::vector<std::shared_ptr<const void>>* gone) {
  for (auto it = batches_.begin(); it != batches_.end();) {
    RetainedBatch* const retained = &(it++)->second;
    if (std::exchange(retained->unsettled, 0) == 0) continue;
    gone->push_back(retained->batch);
    EraseIfDone(retained);
  }
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

uint64_t RetainedBatches::CountFreshFrom(uint64_t number) const {
  uint64_t count = 0;
  for (auto it = Batches::const_iterator(first_fresh_); it != batches_.end();
       ++it) {
    const RetainedBatch& retained = it->second;
    count += static_cast<uint64_t>(
        retained.batch->size() -
        std::max(retained.IndexFrom(number), retained.next));
  }
  return count;
}

uint64_t RetainedBatches::DropFreshBefore(uint64_t number) {
  uint64_t dropped = 0;
  while (fresh_ > 0) {
    RetainedBatch* const retained = &first_fresh_->second;
    const int end = retained->IndexFrom(number);
    if (end <= retained->next) break;
    if (end == retained->batch->size()) {
      dropped += DropFresh(retained);
      continue;
    }
    const auto less = static_cast<uint64_t>(end - retained->next);
    retained->next = end;
    fresh_ -= less;
    dropped += less;
    break;
  }
  return dropped;
}

void RetainedBatches::CutFrom(uint64_t number) {
  while (fresh_ > 0) {
    const auto last = std::prev(batches_.end());
    RetainedBatch* const retained = &last->second;
    const int end = std::max(retained->IndexFrom(number), retained->next);
    const int less = retained->batch->size() - end;
    if (less == 0) break;
    fresh_ -= static_cast<uint64_t>(less);
    if (end > retained->next) {
      std::shared_ptr<const EventBatch> part = retained->batch->Part(0, end);
      Keep(*part);
      Release(*retained->batch);
      retained->batch = std::move(part);
      break;
    }
    retained->next = retained->batch->size();
    if (first_fresh_ == last) first_fresh_ = batches_.end();
    EraseIfDone(retained);
  }
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
  retained->places = nullptr;
  return true;
}

}  // namespace timecache::server
