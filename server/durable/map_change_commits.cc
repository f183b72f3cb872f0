// What leaves a map's change log: generations of records, which the journal
// stores one after the other, and the answers that wait for them.

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/base/clock.h"
#include "server/base/error.h"
#include "server/durable/map_change_log.h"

namespace timecache::server {
namespace {

// An append is of about so many bytes: a commit of the journal.
constexpr size_t kAppendBytes = size_t{4} << 20;
// From an append without room in the journal to the next one.
constexpr std::chrono::microseconds kBehindInterval{1'000};
// The longest time that a generation of a cluster's map is held open for callers.
constexpr std::chrono::microseconds kHoldMax{2'000};

// For changes reported when the reserve was used up, too.
absl::Status DiskFullMeanwhile() {
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, Reason::kDiskFull,
      "the disk of the server's journal is full: the last write may or may not "
      "be stored");
}

template <typename Records>
void MoveTo(Records* to, std::vector<std::string>* from) {
  std::move(from->begin(), from->end(), std::back_inserter(*to));
  from->clear();
}

}  // namespace

// --- Waiting.

absl::Status MapChangeLog::CheckRoom() const {
  const bool full = full_.load(std::memory_order_relaxed);
  return full || logs_->journal_->low_space() ? logs_->NoRoom()
                                              : CheckBacklog();
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
  {
    absl::MutexLock batches_lock(&batches_mu_);
    batches_generation_ = open;
    MoveTo(&records_, &batches_);
    closing_counted_ += std::exchange(batches_bytes_, 0);
    for (const auto& each : buffers_) {
      Buffer* const buffer = each.get();
      absl::MutexLock lock(&buffer->mu);
      buffer->generation = open;
      TakeRecords(buffer, &records_);
      buffer->bytes = 0;
      closing_counted_ += std::exchange(buffer->counted, 0);
    }
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

template <typename Records>
void MapChangeLog::TakeRecords(Buffer* buffer, Records* to) {
  MoveTo(to, &buffer->full);
  if (!buffer->open.empty()) to->push_back(buffer->open.Take());
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
