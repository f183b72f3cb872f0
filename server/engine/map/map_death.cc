// The part of a map in which buckets die: by the clock, by RotateNamespace or
// at a limit.

#include <algorithm>
#include <utility>

#include "server/base/memory_reclaimer.h"
#include "server/engine/map/time_cache_map.h"

namespace timecache::server {
namespace {

// Records that one eviction by entries passes or kills, under the locks of all
// shards.
constexpr int kMaxEvictRecords = 256;
// And that one step of AppendRetained sweeps.
constexpr int kMaxAppendSweep = 1'024;

}  // namespace

std::vector<DeadBucket> TimeCacheMap::MergeDue(
    std::vector<Shard::Detached> due) {
  const int64_t width_us = BucketWidthUs(options_);
  std::vector<DeadBucket> buckets;
  // Each shard's generations stand in order of death: merge them.
  std::vector<size_t> next(due.size(), 0);
  for (;;) {
    int64_t death_us = kNeverUs;
    for (size_t i = 0; i < due.size(); ++i) {
      if (next[i] < due[i].size()) {
        death_us = std::min(death_us, due[i][next[i]]->death_us);
      }
    }
    if (death_us == kNeverUs) break;
    DeadBucket& bucket = buckets.emplace_back();
    bucket.death_us = death_us;
    bucket.cause = Cause::kExpired;
    bucket.width_us = width_us;
    for (size_t i = 0; i < due.size(); ++i) {
      if (next[i] == due[i].size() || due[i][next[i]]->death_us != death_us) {
        continue;
      }
      bucket.Add(shards_[i].get(), std::move(due[i][next[i]++]));
    }
  }
  return buckets;
}

void TimeCacheMap::AddDue(std::vector<Shard::Detached> due) {
  sweeper_.Add(MergeDue(std::move(due)), claimed_us_);
}

int64_t TimeCacheMap::DetachDue(int64_t now_us) {
  std::vector<Shard::Detached> due(shards_.size());
  int64_t died = 0;
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards_[i]->DetachDue(now_us, &due[i]);
    for (const auto& generation : due[i]) died += generation->entries;
  }
  if (died > 0) AddDue(std::move(due));
  return died;
}

void TimeCacheMap::AdvanceLocked(int64_t now_us) {
  advances_.fetch_add(1, std::memory_order_relaxed);
  DetachDue(now_us);
  if (now_us > claimed_us_) {
    claimed_us_ = now_us;
    sweeper_.Add({}, claimed_us_);
  }
  if (changes_ != nullptr) changes_->Publish(now_us);
  if (sink_ != nullptr) AddTick();
}

// The sink has all changes that the shards made before they got this time.
void TimeCacheMap::AddTick() {
  const Tick tick = {claimed_us_, sweeper_.end_event(), log_.retained_event(),
                     kills_};
  if (tick.watermark_us <= tick_.watermark_us &&
      tick.next_event == tick_.next_event) {
    return;
  }
  tick_ = tick;
  ticked_us_.store(tick.watermark_us, std::memory_order_release);
  ticked_event_.store(tick.next_event, std::memory_order_release);
  sink_->AddTick(tick);
}

void TimeCacheMap::Permit(const Tick& tick) {
  if (sweeper_.Permit(tick)) {
    Announce(INT64_MIN);
  } else {
    sweeper_.PublishWatermark();
  }
  permitted_us_.store(tick.watermark_us, std::memory_order_release);
  permitted_event_.store(tick.next_event, std::memory_order_release);
}

// Locks all shards, so that the following changes are at one instant for every
// reader, and detaches the generations due then. Returns the latest time that
// any shard has seen.
int64_t TimeCacheMap::LockAll(int64_t now_us, std::vector<Shard::Detached>* due)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (const auto& shard : shards_) shard->Lock();
  for (const auto& shard : shards_) {
    now_us = std::max(now_us, shard->SeenLocked());
  }
  due->resize(shards_.size());
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards_[i]->DetachDueLocked(now_us, &(*due)[i]);
  }
  return now_us;
}

void TimeCacheMap::UnlockAll() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (const auto& shard : shards_) shard->Unlock();
}

int64_t TimeCacheMap::KillOldest(int64_t now_us, Cause cause,
                                 const Usage::Amount* room_for)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<Shard::Detached> due;
  now_us = LockAll(now_us, &due);
  int64_t oldest_us = kNeverUs;
  int64_t youngest_us = 0;
  for (const auto& shard : shards_) {
    oldest_us = std::min(oldest_us, shard->OldestLocked());
    youngest_us = std::max(youngest_us, shard->YoungestLocked());
  }
  // If a watermark of the same tick may have been published, it uses the next
  // tick. It always does so if changes determine the order of deaths: it is
  // then before the deaths by time of that tick.
  const Shard::Kill kill = {
      .death_us = oldest_us,
      .at_us = origin_.journaled ? std::max(now_us, claimed_us_) + kKillTickUs
                                 : std::max(now_us, claimed_us_ + kKillTickUs),
      .number = ++kills_,
      .cause = cause};
  DeadBucket bucket;
  bucket.death_us = kill.at_us;
  bucket.cause = cause;
  bucket.width_us = BucketWidthUs(options_);
  const bool by_entry = room_for != nullptr && oldest_us == youngest_us;
  if (!by_entry || !EvictSome(kill, *room_for, &bucket)) {
    for (const auto& shard : shards_) {
      if (auto generation = shard->KillLocked(kill)) {
        bucket.Add(shard.get(), std::move(generation));
      }
    }
  }
  UnlockAll();
  AddDue(std::move(due));
  const int64_t died = bucket.entries;
  if (died > 0) {
    std::vector<DeadBucket> killed;
    killed.push_back(std::move(bucket));
    sweeper_.Add(std::move(killed), claimed_us_);
  }
  return died;
}

// All entries live in one bucket: only as many of them as needed die, the
// oldest of all shards first. Stops early after kMaxEvictRecords. All shards
// are locked. Returns false if a shard has no room to do so.
bool TimeCacheMap::EvictSome(const Shard::Kill& kill,
                             const Usage::Amount& room_for,
                             DeadBucket* dead) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const int64_t bucket_us = kill.death_us;
  int records = kMaxEvictRecords;
  std::vector<int64_t> oldest_us(shards_.size());
  std::vector<std::unique_ptr<Generation>> killed(shards_.size());
  bool room = true;
  for (size_t i = 0; i < shards_.size(); ++i) {
    oldest_us[i] = shards_[i]->OldestPutLocked(bucket_us, &records);
  }
  while (room && !usage_.Fits(room_for)) {
    const auto next = std::min_element(oldest_us.begin(), oldest_us.end());
    if (*next == kNeverUs || *next == Shard::kNotYet) break;
    const auto i = static_cast<size_t>(next - oldest_us.begin());
    if (killed[i] == nullptr) {
      killed[i] = std::make_unique<Generation>(Generation::kDead);
    }
    room = shards_[i]->EvictOldestLocked(kill, killed[i].get());
    --records;
    *next = shards_[i]->OldestPutLocked(bucket_us, &records);
  }
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (killed[i] == nullptr || killed[i]->entries == 0) continue;
    dead->Add(shards_[i].get(), std::move(killed[i]));
  }
  return room;
}

int64_t TimeCacheMap::Rotate(int64_t now_us) {
  int64_t died;
  {
    absl::MutexLock lock(&advance_mu_);
    died = KillOldest(now_us, Cause::kRotated);
  }
  Announce(now_us);
  return died;
}

void TimeCacheMap::Advance(int64_t now_us) {
  absl::MutexLock lock(&advance_mu_);
  AdvanceLocked(now_us);
}

MapCounts TimeCacheMap::EndWalk(int64_t now_us) {
  absl::MutexLock lock(&advance_mu_);
  AdvanceLocked(now_us);
  return {claimed_us_, sweeper_.end_event(), kills_};
}

bool TimeCacheMap::AppendRetained(int64_t now_us, int64_t max_bytes,
                                  uint64_t* end) {
  if (log_.next_event() < *end) {
    sweeper_.Step(now_us, kMaxAppendSweep);
    return true;
  }
  MapChangeSink* sink;
  {
    absl::MutexLock lock(&advance_mu_);
    sink = sink_;
  }
  std::vector<ExpiredEvent> events;
  while (max_bytes > 0) {
    const auto retained = log_.LastBefore(*end);
    if (!retained.has_value()) return false;
    const EventBatch& batch = *retained->batch;
    const auto count = static_cast<int>(std::min(*end, retained->end_seq()) -
                                        retained->first_seq);
    events.clear();
    for (int i = 0; i < count; ++i) events.push_back(batch.event(i));
    sink->AddRetained(
        {retained->first_seq, retained->appended_us, batch.death(), events});
    max_bytes -= static_cast<int64_t>(batch.encoded().size());
    *end = retained->first_seq;
  }
  return true;
}

bool TimeCacheMap::Sweep(int64_t now_us, int max_records) {
  const bool unswept = sweeper_.Step(now_us, max_records);
  log_.Trim(now_us);
  if (const auto changes = this->changes()) changes->Trim(now_us);
  const bool more = groups_.Advance(now_us);
  const bool reclaiming = MemoryReclaimer::Process().Step();
  if (change_log_ != nullptr) change_log_->Flush();
  return unswept || more || reclaiming;
}

void TimeCacheMap::RefreshWatermark(int64_t now_us, int64_t max_age_us) {
  if (max_age_us > 0 &&
      refreshed_us_.load(std::memory_order_acquire) > now_us - max_age_us) {
    return;
  }
  Advance(now_us);
  sweeper_.PublishWatermark();
  // An earlier time in place of a later one costs an Advance.
  refreshed_us_.store(now_us, std::memory_order_release);
}

}  // namespace timecache::server
