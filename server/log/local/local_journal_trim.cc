// The part of a journal that removes what no partition needs.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/failpoint.h"
#include "server/log/local/local_journal.h"

namespace timecache::server {

absl::Status LocalJournal::TrimBefore(uint32_t partition, uint64_t position) {
  if (partition >= partitions()) return NoPartition(partition, partitions());
  absl::MutexLock lock(&mu_);
  if (position > ends_[partition]) {
    return absl::OutOfRangeError(absl::StrCat("partition ", partition,
                                              " ends at ", ends_[partition],
                                              ", before ", position));
  }
  first_[partition] = std::max(first_[partition], position);
  if (TrimmedSegments() > 0) {
    trim_ = true;
    work_.Signal();
  }
  return absl::OkStatus();
}

size_t LocalJournal::UnneededSegments() const {
  size_t count = 0;
  while (count + 1 < segments_.size()) {
    const std::vector<uint64_t>& bases = segments_[count + 1].bases;
    for (uint32_t p = 0; p < partitions(); ++p) {
      if (bases[p] > first_[p]) return count;
    }
    ++count;
  }
  return count;
}

size_t LocalJournal::TrimmedSegments() const {
  size_t count = UnneededSegments();
  for (const uint64_t pin : pins_) {
    // Numbered without gaps.
    const uint64_t before =
        std::max(pin, segments_.front().number) - segments_.front().number;
    count = std::min<size_t>(count, before);
  }
  return count;
}

LocalJournal::Trim LocalJournal::NextTrim() {
  Trim trim;
  trim.positions.sequence = ++trim_sequence_;
  trim.positions.first = first_;
  trim.has_segment = TrimmedSegments() > 0;
  return trim;
}

absl::Status LocalJournal::RemoveTrimmed() {
  // TRIM must not exceed what survives a power loss.
  absl::Status status = Sync();
  if (!status.ok()) return status;
  Trim trim;
  {
    absl::MutexLock lock(&mu_);
    trim = NextTrim();
  }
  status = Remove(trim);
  absl::MutexLock lock(&mu_);
  trim_ |= status.ok() && TrimmedSegments() > 0;
  return status;
}

absl::Status LocalJournal::Remove(const Trim& trim) {
  Failpoint("trim.begin");
  absl::Status status =
      OverwriteTrim(files_, directory_, writer_.identity(), trim.positions);
  if (!status.ok()) return status;
  Failpoint("trim.written");
  if (trim.has_segment) {
    uint64_t number = 0;
    {
      absl::MutexLock lock(&mu_);
      // A backup may have started meanwhile.
      if (TrimmedSegments() == 0) return status;
      number = segments_.front().number;
      segments_.pop_front();
    }
    status = files_->Remove(SegmentPath(directory_, number));
    if (!status.ok()) return status;
    Failpoint("trim.removed");
  }
  status = files_->SyncDirectory(directory_);
  Failpoint("trim.end");
  return status;
}

}  // namespace timecache::server
