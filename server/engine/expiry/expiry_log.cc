#include "server/engine/expiry/expiry_log.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/check.h"
#include "server/base/clock.h"
#include "server/base/error.h"
#include "server/base/memory_budget.h"

namespace timecache::server {
namespace {

uint64_t RandomId() {
  std::random_device random;
  return std::uniform_int_distribution<uint64_t>(1)(random);
}

void PassOn(uint64_t first_event,
            const std::shared_ptr<const EventBatch>& batch,
            const std::vector<Selections>& selections,
            ExpiryLog::Follower* follower) {
  const absl::string_view prefix = follower->key_prefix();
  if (prefix.empty()) return follower->OnAppend(first_event, batch);
  const auto made = std::find_if(
      selections.begin(), selections.end(),
      [prefix](const Selections& each) { return each.key_prefix() == prefix; });
  // It follows since a moment ago if there is none.
  follower->OnAppendSelected(first_event, made != selections.end()
                                              ? made->Of(batch)
                                              : SelectByPrefix(batch, prefix));
}

}  // namespace

ExpiryLog::ExpiryLog(int64_t retention_us, int64_t retention_bytes,
                     uint64_t first_event, uint64_t id, Content content)
    : id_(id == 0 ? RandomId() : id),
      content_(content),
      retention_us_(retention_us),
      retention_bytes_(retention_bytes),
      next_seq_(first_event) {
  MemoryReclaimer::Process().Add(this);
}

ExpiryLog::~ExpiryLog() {
  MemoryReclaimer::Process().Remove(this);
  MemoryBudget::Process().AddRetained(-bytes_);
}

void ExpiryLog::SetFork(const LogFork& fork) {
  absl::MutexLock lock(&mu_);
  fork_ = fork;
}

LogFork ExpiryLog::fork() const {
  absl::MutexLock lock(&mu_);
  return fork_;
}

void ExpiryLog::Fork() {
  absl::MutexLock lock(&mu_);
  // At the point of the fork before, as after a start that ended early: that
  // one has published nothing, and what was good for it is good for this one.
  const bool again = fork_.id != 0 && fork_.next_event == next_seq_ &&
                     fork_.watermark_us == watermark_us_;
  const uint64_t from_id = again ? fork_.from_id : PointId();
  fork_ = {RandomId(), from_id, next_seq_, watermark_us_};
}

bool ExpiryLog::IsOwn(const Point& point) const {
  if (point.log_id == PointId()) return true;
  return fork_.id != 0 && point.log_id == fork_.from_id &&
         point.next_event <= fork_.next_event &&
         point.watermark_us <= fork_.watermark_us;
}

uint64_t ExpiryLog::next_event() const {
  absl::MutexLock lock(&mu_);
  return next_seq_;
}

int64_t ExpiryLog::bytes() const {
  absl::MutexLock lock(&mu_);
  return bytes_;
}

void ExpiryLog::BeginAt(uint64_t first_event) {
  absl::MutexLock lock(&mu_);
  TIMECACHED_CHECK(retained_.empty());
  next_seq_ = first_event;
}

bool ExpiryLog::Wanted() const {
  absl::MutexLock lock(&mu_);
  return retention_us_ > 0 || replaying_ || hold_until_us_ != INT64_MIN ||
         !cursors_.empty() || !followers_.empty();
}

void ExpiryLog::Append(std::shared_ptr<const EventBatch> batch, int64_t now_us,
                       int64_t watermark_us) {
  Dropped dropped;
  // Before the lock, as it looks at every key.
  const std::vector<Selections> selections = SelectNew(batch);
  absl::MutexLock lock(&mu_);
  watermark_us_ = std::max(watermark_us_, watermark_us);
  AppendLocked(std::move(batch), selections, now_us, &dropped);
  WakeAll();
}

void ExpiryLog::AppendChanges(std::shared_ptr<EventBatch> batch,
                              int64_t now_us) {
  Dropped dropped;
  absl::MutexLock lock(&mu_);
  batch->SetDeathUs(watermark_us_ + 1);
  AppendLocked(std::move(batch), {}, now_us, &dropped);
}

void ExpiryLog::Wake() {
  absl::MutexLock lock(&mu_);
  WakeAll();
}

void ExpiryLog::AppendLocked(std::shared_ptr<const EventBatch> batch,
                             const std::vector<Selections>& selections,
                             int64_t now_us, Dropped* dropped) {
  TIMECACHED_CHECK(retained_.empty() ||
                   retained_.back().batch->death_us() <= batch->death_us());
  bytes_ += batch->bytes();
  MemoryBudget::Process().AddRetained(batch->bytes());
  const uint64_t first_seq = next_seq_;
  next_seq_ += static_cast<uint64_t>(batch->size());
  for (Follower* follower : followers_) {
    PassOn(first_seq, batch, selections, follower);
  }
  retained_.push_back({first_seq, now_us, std::move(batch)});
  // Events of killed entries are published a tick ahead of the clock, which
  // must not shorten their retention.
  TrimLocked(now_us - kKillTickUs, dropped);
}

void ExpiryLog::Skip(uint64_t events) {
  Dropped dropped;
  absl::MutexLock lock(&mu_);
  // A reader may have resumed at a retained event since Wanted returned false.
  // Without such a reader, the gap is before all retained events, where it
  // counts as lost.
  while (!retained_.empty()) DropOldest(&dropped);
  next_seq_ += events;
}

void ExpiryLog::AdvanceWatermark(int64_t watermark_us) {
  absl::MutexLock lock(&mu_);
  watermark_us_ = std::max(watermark_us_, watermark_us);
}

int64_t ExpiryLog::watermark_us() const {
  absl::MutexLock lock(&mu_);
  return watermark_us_;
}

std::unique_ptr<ExpiryLog::Cursor> ExpiryLog::Subscribe(
    Start start, int64_t now_us, uint64_t pending, std::function<void()> wake) {
  auto cursor = std::unique_ptr<Cursor>(new Cursor(this, std::move(wake)));
  absl::MutexLock lock(&mu_);
  if (start == Start::kNow) {
    cursor->next_seq_ = next_seq_ + pending;
    cursor->watermark_us_ = now_us;
  } else {
    cursor->next_seq_ = RetainedEventLocked();
    cursor->watermark_us_ = retained_.empty()
                                ? watermark_us_
                                : retained_.front().batch->death_us() - 1;
  }
  Add(cursor.get());
  return cursor;
}

absl::StatusOr<std::unique_ptr<ExpiryLog::Cursor>> ExpiryLog::Resume(
    const Point& point, uint64_t pending, std::function<void()> wake) {
  absl::MutexLock lock(&mu_);
  if (absl::Status status = CheckPoint(point, pending); !status.ok()) {
    return status;
  }
  auto cursor = std::unique_ptr<Cursor>(new Cursor(this, std::move(wake)));
  cursor->next_seq_ = point.next_event;
  cursor->watermark_us_ = point.watermark_us;
  Add(cursor.get());
  return cursor;
}

absl::Status ExpiryLog::CheckPoint(const Point& point, uint64_t pending) const {
  if (!IsOwn(point)) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, Reason::kLogChanged,
        "the resume point is of another log, from before a restart of the "
        "server, a deletion of the namespace or the restore of a backup: start "
        "again without it");
  }
  const uint64_t end = next_seq_ + pending;
  if (point.next_event > end) {
    return ErrorWithReason(
        absl::StatusCode::kOutOfRange, Reason::kResumePointAhead,
        absl::StrCat("the resume point is at event ", point.next_event,
                     " and the log ends at ", end, ": start again without it"));
  }
  return absl::OkStatus();
}

void ExpiryLog::Add(Cursor* cursor) {
  cursor->first_seq_ = cursor->next_seq_;
  cursors_.insert(cursor);
  ++cursors_at_[cursor->next_seq_];
  AwaitMore(cursor);
}

void ExpiryLog::Unplace(const Cursor& cursor) {
  const auto it = cursors_at_.find(cursor.next_seq_);
  if (--it->second == 0) cursors_at_.erase(it);
}

void ExpiryLog::Unfollow(Follower* follower) {
  absl::MutexLock lock(&mu_);
  if (std::erase(followers_, follower) > 0 && !follower->key_prefix().empty()) {
    --selecting_;
  }
}

ExpiryLog::Cursor::~Cursor() {
  absl::MutexLock lock(&log_->mu_);
  log_->Remove(this);
}

void ExpiryLog::Remove(Cursor* cursor) {
  owed_to_ended_ += EventsFrom(cursor->first_seq_);
  left_ += EventsFrom(cursor->next_seq_);
  cursors_.erase(cursor);
  Unplace(*cursor);
  const size_t at = cursor->waiting_at_;
  if (at == Cursor::kNotWaiting) return;
  waiting_[at] = waiting_.back();
  waiting_[at]->waiting_at_ = at;
  waiting_.pop_back();
}

// A cursor's position may be after events that have died and are not appended
// yet.
uint64_t ExpiryLog::EventsFrom(uint64_t seq) const {
  return next_seq_ > seq ? next_seq_ - seq : 0;
}

ExpiryLog::Chunk ExpiryLog::Cursor::Read(int64_t max_bytes, int max_events,
                                         bool at_least_one) {
  absl::MutexLock lock(&log_->mu_);
  return log_->ReadLocked(this, max_bytes, max_events, at_least_one);
}

ExpiryLog::Point ExpiryLog::Cursor::point() const {
  absl::MutexLock lock(&log_->mu_);
  return {log_->PointId(), next_seq_, watermark_us_};
}

ExpiryLog::Chunk ExpiryLog::ReadLocked(Cursor* cursor, int64_t max_bytes,
                                       int max_events, bool at_least_one) {
  Chunk chunk;
  Unplace(*cursor);
  const uint64_t oldest = RetainedEventLocked();
  if (cursor->next_seq_ < oldest) {
    chunk.lost = oldest - cursor->next_seq_;
    chunk.lost_events = LostFrom(cursor->next_seq_);
    lost_ += chunk.lost;
    cursor->next_seq_ = oldest;
  }
  // The first retained batch that the cursor has not read to its end: the last
  // one that begins at or before the cursor, or the next one. Reads only that
  // one batch, as each is a cache miss under the lock.
  auto it = std::partition_point(
      retained_.begin(), retained_.end(),
      [&](const Retained& r) { return r.first_seq <= cursor->next_seq_; });
  if (it != retained_.begin()) {
    const Retained& last = *std::prev(it);
    const auto events = static_cast<uint64_t>(last.batch->size());
    if (cursor->next_seq_ < last.first_seq + events) --it;
  }
  int64_t bytes = 0;
  int events = 0;
  for (; it != retained_.end(); ++it) {
    std::shared_ptr<const EventBatch> batch = it->batch;
    // A rebuilt log has other batches than the original, so a reader's position
    // may be within a batch.
    if (it->first_seq < cursor->next_seq_) {
      batch = batch->Part(static_cast<int>(cursor->next_seq_ - it->first_seq),
                          batch->size());
    }
    const auto batch_bytes = static_cast<int64_t>(batch->encoded().size());
    if ((!at_least_one || !chunk.batches.empty()) &&
        (bytes + batch_bytes > max_bytes ||
         events + batch->size() > max_events)) {
      break;
    }
    bytes += batch_bytes;
    events += batch->size();
    cursor->next_seq_ += static_cast<uint64_t>(batch->size());
    chunk.batches.push_back(std::move(batch));
  }
  chunk.shared = chunk.batches.size();
  delivered_ += static_cast<uint64_t>(events);
  ++cursors_at_[cursor->next_seq_];
  chunk.more = it != retained_.end();
  if (!chunk.more) AwaitMore(cursor);
  const int64_t complete_us =
      chunk.more ? std::min(watermark_us_, it->batch->death_us() - 1)
                 : watermark_us_;
  cursor->watermark_us_ = std::max(cursor->watermark_us_, complete_us);
  chunk.watermark_us = cursor->watermark_us_;
  chunk.point = {PointId(), cursor->next_seq_, cursor->watermark_us_};
  chunk.closed = closed_ && !chunk.more;
  return chunk;
}

void ExpiryLog::AwaitMore(Cursor* cursor) {
  if (cursor->waiting_at_ != Cursor::kNotWaiting) return;
  cursor->waiting_at_ = waiting_.size();
  waiting_.push_back(cursor);
}

void ExpiryLog::WakeAll() {
  for (Cursor* cursor : waiting_) {
    cursor->waiting_at_ = Cursor::kNotWaiting;
    cursor->wake_();
  }
  waiting_.clear();
}

void ExpiryLog::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
  WakeAll();
}

ExpiryLog::Statistics ExpiryLog::GetStatistics() const {
  absl::MutexLock lock(&mu_);
  Statistics statistics;
  statistics.bytes = bytes_;
  statistics.cursors = static_cast<int64_t>(cursors_.size());
  statistics.owed = owed_to_ended_;
  statistics.delivered = delivered_;
  statistics.lost = lost_;
  statistics.left = left_;
  for (const Cursor* cursor : cursors_) {
    statistics.owed += EventsFrom(cursor->first_seq_);
    statistics.pending += EventsFrom(cursor->next_seq_);
  }
  const uint64_t least =
      cursors_at_.empty() ? next_seq_ : cursors_at_.begin()->first;
  statistics.max_pending = EventsFrom(least);
  const auto unread = std::partition_point(
      retained_.begin(), retained_.end(),
      [least](const Retained& r) { return r.end_seq() <= least; });
  if (unread != retained_.end()) {
    statistics.oldest_unread_us = unread->batch->death_us();
  }
  statistics.reclaimed = reclaimed_;
  if (!retained_.empty()) {
    statistics.events = next_seq_ - retained_.front().first_seq;
    statistics.oldest_us = retained_.front().appended_us;
  }
  return statistics;
}

}  // namespace timecache::server
