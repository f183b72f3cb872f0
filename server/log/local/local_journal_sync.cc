// The part of a journal that syncs groups that were written without a sync.

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "server/base/failpoint.h"
#include "server/log/local/local_journal.h"

namespace timecache::server {
namespace {

constexpr std::chrono::seconds kMixedPeriod{1};
// How long groups are written beside a sync for which appends wait: where
// writes go on, ext4 takes up to half a second for one of 5 ms.
constexpr std::chrono::milliseconds kWritesBesideSync{4};

}  // namespace

absl::Status LocalJournal::Sync() {
  absl::Status status = writer_.Sync();
  absl::MutexLock lock(&mu_);
  CountSyncs();
  SetSyncDue(status.ok() ? Time::max()
                         : options_.now() + options_.sync_interval);
  return status;
}

void LocalJournal::SetSyncDue(Time due) {
  sync_due_ = due;
  // Without waiting for a sync.
  if (due == Time::max()) trim_ |= std::exchange(trim_behind_sync_, false);
}

void LocalJournal::SyncDue() {
  File* const file = background_ == nullptr ? nullptr : writer_.BeginSync();
  if (file == nullptr) {
    absl::Status status = WithReserve([this] { return Sync(); });
    if (!status.ok()) HandleError(status);
    return;
  }
  std::optional<Trim> trim;
  {
    absl::MutexLock lock(&mu_);
    syncing_ = true;
    sync_due_ = Time::max();
    if (std::exchange(trim_behind_sync_, false)) trim = NextTrim();
    CountSyncs();
  }
  sync_began_ = options_.now();
  background_->Begin([this, file, trim = std::move(trim)]() {
    const auto began = std::chrono::steady_clock::now();
    absl::Status status = file->Sync();
    sync_took_us_ = MicrosSince(began);
    if (status.ok() && trim.has_value()) trimmed_ = Remove(*trim);
    return status;
  });
}

void LocalJournal::OnSyncEnded() {
  absl::MutexLock lock(&mu_);
  sync_ended_ = true;
  work_.Signal();
}

void LocalJournal::EndSync(bool wait) {
  if (background_ == nullptr) return;
  {
    // Before its result is asked for, or one might stay that has been taken.
    absl::MutexLock lock(&mu_);
    sync_ended_ = false;
  }
  const std::optional<absl::Status> result = background_->End(wait);
  if (!result.has_value()) return;
  writer_.EndSync(*result, sync_took_us_);
  {
    absl::MutexLock lock(&mu_);
    syncing_ = false;
    // What it did not remove, of one segment or more.
    trim_ |= TrimmedSegments() > 0;
    CountSyncs();
  }
  absl::Status status = *result;
  if (absl::IsResourceExhausted(status)) {
    // Once more, with all groups written since.
    status = WithReserve([this] { return Sync(); });
  }
  if (absl::Status trimmed = std::exchange(trimmed_, absl::OkStatus());
      status.ok() && !trimmed.ok()) {
    status = std::move(trimmed);
    if (absl::IsResourceExhausted(status)) {
      status = WithReserve([this] { return RemoveTrimmed(); });
    }
  }
  if (!status.ok()) HandleError(status);
}

bool LocalJournal::AwaitsSlowSync() const {
  return background_ != nullptr && background_->under_way() &&
         !unsynced_appends_.empty() &&
         options_.now() - sync_began_ > kWritesBesideSync;
}

bool LocalJournal::NeedsSync(const std::vector<Pending>& group) {
  return std::any_of(group.begin(), group.end(), [](const Pending& pending) {
    return pending.durability == Durability::kSync;
  });
}

bool LocalJournal::SyncsBehind(const std::vector<Pending>& group, Time now) {
  if (std::any_of(group.begin(), group.end(), [](const Pending& pending) {
        return pending.durability == Durability::kAsync;
      })) {
    mixed_until_ = now + kMixedPeriod;
  }
  return background_ != nullptr && now < mixed_until_ && NeedsSync(group);
}

void LocalJournal::FinishSynced() {
  if (unsynced_appends_.empty()) return;
  const absl::Status stop = stopped();
  const uint64_t end = writer_.synced_end();
  while (!unsynced_appends_.empty() &&
         (!stop.ok() || unsynced_appends_.front().group < end)) {
    Failpoint("commit.synced");
    Unsynced done = std::move(unsynced_appends_.front());
    unsynced_appends_.pop_front();
    {
      absl::MutexLock lock(&mu_);
      statistics_.commit_latency.Add(MicrosSince(done.began));
    }
    done.pending.done(stop.ok()
                          ? absl::StatusOr<uint64_t>(done.pending.position)
                          : absl::StatusOr<uint64_t>(stop),
                      std::move(done.pending.records));
  }
}

void LocalJournal::CountSyncs() {
  statistics_.syncs = writer_.syncs();
  statistics_.sync_errors = writer_.sync_errors();
  statistics_.sync_latency = writer_.sync_latency();
}

}  // namespace timecache::server
