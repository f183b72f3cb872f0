#include "server/engine/groups/group_packs.h"

#include <iterator>
#include <utility>

#include "server/engine/check.h"

namespace timecache::server {

void GroupPacks::Append(uint64_t first, std::shared_ptr<const EventBatch> batch,
                        int next) {
  TIMECACHED_CHECK(packs_.empty() || packs_.rbegin()->first < first);
  TIMECACHED_CHECK(next < batch->size());
  Keep(*batch);
  fresh_ += static_cast<uint64_t>(batch->size() - next);
  const auto it = packs_.emplace_hint(packs_.end(), first, GroupPack());
  it->second = {std::move(batch), first, next, 0};
  if (first_fresh_ == packs_.end()) first_fresh_ = it;
}

void GroupPacks::Clear() {
  for (const auto& [first, pack] : packs_) Release(*pack.batch);
  packs_.clear();
  first_fresh_ = packs_.end();
  fresh_ = 0;
}

void GroupPacks::Keep(const EventBatch& batch) {
  bytes_ += batch.bytes();
  if (batch.AddKeeper()) account_->Add(batch.bytes());
}

void GroupPacks::Release(const EventBatch& batch) {
  bytes_ -= batch.bytes();
  if (batch.RemoveKeeper()) account_->Add(-batch.bytes());
}

const GroupPack* GroupPacks::FirstFresh() const {
  return fresh_ == 0 ? nullptr : &first_fresh_->second;
}

const GroupPack* GroupPacks::FreshFrom(uint64_t number) const {
  if (fresh_ == 0) return nullptr;
  if (number <= first_fresh_->first) return &first_fresh_->second;
  auto it = std::prev(packs_.upper_bound(number));
  const GroupPack& pack = it->second;
  const uint64_t end = pack.first + static_cast<uint64_t>(pack.batch->size());
  if (number >= end) ++it;
  return it == packs_.end() ? nullptr : &it->second;
}

GroupPacks::Place GroupPacks::OpenNext() {
  TIMECACHED_CHECK(fresh_ > 0);
  GroupPack* const pack = &first_fresh_->second;
  const int index = pack->next++;
  ++pack->unsettled;
  --fresh_;
  if (pack->fresh() == 0) ++first_fresh_;
  return {pack, index, pack->first + static_cast<uint64_t>(index)};
}

void GroupPacks::Settled(GroupPack* pack) {
  TIMECACHED_CHECK(pack->unsettled > 0);
  --pack->unsettled;
  EraseIfDone(pack);
}

void GroupPacks::EraseIfDone(GroupPack* pack) {
  if (pack->unsettled > 0 || pack->fresh() > 0) return;
  Release(*pack->batch);
  packs_.erase(pack->first);
}

int64_t GroupPacks::DroppableBytes() const {
  return packs_.empty() ? 0 : bytes_ - packs_.rbegin()->second.batch->bytes();
}

int64_t GroupPacks::OldestPublishedUs() const {
  return packs_.empty() ? kNeverUs
                        : packs_.begin()->second.batch->death().published_us;
}

GroupPack* GroupPacks::Oldest() {
  return packs_.empty() ? nullptr : &packs_.begin()->second;
}

GroupPack* GroupPacks::After(const GroupPack* pack) {
  const auto it = packs_.upper_bound(pack->first);
  return it == packs_.end() ? nullptr : &it->second;
}

bool GroupPacks::IsNewest(const GroupPack* pack) const {
  return pack->first == packs_.rbegin()->first;
}

uint64_t GroupPacks::DropFresh(GroupPack* pack) {
  const int dropped = pack->fresh();
  if (dropped == 0) return 0;
  TIMECACHED_CHECK(pack == &first_fresh_->second);
  ++first_fresh_;
  pack->next = pack->batch->size();
  fresh_ -= static_cast<uint64_t>(dropped);
  EraseIfDone(pack);
  return static_cast<uint64_t>(dropped);
}

bool GroupPacks::Shrink(GroupPack* pack, absl::Span<const int> events) {
  TIMECACHED_CHECK(pack->fresh() == 0);
  std::shared_ptr<const EventBatch> less = pack->batch->Select(events);
  if (less->bytes() >= pack->batch->bytes()) return false;
  Keep(*less);
  Release(*pack->batch);
  pack->batch = std::move(less);
  pack->next = pack->batch->size();
  return true;
}

}  // namespace timecache::server
