// The part of a journal that goes on when the disk is full, or a segment cannot
// be started.

#include <algorithm>

#include "server/log/local/local_journal.h"

namespace timecache::server {
namespace {

// The steps in which a reserve that is in use is made up for.
constexpr uint64_t kReserveSteps = 16;
// A checkpoint may use this part of the reserve: the rest is for records of
// time and settlements.
constexpr uint64_t kCheckpointShare = 4;

}  // namespace

uint64_t LocalJournal::checkpoint_bytes_max() const {
  return low_space() ? reserve_bytes_ / kCheckpointShare : UINT64_MAX;
}

absl::Status LocalJournal::WithReserve(
    absl::FunctionRef<absl::Status()> write) {
  absl::Status status = write();
  if (!absl::IsResourceExhausted(status) || !reserve_.held()) return status;
  // It may find the disk full, too.
  EndSync(/*wait=*/true);
  if (reserve_.held()) UseReserve();
  const absl::Status stop = stopped();
  return stop.ok() ? write() : stop;
}

void LocalJournal::UseReserve() {
  low_space_ = true;
  {
    absl::MutexLock lock(&mu_);
    ++statistics_.full_errors;
    reserve_due_ = options_.now() + options_.reserve_interval;
  }
  absl::Status status = StartSegment(&reserve_);
  if (status.ok()) return;
  if (absl::IsResourceExhausted(status)) {
    // A file system that needs room to write where there is room, or to sync
    // what it took without having room for it.
    reserve_.Free();
  } else {
    HandleError(status);
  }
}

uint64_t LocalJournal::WantedReserve() const {
  const uint64_t end = writer_.end().bytes;
  const uint64_t left = writer_.room() > end ? writer_.room() - end : 0;
  if (left >= reserve_bytes_) return 0;
  const uint64_t step = std::max<uint64_t>(reserve_bytes_ / kReserveSteps, 1);
  const uint64_t used = reserve_bytes_ - left;
  return std::min(reserve_bytes_, (used + step - 1) / step * step);
}

absl::Status LocalJournal::TakeReserve() {
  absl::Status status = reserve_.Take(WantedReserve());
  // The next write reports errors other than a full disk.
  low_space_ = !status.ok();
  absl::MutexLock lock(&mu_);
  reserve_due_ =
      low_space_ ? options_.now() + options_.reserve_interval : Time::max();
  return status;
}

absl::Status LocalJournal::FindReserve() {
  absl::Status status = TakeReserve();
  if (absl::IsUnimplemented(status)) {
    reserve_bytes_ = 0;
    status = TakeReserve();
  }
  return absl::IsResourceExhausted(status) ? absl::OkStatus() : status;
}

bool LocalJournal::MayStartSegment() const {
  // Without room for another reserve, the room that is left is in the segment.
  return !low_space_ && options_.now() >= roll_due_;
}

void LocalJournal::Roll() {
  if (low_space_ || !stopped().ok()) return;
  absl::Status status;
  // Before the segment gives up what is left of its room.
  if (writer_.room() > 0) status = reserve_.Take(reserve_bytes_);
  if (status.ok()) status = StartSegment(/*reserve=*/nullptr);
  if (status.ok()) return;
  if (absl::IsResourceExhausted(status) && writer_.room() == 0 &&
      reserve_.held()) {
    return UseReserve();
  }
  roll_due_ = options_.now() + options_.reserve_interval;
  HandleError(status);
}

}  // namespace timecache::server
