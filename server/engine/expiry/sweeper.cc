#include "server/engine/expiry/sweeper.h"

#include <algorithm>
#include <utility>

#include "server/base/check.h"

namespace timecache::server {

void Sweeper::CountDeaths(const DeadBucket& bucket) {
  statistics_.died_by_cause[static_cast<size_t>(bucket.cause)] +=
      static_cast<uint64_t>(bucket.entries);
}

void Sweeper::Add(std::vector<DeadBucket> buckets, int64_t complete_us) {
  absl::MutexLock lock(&queue_mu_);
  for (DeadBucket& bucket : buckets) {
    if (!bucket.silent) end_event_ += static_cast<uint64_t>(bucket.entries);
    bucket.end_event = end_event_;
    CountDeaths(bucket);
    queue_.push_back(std::move(bucket));
  }
  complete_us_ = std::max(complete_us_, complete_us);
}

bool Sweeper::HasWork() const {
  absl::MutexLock lock(&queue_mu_);
  return !queue_.empty() && IsPermitted(queue_.front());
}

uint64_t Sweeper::end_event() const {
  absl::MutexLock lock(&queue_mu_);
  return end_event_;
}

void Sweeper::BeginAt(uint64_t first_event) {
  absl::MutexLock lock(&queue_mu_);
  end_event_ = first_event;
}

void Sweeper::SkipTo(uint64_t event) {
  absl::MutexLock lock(&queue_mu_);
  TIMECACHED_CHECK(queue_.empty());
  if (event <= end_event_) return;
  log_->Skip(event - end_event_);
  end_event_ = event;
}

bool Sweeper::Permit(const Tick& tick) {
  absl::MutexLock lock(&queue_mu_);
  permitted_ = tick;
  for (auto it = queue_.rbegin(); it != queue_.rend(); ++it) {
    if (it->permitted_us != kNeverUs) break;
    if (IsPermitted(*it)) it->permitted_us = tick.watermark_us;
  }
  return !queue_.empty() && IsPermitted(queue_.front());
}

bool Sweeper::IsBehind() const {
  absl::MutexLock lock(&queue_mu_);
  return queue_.size() > kMaxWaiting;
}

void Sweeper::PublishWatermark() {
  absl::MutexLock lock(&queue_mu_);
  log_->AdvanceWatermark(WatermarkAfter(0));
}

// The watermark once the first `buckets` of the queue are published.
int64_t Sweeper::WatermarkAfter(size_t buckets) const {
  const int64_t complete_us =
      queue_.size() > buckets ? queue_[buckets].death_us - 1 : complete_us_;
  return journaled_ ? std::min(complete_us, permitted_.watermark_us)
                    : complete_us;
}

// Events of buckets that died and are not in the log yet.
uint64_t Sweeper::Pending(int64_t until_us) const {
  int64_t pending = 0;
  for (const DeadBucket& bucket : queue_) {
    if (!bucket.silent && bucket.death_us <= until_us) {
      pending += bucket.entries;
    }
  }
  return static_cast<uint64_t>(std::max<int64_t>(pending - walk_.appended, 0));
}

std::unique_ptr<ExpiryLog::Cursor> Sweeper::Subscribe(
    ExpiryLog::Start start, int64_t now_us, std::function<void()> wake) {
  absl::MutexLock step_lock(&step_mu_);
  absl::MutexLock lock(&queue_mu_);
  uint64_t pending = Pending();
  for (const DeadBucket& bucket : queue_) {
    if (IsPermitted(bucket)) continue;
    // A crash could undo its events, and assign their numbers to others: the
    // cursor, whose position clients see, stays before them.
    now_us = std::min(now_us, bucket.death_us - 1);
    pending -= static_cast<uint64_t>(bucket.entries);
  }
  return log_->Subscribe(start, now_us, pending, std::move(wake));
}

absl::StatusOr<std::unique_ptr<ExpiryLog::Cursor>> Sweeper::Resume(
    const ExpiryLog::Point& point, std::function<void()> wake) {
  absl::MutexLock step_lock(&step_mu_);
  absl::MutexLock lock(&queue_mu_);
  return log_->Resume(point, Pending(), std::move(wake));
}

absl::StatusOr<LogPlace> Sweeper::FollowAt(ExpiryLog::Follower* follower,
                                           const LogPosition& position,
                                           const Selections& made) {
  absl::MutexLock step_lock(&step_mu_);
  absl::MutexLock lock(&queue_mu_);
  return log_->FollowAt(follower, position, PendingBefore(position), made);
}

absl::StatusOr<LogPlace> Sweeper::MoveTo(const LogPosition& position,
                                         const Selections& made,
                                         ExpiryLog::Move move) {
  absl::MutexLock step_lock(&step_mu_);
  absl::MutexLock lock(&queue_mu_);
  return log_->MoveTo(position, PendingBefore(position), made, move);
}

uint64_t Sweeper::PendingBefore(const LogPosition& position) const {
  return Pending(position.kind == LogPosition::Kind::kTime ? position.time_us
                                                           : INT64_MAX);
}

DeadBucket* Sweeper::Front() {
  absl::MutexLock lock(&queue_mu_);
  return !queue_.empty() && IsPermitted(queue_.front()) ? &queue_.front()
                                                        : nullptr;
}

bool Sweeper::Step(int64_t now_us, int max_records) {
  absl::MutexLock lock(&step_mu_);
  while (DeadBucket* bucket = Front()) {
    // It died after this step started, whose time its events would have.
    // (Buckets that waited for a permit died before.)
    if (!journaled_ && bucket->death_us > now_us + kKillTickUs) return true;
    if (walk_.part == 0 && walk_.phase == Phase::kBegin) {
      walk_.wanted = !bucket->silent && log_->Wanted();
    }
    while (walk_.part < bucket->parts.size()) {
      if (max_records <= 0) {
        // Events carry the time of their step: they do not wait for the next
        // one.
        if (walk_.batch != nullptr) AppendBatch(now_us, bucket->death_us - 1);
        return true;
      }
      max_records -= StepPart(*bucket, now_us, max_records);
    }
    Finish(*bucket, now_us);
  }
  PublishWatermark();
  return false;
}

// Continues the part at walk_. Returns how many records were walked or
// published or segments freed: at least 1, at most `max_records`.
int Sweeper::StepPart(const DeadBucket& bucket, int64_t now_us,
                      int max_records) {
  const DeadBucket::Part& part = bucket.parts[walk_.part];
  switch (walk_.phase) {
    case Phase::kBegin:
      walk_.phase = Phase::kWalk;
      walk_.segment = part.generation->first;
      if (journaled_ && walk_.wanted) {
        // A growing vector copies all its elements in one step.
        walk_.ordered.reserve(static_cast<size_t>(part.generation->entries));
      }
      [[fallthrough]];
    case Phase::kWalk:
      return WalkSegment(bucket, now_us, max_records);
    case Phase::kDeliver:
      return DeliverOrdered(bucket, now_us, max_records);
    case Phase::kFree:
      break;
  }
  return FreeSegments(part, max_records);
}

// Walks the segment at walk_ until its end or for `max_records`, and goes on
// to the next segment or part. Returns how many records were walked, at
// least 1.
int Sweeper::WalkSegment(const DeadBucket& bucket, int64_t now_us,
                         int max_records) {
  const DeadBucket::Part& part = bucket.parts[walk_.part];
  const Segment& segment = *part.shard->DeadSegment(walk_.segment);
  const size_t found = walk_.ordered.size();
  int walked = 0;
  while (walk_.offset < segment.used && walked < max_records) {
    std::array<Shard::DeadRecord, Shard::kSweepLockRecords> erase;
    std::array<Record, Shard::kSweepLockRecords> records;
    size_t count = 0;
    const size_t most =
        std::min(erase.size(), static_cast<size_t>(max_records - walked));
    while (count < most && walk_.offset < segment.used) {
      size_t size;
      records[count] = segment.Read(walk_.offset, &size);
      erase[count].tag =
          CompactIndex::TagOf(part.shard->key_hash()(records[count].key));
      erase[count].ref = MakeRef(walk_.segment, walk_.offset);
      walk_.offset += static_cast<uint32_t>(size);
      ++count;
    }
    part.shard->EraseDead(absl::MakeSpan(erase.data(), count));
    for (size_t i = 0; i < count; ++i) {
      if (!erase[i].live) continue;
      ++walk_.live_in_part;
      if (!walk_.wanted) continue;
      if (journaled_) {
        walk_.ordered.push_back(
            {records[i].version, &segment, OffsetOf(erase[i].ref)});
      } else {
        Deliver(bucket, records[i], now_us);
      }
    }
    walked += static_cast<int>(count);
  }
  AddRun(found);
  if (walk_.offset < segment.used) return walked;
  const SegmentId next = segment.next;
  // Records that are published later stay until then.
  if (walk_.ordered.empty()) part.shard->FreeDead(walk_.segment);
  walk_.segment = next;
  walk_.offset = 0;
  if (next == kNoSegment) {
    if (walk_.ordered.empty()) {
      EndPart(part);
    } else {
      std::make_heap(walk_.runs.begin(), walk_.runs.end());
      walk_.phase = Phase::kDeliver;
    }
  }
  return std::max(walked, 1);
}

// Sorts the records that a step has found, from number `begin` on. They extend
// the last run if possible, as they do if no entry was renewed.
void Sweeper::AddRun(size_t begin) {
  std::vector<Live>& ordered = walk_.ordered;
  if (begin == ordered.size()) return;
  std::sort(ordered.begin() + static_cast<ptrdiff_t>(begin), ordered.end(),
            [](const Live& a, const Live& b) { return a.version < b.version; });
  if (begin == 0 || ordered[begin].version < ordered[begin - 1].version) {
    walk_.runs.push_back({ordered[begin].version, begin, ordered.size()});
  } else {
    walk_.runs.back().end = ordered.size();
  }
}

// Publishes some of the records that the walk of a part has found: merges the
// runs.
int Sweeper::DeliverOrdered(const DeadBucket& bucket, int64_t now_us,
                            int max_records) {
  std::vector<Run>& runs = walk_.runs;
  int delivered = 0;
  while (!runs.empty() && delivered < max_records) {
    std::pop_heap(runs.begin(), runs.end());
    Run& run = runs.back();
    const Live& live = walk_.ordered[run.next++];
    if (run.next == run.end) {
      runs.pop_back();
    } else {
      run.version = walk_.ordered[run.next].version;
      std::push_heap(runs.begin(), runs.end());
    }
    size_t size;
    Deliver(bucket, live.segment->Read(live.offset, &size), now_us);
    ++delivered;
  }
  if (runs.empty()) {
    walk_.ordered.clear();
    walk_.segment = bucket.parts[walk_.part].generation->first;
    walk_.phase = Phase::kFree;
  }
  return delivered;
}

// Frees some of the segments that the walk of a part has left for
// DeliverOrdered.
int Sweeper::FreeSegments(const DeadBucket::Part& part, int max_segments) {
  int freed = 0;
  while (walk_.segment != kNoSegment && freed < max_segments) {
    const SegmentId next = part.shard->DeadSegment(walk_.segment)->next;
    part.shard->FreeDead(walk_.segment);
    walk_.segment = next;
    ++freed;
  }
  if (walk_.segment == kNoSegment) EndPart(part);
  return freed;
}

void Sweeper::EndPart(const DeadBucket::Part& part) {
  // The shard's count, and the records that its index still referred to.
  TIMECACHED_CHECK(walk_.live_in_part == part.generation->entries);
  walk_.live += std::exchange(walk_.live_in_part, 0);
  ++walk_.part;
  walk_.phase = Phase::kBegin;
}

void Sweeper::Deliver(const DeadBucket& bucket, const Record& record,
                      int64_t now_us) {
  const ExpiredEvent event = record.view();
  if (walk_.batch != nullptr && !walk_.batch->HasRoomFor(event)) {
    AppendBatch(now_us, bucket.death_us - 1);
  }
  if (walk_.batch == nullptr) {
    const int64_t published_us = journaled_ ? bucket.permitted_us : now_us;
    const Death death = {bucket.death_us,
                         std::max(published_us, bucket.death_us), bucket.cause};
    walk_.batch = std::make_shared<EventBatch>(name_, death);
    walk_.batch->Reserve(bucket.entries - walk_.appended,
                         bucket.bytes - walk_.appended_bytes);
  }
  walk_.batch->Add(event);
}

void Sweeper::AppendBatch(int64_t now_us, int64_t watermark_us) {
  walk_.batch->ShrinkToFit();
  walk_.appended += walk_.batch->size();
  walk_.appended_bytes += walk_.batch->payload_bytes();
  now_us = std::max(now_us, walk_.batch->death_us());
  log_->Append(std::exchange(walk_.batch, nullptr), now_us, watermark_us);
}

void Sweeper::Finish(const DeadBucket& bucket, int64_t now_us) {
  TIMECACHED_CHECK(walk_.live == bucket.entries);
  const auto entries = static_cast<uint64_t>(bucket.entries);
  const int64_t lateness_us = std::max(now_us - bucket.death_us, int64_t{0});
  // Destroyed after the lock.
  DeadBucket done;
  absl::MutexLock lock(&queue_mu_);
  if (walk_.batch != nullptr) {
    AppendBatch(now_us, WatermarkAfter(1));
  } else {
    if (!walk_.wanted && !bucket.silent) log_->Skip(entries);
    log_->AdvanceWatermark(WatermarkAfter(1));
  }
  walk_ = Walk();
  if (bucket.death_us > up_since_us_) {
    statistics_.lateness.Add(lateness_us, entries);
    if (lateness_us > bucket.width_us) statistics_.bound_violations += entries;
  } else if (bucket.cause == Cause::kExpired) {
    statistics_.expired_while_down += entries;
  }
  done = std::move(queue_.front());
  queue_.pop_front();
}

void Sweeper::BeginStatistics(int64_t up_since_us) {
  absl::MutexLock lock(&queue_mu_);
  up_since_us_ = up_since_us;
  statistics_ = Statistics();
  for (const DeadBucket& bucket : queue_) CountDeaths(bucket);
}

Sweeper::Statistics Sweeper::GetStatistics() const {
  absl::MutexLock lock(&queue_mu_);
  return statistics_;
}

}  // namespace timecache::server
