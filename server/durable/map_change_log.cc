// What a map's change log takes in: changes, as records of its buffers.

#include "server/durable/map_change_log.h"

#include <algorithm>
#include <utility>

#include "server/base/clock.h"
#include "server/engine/store/partitions.h"

namespace timecache::server {
namespace {

// A buffer's changes are more than one record beyond this.
constexpr size_t kRecordBytes = size_t{1} << 20;
// With more, each generation locks and writes more buffers; with fewer, threads
// wait for them.
constexpr int kBuffersMax = 4;
// A buffer's bytes are added to the shared count once there are this many more.
constexpr int64_t kCountedBytes = 16 << 10;

}  // namespace

MapChangeLog::MapChangeLog(MapChangeLogs* logs,
                           const std::shared_ptr<TimeCacheMap>& map)
    : logs_(logs),
      map_(map),
      partition_(SlotOfMap(map->name(), logs->journal_->partitions())),
      prefix_(MapRecordPrefix(MapRecordKind::kChanges, map->origin().log_id)),
      sync_(IsSync(map->options().durability)),
      groups_(prefix_),
      description_({map->name(), map->options(), map->origin(), MapCounts()}) {
  const int buffers = std::min(map->options().num_shards, kBuffersMax);
  for (int i = 0; i < buffers; ++i) {
    buffers_.push_back(std::make_unique<Buffer>(prefix_));
  }
}

// --- Reported changes.

void MapChangeLog::Add(int shard, const Change& change) {
  Buffer& buffer = *buffers_[static_cast<size_t>(shard) % buffers_.size()];
  {
    absl::MutexLock lock(&buffer.mu);
    if (buffer.open.empty()) buffer.open.Use(logs_->TakeSpare());
    const size_t before = buffer.open.size();
    buffer.open.Add(shard, change);
    buffer.bytes += static_cast<int64_t>(buffer.open.size() - before);
    if (buffer.open.size() >= kRecordBytes) {
      buffer.full.push_back(buffer.open.Take());
    }
    if (sync_.load(std::memory_order_relaxed)) {
      OpenKeys& keys = open_keys_[buffer.generation % 2];
      if (change.kind == Change::Kind::kKill) {
        keys.AddAll();
      } else {
        keys.Add(change.hash);
      }
    }
    if (buffer.bytes - buffer.counted >= kCountedBytes) {
      logs_->open_bytes_ += buffer.bytes - buffer.counted;
      buffer.counted = buffer.bytes;
    }
  }
  SetChanged();
}

// The changes of an atomic batch, as a record.
class MapChangeLog::BatchRecord final : public AtomicChanges {
 public:
  BatchRecord(const std::string& prefix, std::string spare) : record_(prefix) {
    record_.Use(std::move(spare));
    record_.BeginBatch();
  }

  void Add(int shard, const Change& change) override {
    record_.Add(shard, change);
    shards_.push_back(static_cast<size_t>(shard));
    hashes_.push_back(change.hash);
  }

  bool empty() const { return shards_.empty(); }
  const std::vector<size_t>& shards() const { return shards_; }
  const std::vector<uint64_t>& hashes() const { return hashes_; }
  std::string Take() { return record_.Take(); }

 private:
  ChangeRecord record_;
  std::vector<size_t> shards_;
  std::vector<uint64_t> hashes_;
};

std::unique_ptr<AtomicChanges> MapChangeLog::NewAtomic() const {
  return std::make_unique<BatchRecord>(prefix_, logs_->TakeSpare());
}

// The shards are locked: their buffers have no other changes of them meanwhile.
void MapChangeLog::AddAtomic(std::unique_ptr<AtomicChanges> changes) {
  auto& batch = static_cast<BatchRecord&>(*changes);
  if (batch.empty()) return;
  std::string record = batch.Take();
  const auto bytes = static_cast<int64_t>(record.size());
  {
    absl::MutexLock lock(&batches_mu_);
    uint32_t done = 0;
    for (const size_t shard : batch.shards()) {
      const size_t b = shard % buffers_.size();
      if ((done >> b & 1) != 0) continue;
      done |= uint32_t{1} << b;
      Buffer* const buffer = buffers_[b].get();
      absl::MutexLock buffer_lock(&buffer->mu);
      TakeRecords(buffer, &batches_);
    }
    batches_.push_back(std::move(record));
    batches_bytes_ += bytes;
    logs_->open_bytes_ += bytes;
    if (sync_.load(std::memory_order_relaxed)) {
      OpenKeys& keys = open_keys_[batches_generation_ % 2];
      for (const uint64_t hash : batch.hashes()) keys.Add(hash);
    }
  }
  SetChanged();
}

void MapChangeLog::AddTick(const Tick& tick) {
  {
    absl::MutexLock lock(&map_mu_);
    tick_ = tick;
  }
  SetChanged();
  Flush();
}

template <typename Item>
void MapChangeLog::AddToGroups(const Item& item) {
  {
    absl::MutexLock lock(&map_mu_);
    if (groups_.empty()) groups_.Use(logs_->TakeSpare());
    const size_t before = groups_.size();
    groups_.Add(item);
    CountMapBytes(groups_.size() - before);
    if (groups_.size() >= kRecordBytes) full_groups_.push_back(groups_.Take());
  }
  SetChanged();
}

void MapChangeLog::AppendRecord(
    MapRecordKind kind, absl::FunctionRef<void(MapDescription*)> change) {
  {
    absl::MutexLock lock(&map_mu_);
    if (deleted_) return;
    deleted_ = kind == MapRecordKind::kDeleted;
    change(&description_);
    AddDescription(deleted_ ? MapRecordPrefix(kind, description_.origin.log_id)
                            : EncodeMap(kind, description_));
  }
  SetChanged();
  Flush();
}

void MapChangeLog::AppendCreated() {
  AppendRecord(MapRecordKind::kCreated, [](MapDescription*) {});
}

void MapChangeLog::AppendOptions(const NamespaceOptions& options) {
  const bool sync = IsSync(options.durability);
  if (sync_.exchange(sync) != sync && sync) BeginSync();
  AppendRecord(MapRecordKind::kOptions,
               [&](MapDescription* map) ABSL_EXCLUSIVE_LOCKS_REQUIRED(map_mu_) {
                 // A power loss that loses later records leaves a map that
                 // records this.
                 sync_open_ |= IsSync(map->options.durability);
                 map->options = options;
               });
}

void MapChangeLog::AppendFork() {
  AppendRecord(MapRecordKind::kOptions,
               [this](MapDescription*) ABSL_EXCLUSIVE_LOCKS_REQUIRED(map_mu_) {
                 sync_open_ = true;
               });
}

// The keys of earlier changes are not known: all count as open.
void MapChangeLog::BeginSync() {
  for (const auto& buffer : buffers_) {
    // Threads that add from here on see sync_.
    absl::MutexLock lock(&buffer->mu);
  }
  { absl::MutexLock lock(&batches_mu_); }
  absl::MutexLock lock(&mu_);
  // A thread that has added may not have set changed_ yet. The generation is
  // closed in any case: no caller waits for an empty one.
  changed_ = true;
  open_keys_[open_ % 2].AddAll();
  if (kept_ + 1 < open_) open_keys_[(open_ - 1) % 2].AddAll();
}

void MapChangeLog::AppendDeleted() {
  AppendRecord(MapRecordKind::kDeleted, [](MapDescription*) {});
}

void MapChangeLog::AppendTimeSkip(const TimeSkip& skip) {
  {
    absl::MutexLock lock(&map_mu_);
    AddDescription(EncodeTimeSkip(description_.origin.log_id, skip));
  }
  SetChanged();
  Flush();
}

void MapChangeLog::AppendWalkBegins() {
  AppendRecord(MapRecordKind::kWalkBegins, [](MapDescription*) {});
}

void MapChangeLog::AppendWalkEnds(const MapCounts& counts) {
  AppendRecord(MapRecordKind::kWalkEnds,
               [&](MapDescription* map) { map->counts = counts; });
}

void MapChangeLog::AppendCheckpoint(const CheckpointMark& mark) {
  {
    absl::MutexLock lock(&map_mu_);
    if (deleted_) return;
    AddDescription(EncodeCheckpoint(description_.origin.log_id, mark));
  }
  SetChanged();
}

void MapChangeLog::AddDescription(std::string record) {
  CountMapBytes(record.size());
  descriptions_.push_back(std::move(record));
}

void MapChangeLog::CountMapBytes(size_t bytes) {
  map_bytes_ += static_cast<int64_t>(bytes);
  logs_->open_bytes_ += static_cast<int64_t>(bytes);
}

// The reported changes were gathered before this.
void MapChangeLog::SetChanged() {
  if (!changed_.load(std::memory_order_relaxed)) changed_.store(true);
}

}  // namespace timecache::server
