#include "server/engine/expiry/expiring_feed.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/engine/expiry/expiring_cursor.h"

namespace timecache::server {

absl::StatusOr<std::unique_ptr<ExpiringCursor>> ExpiringFeed::Subscribe(
    Options options, std::function<void()> wake) {
  std::unique_ptr<ExpiringCursor> cursor(
      new ExpiringCursor(this, std::move(options), std::move(wake)));
  // Its destructor acquires the lock, too.
  {
    absl::MutexLock lock(&mu_);
    if (cursors_.size() < kMaxCursors) {
      if (cursors_.empty()) TrackShards(true);
      cursors_.insert(cursor.get());
      cursor->next_batch_ = NextBatch();
      return cursor;
    }
  }
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, Reason::kMaxExpiringWatchers,
      absl::StrCat("namespace ", name_, " has its most streams, ", kMaxCursors,
                   ", of WatchExpiring: share one"),
      {{"namespace", name_}});
}

void ExpiringFeed::Remove(ExpiringCursor* cursor) {
  absl::MutexLock lock(&mu_);
  if (cursors_.erase(cursor) == 0) return;
  int64_t until_us = INT64_MIN;
  for (const ExpiringCursor* other : cursors_) {
    until_us = std::max(until_us, other->tracked_us_);
  }
  track_until_us_.store(until_us, std::memory_order_relaxed);
  if (!cursors_.empty()) return;
  TrackShards(false);
  look_.reset();
  ended_looks_ = begun_looks_;
  while (!batches_.empty()) DropOldest();
}

void ExpiringFeed::TrackShards(bool track) {
  const size_t each = std::max<size_t>(kMaxChanges / shards_->size(), 1);
  for (const auto& shard : *shards_) {
    shard->TrackChanges(track ? &track_until_us_ : nullptr, each);
  }
}

void ExpiringFeed::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
  for (ExpiringCursor* cursor : cursors_) cursor->wake_();
}

bool ExpiringFeed::closed() const {
  absl::MutexLock lock(&mu_);
  return closed_;
}

int64_t ExpiringFeed::cursors() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int64_t>(cursors_.size());
}

int64_t ExpiringFeed::memory_bytes() const {
  absl::MutexLock lock(&mu_);
  return bytes_;
}

ExpiringFeed::Statistics ExpiringFeed::GetStatistics() const {
  absl::MutexLock lock(&mu_);
  return {begun_looks_, records_};
}

// A put after the cursor's next lock of a shard honours it; the cursor reads
// the entry of an earlier put.
void ExpiringFeed::Track(ExpiringCursor* cursor, int64_t until_us) {
  absl::MutexLock lock(&mu_);
  cursor->tracked_us_ = until_us;
  if (until_us > track_until_us_.load(std::memory_order_relaxed)) {
    track_until_us_.store(until_us, std::memory_order_relaxed);
  }
}

uint64_t ExpiringFeed::NextLook() const {
  absl::MutexLock lock(&mu_);
  return begun_looks_ + 1;
}

bool ExpiringFeed::FinishLook(uint64_t number, int64_t now_us) {
  absl::MutexLock lock(&mu_);
  if (ended_looks_ < number) LookStep(now_us);
  return ended_looks_ >= number;
}

void ExpiringFeed::LookStep(int64_t now_us) {
  if (look_ == nullptr) {
    look_ = std::make_unique<Look>();
    look_->begun_us = now_us;
    ++begun_looks_;
  }
  const auto found = [this](int64_t death_us, const Record& record) {
    mu_.AssertHeld();
    Found(death_us, record);
  };
  if ((*shards_)[look_->shard]->ReadChanges(now_us, &look_->until_change,
                                            &look_->missed, found)) {
    look_->until_change = 0;
    if (++look_->shard == shards_->size()) EndLook();
  }
}

void ExpiringFeed::Found(int64_t death_us, const Record& record) {
  ++records_;
  if (look_->missed) return;
  const ExpiredEvent event = record.view();
  auto& batches = look_->batches[death_us];
  if (batches.empty() || !batches.back()->HasRoomFor(event)) {
    const Death death = {death_us, look_->begun_us, Cause::kExpiring};
    batches.push_back(std::make_shared<EventBatch>(name_, death));
  }
  EventBatch& batch = *batches.back();
  look_->bytes -= batch.bytes();
  batch.Add(event);
  look_->bytes += batch.bytes();
  if (look_->bytes <= kMaxBytes) return;
  look_->missed = true;
  look_->batches.clear();
}

void ExpiringFeed::EndLook() {
  looked_us_ = look_->begun_us;
  ended_looks_ = begun_looks_;
  for (auto& [death_us, batches] : look_->batches) {
    for (std::shared_ptr<EventBatch>& batch : batches) {
      batch->ShrinkToFit();
      bytes_ += batch->bytes();
      batches_.push_back(std::move(batch));
    }
  }
  uint64_t needed = NextBatch();
  for (const ExpiringCursor* cursor : cursors_) {
    needed = std::min(needed, cursor->next_batch_);
  }
  while (!batches_.empty() && (first_batch_ < needed || bytes_ > kMaxBytes)) {
    DropOldest();
  }
  if (look_->missed) {
    while (!batches_.empty()) DropOldest();
    // A gap for all cursors.
    ++first_batch_;
  }
  look_.reset();
}

void ExpiringFeed::DropOldest() {
  bytes_ -= batches_.front()->bytes();
  batches_.pop_front();
  ++first_batch_;
}

ExpiringFeed::Taking ExpiringFeed::Take(ExpiringCursor* cursor,
                                        int64_t front_us, int64_t now_us,
                                        int* events_left, int64_t* bytes_left,
                                        std::vector<BatchRef>* batches,
                                        int64_t* until_us) {
  absl::MutexLock lock(&mu_);
  *until_us = looked_us_;
  while (!batches_.empty() &&
         batches_.front()->death().published_us + kMaxAgeUs < now_us) {
    DropOldest();
  }
  uint64_t& next = cursor->next_batch_;
  if (next < first_batch_) {
    next = NextBatch();
    return Taking::kMissed;
  }
  for (; next < NextBatch(); ++next) {
    const BatchRef& batch = batches_[next - first_batch_];
    // One that is dead, or that the cursor will reach.
    if (batch->death_us() <= now_us || batch->death_us() > front_us) continue;
    const auto bytes = static_cast<int64_t>(batch->encoded().size());
    if (!batches->empty() &&
        (batch->size() > *events_left || bytes > *bytes_left)) {
      return Taking::kSome;
    }
    *events_left -= batch->size();
    *bytes_left -= bytes;
    batches->push_back(batch);
  }
  return Taking::kAll;
}

}  // namespace timecache::server
