// LocalJournal::Backup.

#include "server/journal/failpoint.h"
#include "server/journal/local_journal.h"

namespace timecache::server {

absl::Status LocalJournal::Backup(const std::string& to) {
  std::deque<SegmentState> segments;
  TrimPositions trim;
  LogEnd end;
  {
    absl::MutexLock lock(&mu_);
    ++pins_;
    segments = segments_;
    trim.first = first_;
    end = end_;
  }
  Failpoint("backup.begin");
  absl::Status status = CopySegments(segments, to);
  {
    absl::MutexLock lock(&mu_);
    if (--pins_ == 0 && TrimmedSegments() > 0) {
      trim_ = true;
      work_.Signal();
    }
  }
  if (!status.ok()) return status;
  Failpoint("backup.copied");
  status = CreateTrim(files_, to, writer_.identity(), trim);
  if (status.ok()) status = WriteEnd(files_, to, end);
  if (!status.ok()) return status;
  Failpoint("backup.described");
  // The last file: without it, the directory is no journal.
  status = WriteFormat(files_, to, writer_.identity());
  Failpoint("backup.end");
  return status;
}

absl::Status LocalJournal::CopySegments(
    const std::deque<SegmentState>& segments, const std::string& to) const {
  absl::Status status = CreateEmptyDirectory(files_, to);
  for (const SegmentState& segment : segments) {
    if (!status.ok()) break;
    const std::string from = SegmentPath(directory_, segment.number);
    const std::string target = SegmentPath(to, segment.number);
    // The last one still grows.
    if (&segment != &segments.back()) {
      status = files_->Link(from, target);
      if (!absl::IsUnimplemented(status)) continue;
    }
    status = CopyFile(files_, from, target, segment.bytes);
  }
  return status;
}

}  // namespace timecache::server
