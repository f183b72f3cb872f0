#include "tests/support/engine/crash_map.h"

#include "gtest/gtest.h"

namespace timecache::server {
namespace {

constexpr int kShards = 4;

}  // namespace

NamespaceOptions CrashOptions(int64_t ttl_us, int num_buckets) {
  NamespaceOptions options = WithBuckets(ttl_us, num_buckets);
  options.num_shards = kShards;
  options.retention_us = kNeverUs / 4;
  options.retention_bytes = int64_t{1} << 30;
  options.idempotency_window_us = 3 * kSecond;
  return options;
}

JournaledMap::JournaledMap(const NamespaceOptions& options, CommitLog* log)
    : options_(options), log_(log) {
  Make({.first_event = kFirstEvent}, kStartUs);
  map_->SetSink(&sink_);
  cursor_ = map_->Subscribe(ExpiryLog::Start::kNow, kStartUs, [] {});
  Read();
}

void JournaledMap::Make(TimeCacheMap::Origin origin, int64_t now_us) {
  map_ = nullptr;
  versions_ = std::make_unique<VersionSource>(now_us);
  origin.versions = versions_.get();
  origin.journaled = true;
  map_ =
      std::make_unique<TimeCacheMap>("map", options_, nullptr, now_us, origin);
  map_->groups().SetDeadLetterSink(letters_);
}

void JournaledMap::SetDeadLetterSink(ConsumerGroups::DeadLetterSink letters) {
  letters_ = std::move(letters);
  map_->groups().SetDeadLetterSink(letters_);
}

std::vector<KeptGroupChange> JournaledMap::DescribeGroups() {
  Sink sink;
  groups().SetSink(&sink);
  ConsumerGroups::WalkPosition place;
  while (groups().AppendAgain(3, 1 << 20, &place)) {
  }
  groups().SetSink(&sink_);
  return sink.Take().groups;
}

void JournaledMap::Commit() {
  Committed commit = sink_.Take();
  if (commit.tick.has_value()) permits_.push_back(*commit.tick);
  log_->Commit(std::move(commit));
  committed_trim_ = trim_;
}

void JournaledMap::Permit() {
  for (const Tick& tick : permits_) map_->Permit(tick);
  permits_.clear();
}

bool JournaledMap::StepTrim(int64_t now_us, int most) {
  using Phase = Trim::Phase;
  switch (trim_.phase) {
    case Phase::kNone:
      trim_ = {Phase::kEntries, log_->size(), {}, 0, {}};
      return true;
    case Phase::kEntries: {
      if (map_->AppendAgain(now_us, most, 1 << 20, &trim_.entries)) return true;
      const MapCounts counts = map_->EndWalk(now_us);
      sink_.EndWalk(counts);
      trim_.phase = Phase::kEvents;
      trim_.end_event = counts.next_event;
      return true;
    }
    case Phase::kEvents:
      if (!map_->AppendRetained(now_us, 100 * most, &trim_.end_event)) {
        trim_.phase = Phase::kGroups;
        sink_.EndRetained(trim_.end_event);
      }
      return true;
    case Phase::kGroups:
      if (!groups().AppendAgain(most, 1 << 20, &trim_.groups)) {
        trim_.phase = Phase::kDone;
      }
      return true;
    case Phase::kDone:
      log_->DropFirst(trim_.commits);
      trimmed_ = true;
      trim_ = committed_trim_ = Trim();
  }
  return false;
}

std::vector<DeliveredEvent> JournaledMap::ReadRetained(int64_t now_us) {
  const auto cursor =
      map_->Subscribe(ExpiryLog::Start::kEarliest, now_us, [] {});
  return ReadAll(cursor.get()).events;
}

void JournaledMap::Settle(int64_t now_us) {
  map_->Advance(now_us);
  Commit();
  Permit();
  while (map_->Sweep(now_us, 7)) {
  }
  Read();
}

void JournaledMap::Read(int64_t max_bytes) {
  Reading reading = ReadAll(cursor_.get(), max_bytes);
  EXPECT_EQ(reading.lost, 0u);
  for (DeliveredEvent& told : reading.events) told_.push_back(std::move(told));
  point_ = {map_->origin().log_id, kFirstEvent + told_.size(),
            reading.watermark_us};
}

void JournaledMap::Crash(int64_t now_us, uint64_t first_event) {
  sink_.Take();
  permits_.clear();
  trim_ = committed_trim_;
  TimeCacheMap::Origin origin = map_->origin();
  origin.first_event = first_event;
  cursor_.reset();
  Make(origin, now_us);
  MapReplay replay(map_.get());
  if (first_event != kFirstEvent) replay.AllowLosses();
  if (trimmed_) replay.Silence();
  for (Committed& commit : log_->Recover()) {
    if (commit.walk_ends.has_value()) replay.Begin(*commit.walk_ends);
    for (KeptRetainedEvents& kept : commit.retained) {
      replay.Apply(kept.events());
    }
    if (commit.first_retained > 0) replay.DropBefore(commit.first_retained);
    for (const KeptGroupChange& kept : commit.groups) {
      const absl::Status status = replay.Apply(kept.change());
      EXPECT_TRUE(status.ok()) << status;
    }
    for (const KeptChange& kept : commit.changes) {
      EXPECT_TRUE(replay.Apply(kept.shard(), kept.change()).ok());
    }
    if (commit.tick.has_value()) {
      const absl::Status status = replay.Apply(*commit.tick);
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  versions_->RaiseTo(replay.Finish());
  map_->SetSink(&sink_);
  last_us_ = replay.last_us();
  auto cursor = map_->Resume(point_, now_us, [] {});
  ASSERT_TRUE(cursor.ok()) << cursor.status();
  cursor_ = *std::move(cursor);
}

}  // namespace timecache::server
