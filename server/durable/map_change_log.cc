#include "server/durable/map_change_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

// A buffer's changes are more than one record beyond this, and an append is of
// about so many bytes: a commit of the journal.
constexpr size_t kRecordBytes = size_t{1} << 20;
constexpr size_t kAppendBytes = size_t{4} << 20;
// With more, each generation locks and writes more buffers; with fewer, threads
// wait for them.
constexpr int kBuffersMax = 4;
// The memory of a record is kept if it has at least this capacity, and all that
// is kept of all maps' together at most the other.
constexpr size_t kSpareBytesMin = size_t{1} << 10;
constexpr size_t kSpareBytesMax = size_t{16} << 20;
// A buffer's bytes are added to the shared count once there are this many more.
constexpr int64_t kCountedBytes = 16 << 10;
// From an append without room in the journal to the next one.
constexpr std::chrono::microseconds kBehindInterval{1'000};
// The longest time that a generation of a cluster's map is held open for callers.
constexpr std::chrono::microseconds kHoldMax{2'000};
// When to retry: some commits later.
constexpr int64_t kRetryAfterUs = 20'000;

absl::Status DiskFull() {
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, Reason::kDiskFull,
      "the disk of the server's journal is full: nothing is written until "
      "there is room");
}

// For changes reported when the reserve was used up, too.
absl::Status DiskFullMeanwhile() {
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, Reason::kDiskFull,
      "the disk of the server's journal is full: the last write may or may not "
      "be stored");
}

void MoveTo(std::deque<std::string>* to, std::vector<std::string>* from) {
  std::move(from->begin(), from->end(), std::back_inserter(*to));
  from->clear();
}

}  // namespace

MapChangeLogs::MapChangeLogs(std::unique_ptr<Journal> journal,
                             MapChangeLogsOptions options)
    : options_(std::move(options)), journal_(std::move(journal)) {
  if (options_.confirm) {
    confirmations_ =
        std::make_shared<ReadConfirmations>(options_.confirm, &answers_);
  }
}

// A permit may still have a map, whose destruction reports its last changes.
// Changes that a full disk has not accepted by now are not retried: no call was
// answered as if they were stored. The journal is not reset here: its last
// commits may append more.
MapChangeLogs::~MapChangeLogs() {
  work_.Drain();
  if (confirmations_ != nullptr) confirmations_->Close();
  answers_.Drain();
}

std::string MapChangeLogs::TakeSpare() {
  absl::MutexLock lock(&spares_mu_);
  if (spares_.empty()) return {};
  std::string spare = std::move(spares_.back());
  spares_.pop_back();
  spare_bytes_ -= spare.capacity();
  return spare;
}

void MapChangeLogs::Recycle(std::vector<std::string> records) {
  absl::MutexLock lock(&spares_mu_);
  for (std::string& record : records) {
    if (record.capacity() < kSpareBytesMin ||
        spare_bytes_ + record.capacity() > kSpareBytesMax) {
      continue;
    }
    spare_bytes_ += record.capacity();
    spares_.push_back(std::move(record));
  }
}

std::shared_ptr<ChangeLog> MapChangeLogs::Begin(
    const std::shared_ptr<TimeCacheMap>& map) {
  auto log = std::make_shared<MapChangeLog>(this, map);
  log->AppendCreated();
  return log;
}

std::shared_ptr<MapChangeLog> MapChangeLogs::Resume(
    const std::shared_ptr<TimeCacheMap>& map) {
  return std::make_shared<MapChangeLog>(this, map);
}

absl::Status MapChangeLogs::OwnershipLost() {
  return ErrorWithReason(
      absl::StatusCode::kUnavailable, Reason::kOwnershipLost,
      "this node has lost the ownership, or cannot reach the cluster's log, "
      "while the call waited: what it writes may or may not be stored");
}

MapChangeLog* MapChangeLogs::Of(const TimeCacheMap& map) const {
  return static_cast<MapChangeLog*>(map.change_log());
}

MapChangeLog::MapChangeLog(MapChangeLogs* logs,
                           const std::shared_ptr<TimeCacheMap>& map)
    : logs_(logs),
      map_(map),
      partition_(PartitionOf(map->name(), logs->journal_->partitions())),
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

// --- Waiting.

absl::Status MapChangeLog::CheckRoom() const {
  const bool full = full_.load(std::memory_order_relaxed);
  return full || logs_->journal_->low_space() ? logs_->NoRoom()
                                              : CheckBacklog();
}

// A cluster's journal has no room only where it has stopped.
absl::Status MapChangeLogs::NoRoom() const {
  return options_.kind == JournalKind::kCluster ? OwnershipLost() : DiskFull();
}

absl::Status MapChangeLogs::CheckRoom() const {
  return disk_full() ? NoRoom() : CheckBacklog();
}

absl::Status MapChangeLogs::CheckBacklog() const {
  const int64_t bytes = open_bytes();
  if (bytes <= open_bytes_max()) return absl::OkStatus();
  return WithRetryAfter(
      ErrorWithReason(absl::StatusCode::kResourceExhausted,
                      Reason::kJournalBacklog,
                      absl::StrCat("the server's journal is too slow: ", bytes,
                                   " bytes wait for it, and at most ",
                                   open_bytes_max(), " may")),
      kRetryAfterUs);
}

// The sets may be those of later generations by now. Then these are stored, or
// have the key because of another one, which is not waited for: the shard is
// locked.
uint64_t MapChangeLog::PositionOf(uint64_t hash, bool writes) const {
  if (!sync_.load(std::memory_order_acquire)) return writes ? kAllChanges : 0;
  const uint64_t open = open_.load(std::memory_order_acquire);
  if (open_keys_[open % 2].Has(hash)) return open;
  return open_keys_[(open - 1) % 2].Has(hash) ? open - 1 : 0;
}

void MapChangeLog::WhenKept(uint64_t position, Done done) {
  if (position == kAllChanges) return WhenAllKept(std::move(done));
  absl::Status status;
  bool complete = false;
  if (!IsStored(position)) {
    absl::MutexLock lock(&mu_);
    if (IsStored(position)) {
      // Meanwhile.
    } else if (full_) {
      status = refusal_;
    } else {
      AddWaiter(position, std::move(done));
      done = nullptr;
      complete = held_for_ > 0 && waiters_[position % 2].size() >= held_for_;
      if (complete) held_for_ = 0;
    }
  }
  if (done != nullptr) return Finish(std::move(status), {std::move(done)});
  if (complete) closing_ = false;
  Flush();
}

// Time needs no wait: what has died by a tick is dead after a crash, too.
void MapChangeLog::WhenEntriesKept(Done done) {
  const bool waits = sync_.load(std::memory_order_acquire) &&
                     !(open_keys_[0].empty() && open_keys_[1].empty());
  if (!waits) return Finish(absl::OkStatus(), {std::move(done)});
  WhenAllKept(std::move(done));
}

// Enters first and then closes: later changes of others are not waited for.
void MapChangeLog::WhenAllKept(Done done) {
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    const uint64_t newest = open_ - (changed_ ? 0 : 1);
    if (!IsStored(newest)) {
      if (!full_) {
        AddWaiter(newest, std::move(done));
        done = nullptr;
      } else {
        status = refusal_;
      }
    }
  }
  if (done != nullptr) return Finish(std::move(status), {std::move(done)});
  Flush();
}

void MapChangeLog::AddWaiter(uint64_t position, Done done) {
  waiters_[position % 2].push_back({std::move(done), position == open_});
}

// What a call has read in memory was the journal's if the node owns it still.
void MapChangeLog::Finish(absl::Status status, Waiter waiter) const {
  if (status.ok()) status = logs_->CheckOwner();
  ReadConfirmations* const confirmations = logs_->confirmations();
  if (confirmations != nullptr && status.ok() && !waiter.confirmed) {
    return confirmations->Wait(std::move(waiter.done));
  }
  waiter.done(std::move(status));
}

// --- Commits.

// A thread that reports a change sets changed_ and then checks closing_; a
// thread that ends a generation resets closing_ and then checks changed_: one
// of them sees the other.
void MapChangeLog::Flush() {
  while (changed_ && !closing_.exchange(true)) CloseGeneration();
}

void MapChangeLog::CloseGeneration() {
  closing_began_ = std::chrono::steady_clock::now();
  uint64_t open;
  {
    absl::MutexLock lock(&mu_);
    changed_ = false;
    open = ++open_;
  }
  closing_counted_ = 0;
  std::vector<std::string> groups;
  {
    absl::MutexLock lock(&map_mu_);
    closing_tick_ = std::exchange(tick_, std::nullopt);
    closing_sync_ = std::exchange(sync_open_, false) ||
                    IsSync(description_.options.durability);
    MoveTo(&records_, &descriptions_);
    closing_counted_ += std::exchange(map_bytes_, 0);
    groups.swap(full_groups_);
    if (!groups_.empty()) groups.push_back(groups_.Take());
  }
  for (const auto& buffer : buffers_) {
    absl::MutexLock lock(&buffer->mu);
    buffer->generation = open;
    MoveTo(&records_, &buffer->full);
    if (!buffer->open.empty()) records_.push_back(buffer->open.Take());
    buffer->bytes = 0;
    closing_counted_ += std::exchange(buffer->counted, 0);
  }
  MoveTo(&records_, &groups);
  if (closing_tick_.has_value()) {
    ChangeRecord tick(prefix_);
    tick.Add(*closing_tick_);
    records_.push_back(tick.Take());
  }
  closing_is_empty_ = records_.empty();
  AppendNext();
}

void MapChangeLog::AppendNext() {
  if (records_.empty()) return Kept();
  std::vector<std::string> records;
  size_t bytes = 0;
  while (!records_.empty() &&
         (records.empty() || bytes + records_.front().size() <= kAppendBytes)) {
    bytes += records_.front().size();
    records.push_back(std::move(records_.front()));
    records_.pop_front();
  }
  logs_->journal_->Append(
      partition_, std::move(records),
      closing_sync_ ? Durability::kSync : Durability::kAsync,
      [self = shared_from_this()](const absl::StatusOr<uint64_t>& position,
                                  std::vector<std::string> records) {
        self->Appended(position.status(), std::move(records));
      });
}

void MapChangeLog::Appended(const absl::Status& status,
                            std::vector<std::string> records) {
  if (status.ok()) {
    logs_->Recycle(std::move(records));
    return AppendNext();
  }
  for (auto it = records.rbegin(); it != records.rend(); ++it) {
    records_.push_front(std::move(*it));
  }
  if (absl::IsUnavailable(status)) {
    logs_->work_.AddAfter(kBehindInterval,
                          [self = shared_from_this()] { self->AppendNext(); });
  } else {
    Full(status);
  }
}

// Or stopped for good: then the process is about to end, or its ownership.
void MapChangeLog::Full(absl::Status status) {
  const bool full = absl::IsResourceExhausted(status);
  if (full) status = DiskFullMeanwhile();
  if (logs_->options_.kind == JournalKind::kCluster) {
    status = MapChangeLogs::OwnershipLost();
  }
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mu_);
    if (!full_.exchange(true)) ++logs_->full_logs_;
    refusal_ = status;
    waiters = TakeWaiters();
  }
  Answer(std::nullopt, std::move(waiters), std::move(status));
  if (!full) return;
  logs_->work_.AddAfter(logs_->options_.retry_interval,
                        [self = shared_from_this()] { self->AppendNext(); });
}

std::vector<MapChangeLog::Waiter> MapChangeLog::TakeWaiters() {
  std::vector<Waiter> waiters;
  for (std::vector<Waiter>& each : waiters_) {
    std::move(each.begin(), each.end(), std::back_inserter(waiters));
    each.clear();
  }
  return waiters;
}

void MapChangeLog::Abandon() {
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mu_);
    waiters = TakeWaiters();
  }
  Answer(std::nullopt, std::move(waiters), MapChangeLogs::OwnershipLost());
}

void MapChangeLog::Kept() {
  std::vector<Waiter> waiters;
  size_t callers;
  {
    absl::MutexLock lock(&mu_);
    const uint64_t closed = ++kept_;
    open_keys_[closed % 2].Clear();
    waiters.swap(waiters_[closed % 2]);
    callers = waiters.size() + waiters_[open_ % 2].size();
    if (full_.exchange(false)) --logs_->full_logs_;
  }
  logs_->open_bytes_ -= closing_counted_;
  if (closing_is_empty_) {
    for (Waiter& waiter : waiters) waiter.confirmed = false;
  }
  Answer(closing_tick_, std::move(waiters), absl::OkStatus());
  if (logs_->options_.kind == JournalKind::kCluster && HoldOpen(callers)) {
    return;
  }
  closing_ = false;
  Flush();
}

// A commit of a cluster's log costs three brokers a millisecond, whatever its size:
// callers that were answered are likely to come again, and are to share the next
// one. The first of them would leave the others to the one after that.
bool MapChangeLog::HoldOpen(size_t callers) {
  const auto wait =
      std::min(std::chrono::duration_cast<std::chrono::microseconds>(
                   (std::chrono::steady_clock::now() - closing_began_) / 2),
               kHoldMax);
  uint64_t open;
  {
    absl::MutexLock lock(&mu_);
    if (callers < 2 || waiters_[open_ % 2].size() >= callers) return false;
    held_for_ = callers;
    open = open_;
  }
  logs_->work_.AddAfter(wait, [self = shared_from_this(), open] {
    {
      absl::MutexLock lock(&self->mu_);
      if (self->held_for_ == 0 || self->open_ != open) return;
      self->held_for_ = 0;
    }
    self->closing_ = false;
    self->Flush();
  });
  return true;
}

void MapChangeLog::Answer(std::optional<Tick> permit,
                          std::vector<Waiter> waiters, absl::Status status) {
  if (!permit.has_value() && waiters.empty()) return;
  if (!permit.has_value() && !closing_sync_ && status.ok()) {
    for (Waiter& waiter : waiters) waiter.done(status);
    return;
  }
  logs_->answers_.Add([self = shared_from_this(), permit,
                       waiters = std::move(waiters),
                       status = std::move(status)]() mutable {
    if (permit.has_value()) {
      if (const auto map = self->map_.lock()) map->Permit(*permit);
    }
    for (Waiter& waiter : waiters) self->Finish(status, std::move(waiter));
  });
}

}  // namespace timecache::server
