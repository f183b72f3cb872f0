#include "server/engine/groups/kept_events.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/base/check.h"

namespace timecache::server {
namespace {

// Smaller batches are not worth a copy.
constexpr int kMinShrunk = 16;

bool SameDeath(const Death& a, const Death& b) {
  return a.death_us == b.death_us && a.published_us == b.published_us &&
         a.cause == b.cause;
}

// Removes settled events from the batch.
void Shrink(KeptBatch* kept) {
  std::vector<int> indexes;
  std::vector<uint32_t> places;
  for (int i = 0; i < kept->batch->size(); ++i) {
    if (!kept->keeps(i)) continue;
    indexes.push_back(i);
    places.push_back(static_cast<uint32_t>(kept->number(i) - kept->first));
  }
  kept->batch = kept->batch->Select(indexes);
  kept->places = std::move(places);
  kept->settled.clear();
}

}  // namespace

int KeptBatch::IndexFrom(uint64_t number) const {
  if (number <= first) return 0;
  if (!places.empty()) {
    return static_cast<int>(
        std::lower_bound(places.begin(), places.end(), number - first) -
        places.begin());
  }
  return static_cast<int>(
      std::min(number - first, static_cast<uint64_t>(batch->size())));
}

void KeptBatch::Settle(int i) {
  settled.resize(static_cast<size_t>(batch->size()));
  settled[static_cast<size_t>(i)] = true;
  --kept;
}

void KeptEvents::Append(uint64_t first, const SelectedEvents& batch,
                        uint64_t from) {
  Seal();
  if (from > first) {
    // Only the first batch of a group: its numbers before `from` may be those
    // of events that are inserted.
    if (from - first < static_cast<uint64_t>(batch.size)) {
      Append(from, batch.From(static_cast<int>(from - first)), from);
    }
    return;
  }
  if (batch.count() == 0) return;
  KeptBatch kept = {batch.batch, first, {}, {}, 0};
  if (batch.places != nullptr) kept.places = *batch.places;
  kept.kept = kept.batch->size();
  size_ += static_cast<uint64_t>(kept.kept);
  const bool added = batches_.emplace(first, std::move(kept)).second;
  TIMECACHED_CHECK(added);
}

template <typename Map>
auto KeptEvents::FirstFrom(Map* batches, uint64_t number) {
  auto it = batches->upper_bound(number);
  return it == batches->begin() ? it : std::prev(it);
}

bool KeptEvents::FitsOpen(uint64_t number, const ExpiredEvent& event,
                          const Death& death) const {
  if (open_ == nullptr || !SameDeath(open_->death(), death) ||
      !open_->HasRoomFor(event)) {
    return false;
  }
  const auto open = batches_.find(open_first_);
  const auto after = std::next(open);
  return open->second.number(open_->size() - 1) < number &&
         number - open_first_ <= UINT32_MAX &&
         (after == batches_.end() || number < after->first);
}

void KeptEvents::Insert(uint64_t number, const ExpiredEvent& event,
                        const Death& death) {
  if (!FitsOpen(number, event, death)) {
    Seal();
    const auto before = FirstFrom(&batches_, number);
    if (before != batches_.end() && before->first <= number &&
        before->second.IndexFrom(number) < before->second.batch->size()) {
      // Within a batch: it is kept, or settled.
      return;
    }
    open_ = std::make_shared<EventBatch>(map_, death);
    open_first_ = number;
    batches_.emplace(number, KeptBatch{open_, number, {}, {}, 0});
  }
  open_->Add(event);
  KeptBatch& kept = batches_.find(open_first_)->second;
  kept.places.push_back(static_cast<uint32_t>(number - open_first_));
  ++kept.kept;
  ++size_;
}

void KeptEvents::Seal() {
  if (open_ == nullptr) return;
  std::exchange(open_, nullptr)->ShrinkToFit();
}

void KeptEvents::Remove(uint64_t first, uint64_t end) {
  Seal();
  auto it = FirstFrom(&batches_, first);
  while (it != batches_.end() && it->first < end) {
    KeptBatch& kept = it->second;
    const int behind = kept.IndexFrom(end);
    for (int i = kept.IndexFrom(first); i < behind; ++i) {
      if (!kept.keeps(i)) continue;
      kept.Settle(i);
      --size_;
    }
    if (kept.kept == 0) {
      it = batches_.erase(it);
      continue;
    }
    if (kept.batch->size() >= kMinShrunk &&
        2 * kept.kept <= kept.batch->size()) {
      Shrink(&kept);
    }
    ++it;
  }
}

void KeptEvents::CutFrom(uint64_t number) {
  Seal();
  while (!batches_.empty()) {
    const auto last = std::prev(batches_.end());
    KeptBatch& kept = last->second;
    const int end = kept.IndexFrom(number);
    if (end == kept.batch->size()) return;
    for (int i = end; i < kept.batch->size(); ++i) {
      if (!kept.keeps(i)) continue;
      --kept.kept;
      --size_;
    }
    if (kept.kept == 0) {
      batches_.erase(last);
      continue;
    }
    kept.batch = kept.batch->Part(0, end);
    if (!kept.places.empty()) kept.places.resize(static_cast<size_t>(end));
    if (!kept.settled.empty()) kept.settled.resize(static_cast<size_t>(end));
    return;
  }
}

uint64_t KeptEvents::CountFrom(uint64_t number) const {
  uint64_t count = 0;
  Visit(number, UINT64_MAX, [&count](uint64_t /*number*/) { ++count; });
  return count;
}

void KeptEvents::Visit(uint64_t first, uint64_t end,
                       absl::FunctionRef<void(uint64_t number)> visit) const {
  for (auto it = FirstFrom(&batches_, first);
       it != batches_.end() && it->first < end; ++it) {
    const KeptBatch& kept = it->second;
    const int behind = kept.IndexFrom(end);
    for (int i = kept.IndexFrom(first); i < behind; ++i) {
      if (kept.keeps(i)) visit(kept.number(i));
    }
  }
}

std::vector<KeptBatch> KeptEvents::Take() {
  Seal();
  std::vector<KeptBatch> all;
  all.reserve(batches_.size());
  for (auto& [number, kept] : batches_) {
    const auto size = static_cast<uint32_t>(kept.batch->size());
    if (!kept.places.empty() &&
        kept.places.back() - kept.places.front() + 1 == size) {
      kept.first += kept.places.front();
      kept.places.clear();
    }
    all.push_back(std::move(kept));
  }
  batches_.clear();
  size_ = 0;
  return all;
}

}  // namespace timecache::server
