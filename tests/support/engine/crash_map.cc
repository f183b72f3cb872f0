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
  map_ = std::make_unique<TimeCacheMap>("map", options_, nullptr, now_us,
                                        EventFormat::Plain(), origin);
  map_->groups().SetDeadLetterSink(letters_);
}

void JournaledMap::SetDeadLetterSink(ConsumerGroups::DeadLetterSink letters) {
  letters_ = std::move(letters);
  map_->groups().SetDeadLetterSink(letters_);
}

std::vector<KeptGroupChange> JournaledMap::DescribeGroups() {
  Sink sink;
  groups().SetSink(&sink);
  ConsumerGroups::Place place;
  while (groups().AppendAgain(/*first_event=*/0, 3, 1 << 20, &place)) {
  }
  groups().SetSink(&sink_);
  return sink.Take().groups;
}

void JournaledMap::Commit() {
  Committed commit = sink_.Take();
  if (commit.tick.has_value()) permit_ = commit.tick;
  log_->Commit(std::move(commit));
}

void JournaledMap::Permit() {
  if (permit_.has_value()) map_->Permit(*permit_);
  permit_.reset();
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
  permit_.reset();
  TimeCacheMap::Origin origin = map_->origin();
  origin.first_event = first_event;
  cursor_.reset();
  Make(origin, now_us);
  MapReplay replay(map_.get());
  // What was trimmed is not told apart from what is lost.
  if (first_event != kFirstEvent) replay.AllowLosses();
  for (const Committed& commit : log_->Recover()) {
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
