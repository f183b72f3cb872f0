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
// When this many callers have waited for one generation, the journal's thread
// does this many more commits, even those that a caller could do: it combines
// what they would commit one by one. With fewer callers the hand-over costs
// more than that saves.
constexpr size_t kManyWaiters = 3;
constexpr int kHandedOver = 256;
// A record of at most this capacity is reused.
constexpr size_t kSpareBytesMin = size_t{1} << 10;
constexpr size_t kSpareBytesMax = size_t{256} << 10;
// A buffer's bytes are added to the shared count once there are this many more.
constexpr int64_t kCountedBytes = 16 << 10;
// From an append without room in the journal to the next one.
constexpr std::chrono::microseconds kBehindInterval{1'000};
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
    : options_(options), journal_(std::move(journal)) {}

// A permit may still have a map, whose destruction reports its last changes.
// Changes that a full disk has not accepted by now are not retried: no caller
// was told that they are stored. The journal is not reset here: its last
// commits may append more.
MapChangeLogs::~MapChangeLogs() { completions_.Drain(); }

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

MapChangeLog::MapChangeLog(MapChangeLogs* logs,
                           const std::shared_ptr<TimeCacheMap>& map)
    : logs_(logs),
      map_(map),
      partition_(PartitionOf(map->name(), logs->journal_->partitions())),
      hash_(map->origin().log_id),
      prefix_(MapRecordPrefix(MapRecordKind::kChanges, map->origin().log_id)),
      sync_(map->options().durability == NamespaceDurability::kSync),
      sliding_(map->options().sliding),
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
    const size_t before = buffer.open.size();
    buffer.open.Add(shard, change);
    buffer.bytes += static_cast<int64_t>(buffer.open.size() - before);
    if (buffer.open.size() >= kRecordBytes) {
      buffer.full.push_back(buffer.open.Take());
    }
    if (sync_.load(std::memory_order_relaxed)) {
      OpenKeys& keys = open_keys_[static_cast<size_t>(buffer.generation)];
      if (change.kind == Change::Kind::kKill) {
        keys.AddAll();
      } else {
        keys.Add(hash_(change.record.key));
      }
    }
    if (buffer.bytes - buffer.counted >= kCountedBytes) {
      logs_->open_bytes_ += buffer.bytes - buffer.counted;
      buffer.counted = buffer.bytes;
    }
  }
  SetTold();
}

void MapChangeLog::AddTick(const Tick& tick) {
  {
    absl::MutexLock lock(&told_mu_);
    tick_ = tick;
  }
  SetTold();
  Flush();
}

template <typename Item>
void MapChangeLog::AddToGroups(const Item& item) {
  {
    absl::MutexLock lock(&told_mu_);
    const size_t before = groups_.size();
    groups_.Add(item);
    CountTold(groups_.size() - before);
    if (groups_.size() >= kRecordBytes) full_groups_.push_back(groups_.Take());
  }
  SetTold();
}

void MapChangeLog::AppendRecord(
    MapRecordKind kind, absl::FunctionRef<void(MapDescription*)> change) {
  {
    absl::MutexLock lock(&told_mu_);
    if (deleted_) return;
    deleted_ = kind == MapRecordKind::kDeleted;
    change(&description_);
    AddDescription(deleted_ ? MapRecordPrefix(kind, description_.origin.log_id)
                            : EncodeMap(kind, description_));
  }
  SetTold();
  Flush();
}

void MapChangeLog::AppendCreated() {
  AppendRecord(MapRecordKind::kCreated, [](MapDescription*) {});
}

void MapChangeLog::AppendOptions(const NamespaceOptions& options) {
  const bool sync = options.durability == NamespaceDurability::kSync;
  if (sync_.exchange(sync) != sync && sync) BeginSync();
  sliding_ = options.sliding;
  AppendRecord(
      MapRecordKind::kOptions,
      [&](MapDescription* map) ABSL_EXCLUSIVE_LOCKS_REQUIRED(told_mu_) {
        // A power loss that loses later records leaves a map that records this.
        sync_open_ |= map->options.durability == NamespaceDurability::kSync;
        map->options = options;
      });
}

void MapChangeLog::AppendFork() {
  AppendRecord(MapRecordKind::kOptions,
               [this](MapDescription*) ABSL_EXCLUSIVE_LOCKS_REQUIRED(told_mu_) {
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
  // A thread that has added may not have set told_ yet. The generation is
  // closed in any case: no caller waits for an empty one.
  told_ = true;
  open_keys_[static_cast<size_t>(open_)].AddAll();
  if (has_closing_) open_keys_[static_cast<size_t>(1 - open_)].AddAll();
}

void MapChangeLog::AppendDeleted() {
  AppendRecord(MapRecordKind::kDeleted, [](MapDescription*) {});
}

void MapChangeLog::AppendTimeSkip(const TimeSkip& skip) {
  {
    absl::MutexLock lock(&told_mu_);
    AddDescription(EncodeTimeSkip(description_.origin.log_id, skip));
  }
  SetTold();
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
    absl::MutexLock lock(&told_mu_);
    if (deleted_) return;
    AddDescription(EncodeCheckpoint(description_.origin.log_id, mark));
  }
  SetTold();
}

void MapChangeLog::AddDescription(std::string record) {
  CountTold(record.size());
  descriptions_.push_back(std::move(record));
}

void MapChangeLog::CountTold(size_t bytes) {
  told_bytes_ += static_cast<int64_t>(bytes);
  logs_->open_bytes_ += static_cast<int64_t>(bytes);
}

// The reported changes were gathered before this.
void MapChangeLog::SetTold() {
  if (!told_.load(std::memory_order_relaxed)) told_.store(true);
}

// --- Waiting.

absl::Status MapChangeLog::CheckRoom() const {
  const bool full = full_.load(std::memory_order_relaxed);
  return full || logs_->journal_->low_space() ? DiskFull() : CheckBacklog();
}

absl::Status MapChangeLogs::CheckRoom() const {
  return disk_full() ? DiskFull() : CheckBacklog();
}

absl::Status MapChangeLogs::CheckBacklog() const {
  const int64_t bytes = open_bytes();
  if (bytes <= open_bytes_max()) return absl::OkStatus();
  return WithRetryAfter(
      ErrorWithReason(
          absl::StatusCode::kResourceExhausted, Reason::kJournalBacklog,
          absl::StrCat("the disk of the server's journal is too slow: ", bytes,
                       " bytes wait for it, and at most ", open_bytes_max(),
                       " may")),
      kRetryAfterUs);
}

std::array<bool, 2> MapChangeLog::FindOpen(
    absl::Span<const Operation> operations) const {
  std::array<bool, 2> found = {};
  if (open_keys_[0].empty() && open_keys_[1].empty()) return found;
  for (const Operation& operation : operations) {
    const uint64_t hash = hash_(operation.key);
    for (size_t i = 0; i < found.size(); ++i) {
      found[i] = found[i] || open_keys_[i].Has(hash);
    }
    if (found[0] && found[1]) break;
  }
  return found;
}

void MapChangeLog::WhenKept(absl::Span<const Operation> operations, Tried tried,
                            Done done) {
  if (!sync_.load(std::memory_order_acquire)) {
    const bool sliding = sliding_.load(std::memory_order_relaxed);
    if (tried == Tried::kAll &&
        std::any_of(operations.begin(), operations.end(),
                    [&](const Operation& op) { return Writes(op, sliding); })) {
      // The caller holds no lock.
      const bool hands_over = handed_over_.load(std::memory_order_relaxed) > 0;
      return WaitForAll(hands_over ? Committer::kThread : Committer::kCaller,
                        std::move(done));
    }
    return done(absl::OkStatus());
  }
  Flush();
  for (;;) {
    const uint64_t kept = kept_;
    const std::array<bool, 2> found = FindOpen(operations);
    if (!found[0] && !found[1]) return done(absl::OkStatus());
    absl::MutexLock lock(&mu_);
    if (full_) break;
    // The found generation may have been stored meanwhile, and its slot reused.
    if (kept != kept_) continue;
    const auto open = static_cast<size_t>(open_);
    waiters_[found[open] ? open : 1 - open].push_back(std::move(done));
    done = nullptr;
    break;
  }
  if (done != nullptr) return done(DiskFullMeanwhile());
  Flush();
}

bool MapChangeLog::IsKept(const Operation& operation) const {
  if (!sync_.load(std::memory_order_acquire)) {
    return !Writes(operation, sliding_.load(std::memory_order_relaxed));
  }
  const std::array<bool, 2> open = FindOpen({&operation, 1});
  return !open[0] && !open[1];
}

// Time needs no wait: what has died by a tick is dead after a crash, too.
void MapChangeLog::WhenEntriesKept(Done done) {
  const bool waits = sync_.load(std::memory_order_acquire) &&
                     !(open_keys_[0].empty() && open_keys_[1].empty());
  if (!waits) return done(absl::OkStatus());
  WaitForAll(Committer::kThread, std::move(done));
}

// Enters first and then closes: later changes of others are not waited for.
void MapChangeLog::WaitForAll(Committer committer, Done done) {
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    if (told_ || has_closing_) {
      if (!full_) {
        waiters_[static_cast<size_t>(told_ ? open_ : 1 - open_)].push_back(
            std::move(done));
        done = nullptr;
      } else {
        status = DiskFullMeanwhile();
      }
    }
  }
  if (done != nullptr) return done(status);
  FlushBy(committer);
}

// --- Commits.

// A thread that reports a change sets told_ and then checks closing_; a thread
// that ends a generation resets closing_ and then checks told_: one of them
// sees the other. A caller commits once: the thread commits changes that others
// reported meanwhile.
void MapChangeLog::FlushBy(Committer committer) {
  for (; told_ && !closing_.exchange(true); committer = Committer::kThread) {
    CloseGeneration(committer);
  }
}

void MapChangeLog::CloseGeneration(Committer committer) {
  int closing;
  {
    absl::MutexLock lock(&mu_);
    told_ = false;
    has_closing_ = true;
    closing = open_;
    open_ = 1 - open_;
  }
  closing_counted_ = 0;
  std::vector<std::string> groups;
  {
    absl::MutexLock lock(&told_mu_);
    closing_tick_ = std::exchange(tick_, std::nullopt);
    closing_sync_ =
        std::exchange(sync_open_, false) ||
        description_.options.durability == NamespaceDurability::kSync;
    MoveTo(&records_, &descriptions_);
    closing_counted_ += std::exchange(told_bytes_, 0);
    groups.swap(full_groups_);
    if (!groups_.empty()) groups.push_back(groups_.Take());
  }
  for (const auto& buffer : buffers_) {
    if (spares_.empty()) spares_.emplace_back();
    absl::MutexLock lock(&buffer->mu);
    buffer->generation = 1 - closing;
    MoveTo(&records_, &buffer->full);
    if (!buffer->open.empty()) {
      records_.push_back(buffer->open.Take(std::move(spares_.back())));
      spares_.pop_back();
    }
    buffer->bytes = 0;
    closing_counted_ += std::exchange(buffer->counted, 0);
  }
  MoveTo(&records_, &groups);
  if (closing_tick_.has_value()) {
    ChangeRecord tick(prefix_);
    tick.Add(*closing_tick_);
    records_.push_back(tick.Take());
  }
  AppendNext(committer);
}

void MapChangeLog::AppendNext(Committer committer) {
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
      closing_sync_ ? Durability::kSync : Durability::kAsync, committer,
      [self = shared_from_this()](const absl::StatusOr<uint64_t>& position,
                                  std::vector<std::string> records) {
        self->Appended(position.status(), std::move(records));
      });
}

void MapChangeLog::Appended(const absl::Status& status,
                            std::vector<std::string> records) {
  if (status.ok()) {
    Recycle(std::move(records));
    return AppendNext(Committer::kThread);
  }
  for (auto it = records.rbegin(); it != records.rend(); ++it) {
    records_.push_front(std::move(*it));
  }
  if (absl::IsUnavailable(status)) {
    logs_->completions_.AddAfter(kBehindInterval, [self = shared_from_this()] {
      self->AppendNext(Committer::kThread);
    });
  } else {
    Full(status);
  }
}

void MapChangeLog::Recycle(std::vector<std::string> records) {
  for (std::string& record : records) {
    if (spares_.size() == buffers_.size()) return;
    if (record.capacity() < kSpareBytesMin ||
        record.capacity() > kSpareBytesMax) {
      continue;
    }
    spares_.push_back(std::move(record));
  }
}

// Or stopped for good: then the process is about to end.
void MapChangeLog::Full(absl::Status status) {
  const bool full = absl::IsResourceExhausted(status);
  if (full) status = DiskFullMeanwhile();
  std::vector<Done> waiters;
  {
    absl::MutexLock lock(&mu_);
    if (!full_.exchange(true)) ++logs_->full_logs_;
    for (std::vector<Done>& each : waiters_) {
      std::move(each.begin(), each.end(), std::back_inserter(waiters));
      each.clear();
    }
  }
  Answer(std::nullopt, std::move(waiters), std::move(status));
  if (!full) return;
  logs_->completions_.AddAfter(
      logs_->options_.retry_interval,
      [self = shared_from_this()] { self->AppendNext(Committer::kThread); });
}

void MapChangeLog::Kept() {
  std::vector<Done> waiters;
  {
    absl::MutexLock lock(&mu_);
    const auto closed = static_cast<size_t>(1 - open_);
    open_keys_[closed].Clear();
    waiters.swap(waiters_[closed]);
    const int handed_over = handed_over_.load(std::memory_order_relaxed);
    handed_over_.store(waiters.size() >= kManyWaiters
                           ? kHandedOver
                           : std::max(handed_over - 1, 0),
                       std::memory_order_relaxed);
    ++kept_;
    has_closing_ = false;
    if (full_.exchange(false)) --logs_->full_logs_;
  }
  logs_->open_bytes_ -= closing_counted_;
  Answer(closing_tick_, std::move(waiters), absl::OkStatus());
  closing_ = false;
  Flush();
}

void MapChangeLog::Answer(std::optional<Tick> permit, std::vector<Done> waiters,
                          absl::Status status) {
  if (!permit.has_value() && waiters.empty()) return;
  if (!permit.has_value() && !closing_sync_ && status.ok()) {
    for (Done& done : waiters) done(status);
    return;
  }
  logs_->completions_.Add([map = map_, permit, waiters = std::move(waiters),
                           status = std::move(status)]() mutable {
    if (permit.has_value()) {
      if (const auto kept = map.lock()) kept->Permit(*permit);
    }
    for (Done& done : waiters) done(status);
  });
}

}  // namespace timecache::server
