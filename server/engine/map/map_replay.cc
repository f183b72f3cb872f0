#include "server/engine/map/map_replay.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace timecache::server {
namespace {

// Deaths between two questions whether the replay is cancelled.
constexpr int kMaxStep = 1'024;

bool IsKill(const Change& change) {
  return change.kind == Change::Kind::kKill ||
         change.kind == Change::Kind::kEvict;
}

}  // namespace

MapReplay::MapReplay(TimeCacheMap* map)
    : map_(*map),
      groups_(&map->groups_, &map->log_, map->namespace_name_),
      first_event_(map->origin().first_event) {
  map_.log_.SetReplaying(true);
}

void MapReplay::Begin(const MapCounts& counts) {
  absl::MutexLock lock(&map_.advance_mu_);
  map_.kills_ = std::max(map_.kills_, counts.kills);
  if (first_event_ != UINT64_MAX) return;
  first_event_ = counts.next_event;
  silent_ = counts;
  map_.log_.BeginAt(first_event_);
  map_.sweeper_.BeginAt(first_event_);
}

absl::Status MapReplay::Apply(int shard, const Change& change) {
  if (losses_ && (change.more_of_batch || !batch_.empty())) {
    return AddToBatch(shard, change);
  }
  return ApplyOne(shard, change);
}

// Once it is complete: all of it, or none.
absl::Status MapReplay::AddToBatch(int shard, const Change& change) {
  if (absl::Status status = CheckShard(shard); !status.ok()) return status;
  batch_.push_back({shard, change, {}});
  if (change.answer != nullptr) batch_.back().answer = *change.answer;
  if (change.more_of_batch) return absl::OkStatus();
  const std::vector<BatchChange> batch = std::exchange(batch_, {});
  for (const BatchChange& each : batch) {
    if (!map_.shards_[static_cast<size_t>(each.shard)]->CanReplay(
            each.change)) {
      return absl::OkStatus();
    }
  }
  for (const BatchChange& each : batch) {
    Change next = each.change;
    if (next.answer != nullptr) next.answer = &each.answer;
    if (absl::Status s = ApplyOne(each.shard, next); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status MapReplay::CheckShard(int shard) const {
  if (shard >= 0 && shard < static_cast<int>(map_.shards_.size())) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "a change of shard ", shard, ", where there are ", map_.shards_.size()));
}

absl::Status MapReplay::ApplyOne(int shard, const Change& change) {
  if (absl::Status status = CheckShard(shard); !status.ok()) return status;
  Shard* const to = map_.shards_[static_cast<size_t>(shard)].get();
  last_us_ = std::max(
      last_us_, IsKill(change) ? change.at_us - kKillTickUs : change.at_us);
  if (!IsKill(change)) {
    // Until a walk ends, the rest of it may record the entry, with all that was
    // appended.
    if (to->Replay(change, nullptr) || losses_ || first_event_ == UINT64_MAX) {
      return absl::OkStatus();
    }
    return absl::DataLossError(
        absl::StrCat("version ", change.record.version,
                     " of an entry was appended to version ",
                     change.base_version, ", which does not exist"));
  }
  Killed& killed = killed_[{change.at_us, change.kill}];
  killed.cause = change.cause;
  to->Replay(change, &killed.parts[shard]);
  return absl::OkStatus();
}

DeadBucket MapReplay::FirstKilled() {
  auto& [when, killed] = *killed_.begin();
  DeadBucket bucket;
  bucket.death_us = when.first;
  bucket.cause = killed.cause;
  bucket.silent = when.second <= silent_.kills;
  for (auto& [shard, generation] : killed.parts) {
    if (generation == nullptr) continue;
    bucket.Add(map_.shards_[static_cast<size_t>(shard)].get(),
               std::move(generation));
  }
  map_.kills_ = std::max(map_.kills_, when.second);
  killed_.erase(killed_.begin());
  return bucket;
}

std::vector<DeadBucket> MapReplay::TakeDead(const Tick& tick) {
  std::vector<DeadBucket> buckets = TakeDue(tick.watermark_us);
  for (DeadBucket& bucket : buckets) {
    bucket.silent = bucket.death_us <= silent_.watermark_us;
  }
  while (!killed_.empty() && killed_.begin()->first.second <= tick.kills) {
    DeadBucket bucket = FirstKilled();
    if (bucket.entries == 0) continue;
    // After others that were killed at that time, and before those that died by
    // it.
    const auto place = std::find_if(
        buckets.begin(), buckets.end(), [&bucket](const DeadBucket& each) {
          return each.death_us > bucket.death_us ||
                 (each.death_us == bucket.death_us &&
                  each.cause == Cause::kExpired);
        });
    buckets.insert(place, std::move(bucket));
  }
  return buckets;
}

absl::Status MapReplay::Apply(const Tick& tick) {
  if (absl::Status status = AddDeaths(tick); !status.ok()) return status;
  while (map_.sweeper_.Step(tick.watermark_us, kMaxStep)) {
    if (cancelled_ && cancelled_()) return absl::CancelledError("cancelled");
  }
  map_.log_.DropBefore(tick.retained_event);
  return absl::OkStatus();
}

absl::Status MapReplay::AddDeaths(const Tick& tick) {
  absl::MutexLock lock(&map_.advance_mu_);
  last_us_ = std::max(last_us_, tick.watermark_us);
  std::vector<DeadBucket> buckets = TakeDead(tick);
  bool publishes = tick.next_event > first_event_;
  uint64_t end = map_.sweeper_.end_event();
  for (const DeadBucket& bucket : buckets) {
    if (!bucket.silent) end += static_cast<uint64_t>(bucket.entries);
  }
  if (publishes && end != tick.next_event) {
    if (!losses_) {
      return absl::DataLossError(absl::StrCat(
          "the changes until ", tick.watermark_us, " us come to event ", end,
          ", and the tick says ", tick.next_event));
    }
    publishes = false;
    map_.sweeper_.SkipTo(tick.next_event);
  }
  for (DeadBucket& bucket : buckets) bucket.silent |= !publishes;
  map_.claimed_us_ = std::max(map_.claimed_us_, tick.watermark_us);
  map_.kills_ = std::max(map_.kills_, tick.kills);
  map_.tick_ = tick;
  map_.sweeper_.Add(std::move(buckets), map_.claimed_us_);
  map_.sweeper_.Permit(tick);
  return absl::OkStatus();
}

void MapReplay::Apply(const RetainedEvents& events) {
  // Until a walk ends, its own are to come.
  if (first_event_ == UINT64_MAX ||
      events.first_event >= map_.log_.retained_event()) {
    return;
  }
  auto batch = std::make_shared<EventBatch>(map_.namespace_name_, events.death);
  for (const ExpiredEvent& event : events.events) batch->Add(event);
  batch->ShrinkToFit();
  map_.log_.Restore({events.first_event, events.appended_us, std::move(batch)});
}

void MapReplay::Apply(const TimeSkip& skip) {
  if (skip.entries) {
    for (const auto& shard : map_.shards_) shard->Skip(skip);
  }
  map_.log_.SkipTime(skip.to_us - skip.from_us);
  last_us_ = std::max(last_us_, skip.to_us);
}

std::vector<DeadBucket> MapReplay::TakeDue(int64_t now_us) {
  std::vector<Shard::Detached> due(map_.shards_.size());
  for (size_t i = 0; i < due.size(); ++i) {
    map_.shards_[i]->DetachDue(now_us, &due[i]);
  }
  return map_.MergeDue(std::move(due));
}

uint64_t MapReplay::Finish() {
  groups_.Finish(last_us_);
  absl::MutexLock lock(&map_.advance_mu_);
  while (!killed_.empty()) {
    // Entries that were due then died first.
    std::vector<DeadBucket> buckets =
        TakeDue(killed_.begin()->first.first - kKillTickUs);
    DeadBucket bucket = FirstKilled();
    if (bucket.entries > 0) buckets.push_back(std::move(bucket));
    map_.sweeper_.Add(std::move(buckets), map_.claimed_us_);
  }
  map_.log_.SetReplaying(false);
  uint64_t version = 0;
  for (const auto& shard : map_.shards_) {
    version = std::max(version, shard->EndReplay(last_us_));
  }
  return version;
}

}  // namespace timecache::server
