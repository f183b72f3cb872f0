// LocalJournal::Read.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/log/local/local_journal.h"

namespace timecache::server {
namespace {

// One call of Read: its partitions, and a pass over segments.
class Replay {
 public:
  Replay(FileSystem* files, const std::string& directory,
         const JournalIdentity& identity, Journal::Visitor visit,
         absl::Span<const Journal::ReadFrom> from, std::vector<uint64_t> ends)
      : files_(files),
        directory_(directory),
        identity_(identity),
        visit_(visit),
        from_(identity.partitions),
        ends_(std::move(ends)),
        wanted_(identity.partitions) {
    for (const Journal::ReadFrom& read : from) {
      from_[read.partition] = read.position;
      wanted_[read.partition] = read.position < ends_[read.partition];
    }
  }

  // True if the segment, whose last positions are before `ends`, has requested
  // records.
  bool Wants(const SegmentState& segment,
             const std::vector<uint64_t>& ends) const {
    for (size_t p = 0; p < wanted_.size(); ++p) {
      if (wanted_[p] && segment.bases[p] < ends[p] && from_[p] < ends[p]) {
        return true;
      }
    }
    return false;
  }

  absl::Status ReadSegment(const SegmentState& segment,
                           const std::vector<uint64_t>& ends) {
    const std::string path = SegmentPath(directory_, segment.number);
    const auto opened = SegmentReader::Open(files_, path, &identity_);
    if (absl::IsDataLoss(opened.status())) {
      return JournalDamage(path, 0, segment.bytes, "its header");
    }
    if (!opened.ok()) return opened.status();
    SegmentReader& reader = **opened;
    reader.LimitTo(std::min(segment.bytes, reader.file_bytes()));
    PositionFollower follower(identity_, segment.bases,
                              reader.header().first_group);
    Group group;
    while (true) {
      const auto outcome = reader.Next(&group);
      if (!outcome.ok()) return outcome.status();
      if (*outcome == SegmentReader::Outcome::kEnd) break;
      if (*outcome == SegmentReader::Outcome::kDamage) {
        return JournalDamage(path, group.offset, segment.bytes,
                             "not a group of records");
      }
      if (!follower.Follow(group, wanted_)) {
        return JournalDamage(path, group.offset, segment.bytes, follower.why());
      }
      absl::Status status = Visit(group);
      if (!status.ok()) return status;
    }
    if (follower.positions() != ends) {
      return JournalDamage(path, reader.offset(), segment.bytes,
                           "the rest is missing");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Visit(const Group& group) {
    for (const Section& section : group.sections) {
      const uint32_t p = section.partition;
      if (!wanted_[p]) continue;
      absl::Status status = VisitRecords(
          section, [&](uint64_t position, absl::string_view record) {
            return position < from_[p] ? absl::OkStatus()
                                       : visit_(p, position, record);
          });
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  FileSystem* const files_;
  const std::string& directory_;
  const JournalIdentity& identity_;
  const Journal::Visitor visit_;
  std::vector<uint64_t> from_;
  const std::vector<uint64_t> ends_;
  std::vector<bool> wanted_;
};

}  // namespace

absl::Status LocalJournal::Read(absl::Span<const ReadFrom> from,
                                Visitor visit) const {
  std::vector<SegmentState> segments;
  std::vector<uint64_t> ends;
  {
    absl::MutexLock lock(&mu_);
    for (const ReadFrom& read : from) {
      if (read.partition >= partitions()) {
        return absl::InvalidArgumentError(
            absl::StrCat("partition ", read.partition, " of ", partitions()));
      }
      if (read.position < first_[read.partition] ||
          read.position > ends_[read.partition]) {
        return absl::OutOfRangeError(absl::StrCat(
            "position ", read.position, " of partition ", read.partition,
            " is not from ", first_[read.partition], " to ",
            ends_[read.partition]));
      }
    }
    segments.assign(segments_.begin(), segments_.end());
    ends = ends_;
  }
  Replay replay(files_, directory_, writer_.identity(), visit, from, ends);
  for (size_t i = 0; i < segments.size(); ++i) {
    const std::vector<uint64_t>& segment_ends =
        i + 1 < segments.size() ? segments[i + 1].bases : ends;
    if (!replay.Wants(segments[i], segment_ends)) continue;
    absl::Status status = replay.ReadSegment(segments[i], segment_ends);
    if (absl::IsNotFound(status)) {
      absl::MutexLock lock(&mu_);
      if (segments_.front().number > segments[i].number) {
        return absl::OutOfRangeError("trimmed while it was read");
      }
      return JournalDamage(SegmentPath(directory_, segments[i].number), 0,
                           segments[i].bytes, "the file is missing");
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace timecache::server
