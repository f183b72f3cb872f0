#include "server/engine/map/time_cache_map.h"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/check.h"
#include "server/base/error.h"
#include "server/base/memory_reclaimer.h"
#include "server/base/range_check.h"

namespace timecache::server {
namespace {

uint64_t RandomSeed() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

TimeCacheMap::Origin WithSeed(TimeCacheMap::Origin origin) {
  while (origin.hash_seed == 0) origin.hash_seed = RandomSeed();
  return origin;
}

absl::Status CheckKey(absl::string_view key) {
  if (key.empty()) return InvalidField("key", "must not be empty");
  return InvalidField("key", absl::StrCat("must be at most ", kMaxKeyBytes,
                                          " bytes, not ", key.size()));
}

}  // namespace

TimeCacheMap::TimeCacheMap(std::string name, const NamespaceOptions& options,
                           Usage* server_usage, int64_t created_us,
                           Origin origin)
    : TimeCacheMap(std::move(name), options, ShareOf(options), server_usage,
                   created_us, origin) {}

TimeCacheMap::TimeCacheMap(std::string name, const NamespaceOptions& options,
                           const NamespaceOptions& share, Usage* server_usage,
                           int64_t created_us, const Origin& origin)
    : name_(std::move(name)),
      namespace_name_(PlaceOf(name_).namespace_name),
      partition_(PlaceOf(name_).partition),
      num_partitions_(options.num_partitions),
      shard_mask_(static_cast<uint64_t>(options.num_shards) - 1),
      origin_(WithSeed(origin)),
      key_hash_(origin_.hash_seed),
      created_us_(created_us),
      own_versions_(created_us),
      key_sample_(key_hash_("")),
      rate_limit_(share.max_operations_per_second, created_us),
      usage_(share.max_entries, share.max_bytes, server_usage),
      log_(options.retention_us, share.retention_bytes, origin.first_event,
           origin.log_id),
      sweeper_(namespace_name_, &log_, origin.journaled),
      expiring_(namespace_name_, &shards_),
      options_(options),
      max_ttl_us_(options.max_ttl_us),
      max_value_bytes_(options.max_value_bytes),
      evict_(options.limit_policy == LimitPolicy::kEvictOldest),
      takes_ids_(options.idempotency_window_us != 0),
      pauses_(options.restart_policy == RestartPolicy::kPause) {
  for (int i = 0; i < options.num_shards; ++i) {
    shards_.push_back(std::make_unique<Shard>(
        share, &usage_, &buckets_,
        origin.versions != nullptr ? origin.versions : &own_versions_,
        key_hash_, &key_sample_));
  }
  groups_.SetOptions(share);
  SetLogFork(origin.fork);
  absl::MutexLock lock(&advance_mu_);
  SetChanges(share, created_us);
}

void TimeCacheMap::SetLogFork(const LogFork& fork) {
  log_.SetFork(fork);
  groups_.SetFork(fork.id);
}

void TimeCacheMap::ForkLog() {
  log_.Fork();
  groups_.SetFork(log_.fork().id);
}

// The server's account outlives the map: what is still live here leaves it.
TimeCacheMap::~TimeCacheMap() {
  if (change_log_ != nullptr) change_log_->Flush();
  usage_.Subtract(usage_.entries(), usage_.bytes());
}

// Of an operation with a time until which the entry lives.
absl::Status TimeCacheMap::CheckExpireAt(const Operation& op,
                                         int64_t now_us) const {
  const auto text = [](int64_t time_us) {
    return absl::FormatTime(absl::FromUnixMicros(time_us), absl::UTCTimeZone());
  };
  if (op.keep_deadline) {
    return InvalidField("keep_deadline", "must not be set with an expire_at");
  }
  if (!op.has_expire_at) {
    return InvalidField("allow_past", "must not be set without an expire_at");
  }
  if (op.expire_at_us <= now_us && !op.allow_past) {
    return InvalidField(
        "expire_at",
        absl::StrCat("must be after the server's time of ", text(now_us),
                     ", not ", text(op.expire_at_us),
                     ": with allow_past the entry expires at once"));
  }
  const int64_t max_ttl_us = max_ttl_us_.load(std::memory_order_relaxed);
  if (op.expire_at_us <= now_us || op.expire_at_us - now_us <= max_ttl_us) {
    return absl::OkStatus();
  }
  return InvalidField(
      "expire_at",
      absl::StrCat("must be no later than the namespace's max_ttl of ",
                   absl::FormatDuration(absl::Microseconds(max_ttl_us)),
                   " from now, which is ", text(now_us + max_ttl_us), ", not ",
                   text(op.expire_at_us)));
}

// Of an operation with a traceparent or an idempotency id.
absl::Status TimeCacheMap::CheckMarks(const Operation& op) const {
  if (op.trace_bytes != 0 && !IsTraceparent(op.trace())) {
    return InvalidField(
        "traceparent",
        "must be a W3C traceparent of version 00: 00-<32 hex digits>-<16>-<2>, "
        "in lower case, neither of the first two all zeros");
  }
  if (op.id_bytes == 0) return absl::OkStatus();
  if (op.id_bytes > kMaxIdempotencyIdBytes) {
    return InvalidField(
        "idempotency_id",
        absl::StrCat("must be at most ", kMaxIdempotencyIdBytes, " bytes"));
  }
  if (op.return_previous) {
    return InvalidField("return_previous",
                        "must not be set with an idempotency_id: the entry is "
                        "not remembered");
  }
  if (takes_ids_.load(std::memory_order_relaxed)) return absl::OkStatus();
  return InvalidField(
      "idempotency_id",
      absl::StrCat("needs an idempotency_window, and namespace ",
                   namespace_name_, " has none"));
}

absl::Status TimeCacheMap::Check(const Operation& op, int64_t now_us) const {
  if (op.key.empty() || op.key.size() > kMaxKeyBytes) return CheckKey(op.key);
  const int64_t max_ttl_us = max_ttl_us_.load(std::memory_order_relaxed);
  if (op.has_ttl && (op.ttl_us < kMinTtlUs || op.ttl_us > max_ttl_us)) {
    return InvalidField(
        "ttl",
        absl::StrCat("must be between 1ms and the namespace's max_ttl of ",
                     absl::FormatDuration(absl::Microseconds(max_ttl_us)),
                     ", not ",
                     absl::FormatDuration(absl::Microseconds(op.ttl_us))));
  }
  if (op.keep_deadline && op.has_ttl) {
    return InvalidField("keep_deadline", "must not be set with a ttl");
  }
  if (op.namespace_ttl && op.has_ttl) {
    return InvalidField("namespace_ttl", "must not be set with a ttl");
  }
  if ((op.id_bytes | op.trace_bytes) != 0) {
    if (absl::Status s = CheckMarks(op); !s.ok()) return s;
  }
  if (op.gathering != nullptr && op.gathering->remember_us != 0 &&
      (op.gathering->remember_us < kMinTtlUs ||
       op.gathering->remember_us > max_ttl_us)) {
    return CheckDuration("remember", op.gathering->remember_us, kMinTtlUs,
                         max_ttl_us);
  }
  if (op.has_expire_at || op.allow_past) {
    if (absl::Status s = CheckExpireAt(op, now_us); !s.ok()) return s;
  }
  const int64_t max_bytes = max_value_bytes_.load(std::memory_order_relaxed);
  if (static_cast<int64_t>(op.value.size()) > max_bytes && !op.letter) {
    return InvalidField(
        "value", absl::StrCat("must be at most ", max_bytes,
                              " bytes (the namespace's max_value_bytes), not ",
                              op.value.size()));
  }
  return absl::OkStatus();
}

void TimeCacheMap::Apply(const Operation& op, int64_t now_us, Result* result) {
  result->Clear();
  result->status = Check(op, now_us);
  if (!result->status.ok()) return;
  ResponseBudget room;
  ApplyOne(op, key_hash_(op.key), now_us, &room, result);
  BlockPool::Default().Prepare();
  if (!op.letter || result->status.ok()) return;
  const auto bytes = static_cast<int64_t>(op.key.size() + op.value.size());
  if (usage_.CouldEverFit(bytes)) return;
  result->status = absl::OutOfRangeError(absl::StrCat(
      "a dead letter of ", bytes, " bytes is larger than the limit of ", Self(),
      " or of the server"));
}

absl::Status TimeCacheMap::PutDeadLetter(absl::string_view key,
                                         absl::string_view value,
                                         int64_t now_us) {
  return Apply(Operation::DeadLetter(key, value), now_us).status;
}

// Makes room at a limit, if permitted.
void TimeCacheMap::ApplyOne(const Operation& op, uint64_t hash, int64_t now_us,
                            ResponseBudget* room, Result* result) {
  for (;;) {
    const Shard::Outcome outcome =
        ShardOf(hash).Apply(op, hash, now_us, room, result);
    if (outcome.new_death_us != kNeverUs) {
      AnnounceDeath(outcome.new_death_us, now_us);
    }
    if (outcome.hit == LimitHit::kNone) return;
    result->Clear();
    if (outcome.hit == LimitHit::kMaxMemory) {
      // Deaths free memory only as they are swept, for which a put does not
      // wait; dropped events free it at once.
      result->status = MemoryReclaimer::Process().MakeRoom(now_us);
      if (result->status.ok()) continue;
      CountRefused(outcome.hit);
      return;
    }
    if (outcome.hit == LimitHit::kShardFull ||
        !MakeRoom(now_us, outcome.more, {1, outcome.alone_bytes})) {
      result->status = LimitError(outcome.hit);
      return;
    }
  }
}

absl::Status TimeCacheMap::RateError(int64_t now_us, size_t operations) const {
  const std::string per_second = absl::StrCat(rate_limit_.per_second());
  return WithRetryAfter(
      ErrorWithReason(
          absl::StatusCode::kResourceExhausted, Reason::kMaxOperationRate,
          absl::StrCat(Self(), " is at its max_operations_per_second of ",
                       per_second, ": retry later, or send fewer operations"),
          {{"max_operations_per_second", per_second}}),
      rate_limit_.WaitUs(now_us, operations));
}

// Whose limits are met: a partition has its share of the namespace's.
std::string TimeCacheMap::Self() const {
  const std::string name = absl::StrCat("namespace ", namespace_name_);
  if (num_partitions_ == 1) return name;
  return absl::StrCat("partition ", partition_, " of the ", num_partitions_,
                      " of ", name);
}

// Counts it, too.
absl::Status TimeCacheMap::LimitError(LimitHit hit) {
  CountRefused(hit);
  const auto error = [hit](absl::string_view message) {
    return ErrorWithReason(absl::StatusCode::kResourceExhausted,
                           LimitReason(hit), message);
  };
  switch (hit) {
    case LimitHit::kMaxEntries:
      return error(absl::StrCat(Self(), " is at its max_entries of ",
                                usage_.max_entries()));
    case LimitHit::kMaxBytes:
      return error(absl::StrCat(Self(),
                                " has no room for this under its max_bytes of ",
                                usage_.max_bytes()));
    case LimitHit::kServerMaxEntries:
      return error(absl::StrCat("the server is at its limits.max_entries of ",
                                usage_.server()->max_entries()));
    case LimitHit::kServerMaxBytes:
      return error(absl::StrCat(
          "the server has no room for this under its limits.max_bytes of ",
          usage_.server()->max_bytes()));
    case LimitHit::kMaxMemory:
    case LimitHit::kShardFull:
    case LimitHit::kDiskFull:
    case LimitHit::kJournalBacklog:
    case LimitHit::kNone:
      break;
  }
  return error(
      absl::StrCat("a shard of ", Self(),
                   " can index no more entries: make it with more num_shards"));
}

// Takes what is due out of the account; if that makes no room for `more`, and
// the map evicts, kills its oldest bucket, unless what was to be `alone` would
// not fit even in an empty map. Returns whether there may be room now.
bool TimeCacheMap::MakeRoom(int64_t now_us, const Usage::Amount& more,
                            const Usage::Amount& alone) {
  const bool evict = evict_.load(std::memory_order_relaxed);
  int64_t died;
  {
    absl::MutexLock lock(&advance_mu_);
    died = DetachDue(now_us);
    // Another thread may have made room meanwhile.
    if (died == 0 && evict && !usage_.Fits(more) && usage_.CouldFit(alone)) {
      died = KillOldest(now_us, Cause::kEvicted, &more);
    }
  }
  if (died > 0) Announce(now_us);
  // A caller that evicts entry by entry may be faster than the reaper's sweeps.
  if (sweeper_.IsBehind()) sweeper_.Step(now_us, Shard::kSweepLockRecords);
  // Eviction continues while others fill the room that was made; each such
  // round means that one of them succeeded.
  return died > 0 || usage_.Fits(more) || (evict && usage_.CouldFit(alone));
}

void TimeCacheMap::Announce(int64_t due_us) {
  if (!schedule_) return;
  int64_t announced_us = announced_us_.load(std::memory_order_relaxed);
  while (due_us < announced_us) {
    if (announced_us_.compare_exchange_weak(announced_us, due_us)) {
      schedule_(due_us);
      return;
    }
  }
}

void TimeCacheMap::AnnounceDeath(int64_t death_us, int64_t now_us) {
  Announce(pauses_ ? std::min(death_us, NextTickUs(now_us, kPauseTickUs))
                   : death_us);
}

int64_t TimeCacheMap::NextTickUs(int64_t now_us, int64_t max_us) const {
  const int64_t quarter_us = std::max(now_us - began_us_, int64_t{0}) / 4;
  return now_us + std::clamp(quarter_us, kMinTickUs, max_us);
}

int64_t TimeCacheMap::NextDueUs(int64_t now_us) {
  // Before the check: changes after the check are reported.
  announced_us_.store(kNeverUs);
  int64_t due_us = sweeper_.HasWork() ? now_us : log_.NextTrimUs(now_us);
  if (const auto changes = this->changes()) {
    due_us = std::min(due_us, changes->NextDueUs(now_us));
  }
  due_us = std::min(due_us, groups_.NextDueUs());
  if (origin_.journaled && log_.bytes() > 0) {
    due_us = std::min(due_us, NextTickUs(now_us, kRetainTickUs));
  }
  int64_t death_us = kNeverUs;
  for (const auto& shard : shards_) {
    death_us = std::min(death_us, shard->NextDeathUs());
  }
  if (pauses_ && death_us != kNeverUs) {
    death_us = std::min(death_us, NextTickUs(now_us, kPauseTickUs));
  }
  due_us = std::min(due_us, death_us);
  int64_t announced_us = announced_us_.load();
  while (due_us < announced_us &&
         !announced_us_.compare_exchange_weak(announced_us, due_us)) {
  }
  return due_us;
}

TimeCacheMap::Origin TimeCacheMap::origin() const {
  Origin origin = origin_;
  origin.log_id = log_.id();
  origin.fork = log_.fork();
  return origin;
}

void TimeCacheMap::SetChangeLog(std::shared_ptr<ChangeLog> log) {
  SetSink(log.get());
  change_log_ = std::move(log);
}

void TimeCacheMap::SetSink(MapChangeSink* sink) {
  TIMECACHED_CHECK(origin_.journaled);
  absl::MutexLock lock(&advance_mu_);
  sink_ = sink;
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards_[i]->SetSink(sink, static_cast<int>(i));
  }
  groups_.SetSink(sink);
}

NamespaceSize TimeCacheMap::GetSize(int64_t now_us) {
  absl::MutexLock lock(&advance_mu_);
  std::vector<Shard::Detached> due;
  LockAll(now_us, &due);
  const NamespaceSize size = {usage_.entries(), usage_.bytes()};
  UnlockAll();
  AddDue(std::move(due));
  return size;
}

// Part by part, until the numbers are reached or kMaxScanSteps steps were made.
// Returns whether there is more.
template <typename ScanShard>
bool TimeCacheMap::Walk(int max_entries, int64_t max_bytes,
                        ScanPosition* position, const ScanShard& scan) {
  for (int steps = kMaxScanSteps; steps > 0 && max_entries > 0 && max_bytes > 0;
       --steps) {
    if (position->shard == static_cast<int>(shards_.size())) return false;
    scan(shards_[static_cast<size_t>(position->shard)].get(), &max_entries,
         &max_bytes, position);
    if (position->tag >= CompactIndex::kTags) {
      ++position->shard;
      position->tag = 0;
    }
  }
  return position->shard < static_cast<int>(shards_.size());
}

absl::Status TimeCacheMap::BeginScan(ScanPosition* position) const {
  if (position->map == 0) position->map = log_.id();
  if (position->map == log_.id() && position->shard >= 0 &&
      position->shard <= static_cast<int>(shards_.size()) &&
      position->tag < CompactIndex::kTags) {
    position->begun = true;
    return absl::OkStatus();
  }
  return InvalidField(
      "position",
      "is of another namespace, or of one that has been deleted and created "
      "anew: begin the scan again, without a position");
}

bool TimeCacheMap::Scan(absl::string_view prefix, int64_t now_us,
                        int max_entries, int64_t max_bytes,
                        ScanPosition* position, const EntryVisitor& visit) {
  return Walk(
      max_entries, max_bytes, position,
      [&](Shard* shard, int* entries, int64_t* bytes, ScanPosition* place) {
        shard->Scan(prefix, now_us, entries, bytes, place, visit);
      });
}

bool TimeCacheMap::AppendAgain(int64_t now_us, int max_entries,
                               int64_t max_bytes, ScanPosition* position) {
  return Walk(
      max_entries, max_bytes, position,
      [&](Shard* shard, int* entries, int64_t* bytes, ScanPosition* place) {
        shard->AppendAgain(now_us, entries, bytes, &place->tag);
      });
}

NamespaceOptions TimeCacheMap::options() const {
  absl::MutexLock lock(&advance_mu_);
  return options_;
}

void TimeCacheMap::Update(const NamespaceOptions& options, int64_t now_us) {
  // Freed outside of the lock.
  std::shared_ptr<ChangeFeed> ended;
  {
    absl::MutexLock lock(&advance_mu_);
    SetOptions(options, now_us);
    ended = SetChanges(ShareOf(options_), now_us);
  }
  if (pauses_) Announce(now_us);
}

void TimeCacheMap::SetOptions(const NamespaceOptions& options, int64_t now_us) {
  const int num_shards = options_.num_shards;
  options_ = options;
  options_.num_shards = num_shards;
  options_.num_partitions = num_partitions_;
  const NamespaceOptions share = ShareOf(options_);
  max_ttl_us_ = options.max_ttl_us;
  max_value_bytes_ = options.max_value_bytes;
  evict_ = options.limit_policy == LimitPolicy::kEvictOldest;
  takes_ids_ = options.idempotency_window_us != 0;
  pauses_ = options.restart_policy == RestartPolicy::kPause;
  rate_limit_.Set(share.max_operations_per_second);
  usage_.SetLimits(share.max_entries, share.max_bytes);
  log_.SetRetention(share.retention_us, share.retention_bytes, now_us);
  for (const auto& shard : shards_) shard->SetOptions(share);
  groups_.SetOptions(share);
}

}  // namespace timecache::server
