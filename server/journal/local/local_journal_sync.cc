// The part of a journal that syncs groups that were written without a sync.

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "server/journal/local/local_journal.h"

namespace timecache::server {

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
  background_->Begin([this, file, trim = std::move(trim)]() mutable {
    const auto began = std::chrono::steady_clock::now();
    absl::Status status = file->Sync();
    sync_took_us_ = MicrosSince(began);
    if (status.ok() && trim.has_value()) trimmed_ = Remove(*std::move(trim));
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
    // The segments to be removed after it were not removed.
    if (!result->ok()) trim_ |= TrimmedSegments() > 0;
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

bool LocalJournal::NeedsSync(const std::vector<Pending>& group) const {
  return !writer_.MayWrite() ||
         std::any_of(group.begin(), group.end(), [](const Pending& pending) {
           return pending.durability == Durability::kSync;
         });
}

void LocalJournal::CountSyncs() {
  statistics_.syncs = writer_.syncs();
  statistics_.sync_errors = writer_.sync_errors();
  statistics_.sync_latency = writer_.sync_latency();
}

}  // namespace timecache::server
