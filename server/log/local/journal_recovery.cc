// The part of a journal's directory that finds the log again.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/failpoint.h"
#include "server/log/local/journal_directory.h"

namespace timecache::server {

namespace {

constexpr uint64_t kRewriteBytes = uint64_t{1} << 20;

// True if no partition needs what is before a segment of these bases.
bool IsTrimmed(const std::vector<uint64_t>& bases, const TrimPositions& trim) {
  for (size_t p = 0; p < bases.size(); ++p) {
    if (bases[p] > trim.first[p]) return false;
  }
  return true;
}

// All but the groups of the last segment.
absl::Status RecoverSegments(FileSystem* files, const std::string& directory,
                             RecoveredJournal* journal) {
  const auto numbers = ListSegments(files, directory);
  if (!numbers.ok()) return numbers.status();
  if (numbers->empty()) return FileDamage(directory, "has no segment");
  for (const uint64_t number : *numbers) {
    const std::string path = SegmentPath(directory, number);
    const auto reader = SegmentReader::Open(files, path, &journal->identity);
    if (absl::IsDataLoss(reader.status())) {
      return FileDamage(path, "its header is damaged");
    }
    if (!reader.ok()) return reader.status();
    const SegmentHeader& header = (*reader)->header();
    if (header.number != number) {
      return FileDamage(path, "has another segment's header");
    }
    if (!journal->segments.empty() &&
        journal->segments.back().number + 1 != number) {
      if (!IsTrimmed(header.bases, journal->trim)) {
        return FileDamage(SegmentPath(directory, number - 1), "is missing");
      }
      // A power loss has undone some removals of earlier ones and not all.
      for (const SegmentState& trimmed : journal->segments) {
        journal->leftovers.push_back(trimmed.number);
      }
      journal->segments.clear();
    }
    journal->segments.push_back(
        {number, (*reader)->file_bytes(), header.bases});
  }
  const SegmentState& oldest = journal->segments.front();
  if (!IsTrimmed(oldest.bases, journal->trim)) {
    return FileDamage(SegmentPath(directory, oldest.number - 1),
                      "is missing, and has records that are not trimmed");
  }
  return absl::OkStatus();
}

// True if a group at or after `from` records that `group` was synced: then the
// bytes in its place are not a torn write.
absl::StatusOr<bool> WasSynced(SegmentReader* reader, uint64_t from,
                               uint64_t group) {
  while (true) {
    const auto found = reader->Resynchronise(from);
    if (!found.ok()) return found.status();
    if (!*found) return false;
    Group later;
    const auto outcome = reader->Next(&later);
    if (!outcome.ok()) return outcome.status();
    if (later.durable_group > group) return true;
    from = later.offset + 1;
  }
}

absl::Status RecoverLastSegment(FileSystem* files, const std::string& directory,
                                RecoveredJournal* journal) {
  SegmentState& last = journal->segments.back();
  const std::string path = SegmentPath(directory, last.number);
  auto opened = SegmentReader::Open(files, path, &journal->identity);
  if (!opened.ok()) return opened.status();
  SegmentReader& reader = **opened;
  PositionFollower follower(journal->identity, last.bases,
                            reader.header().first_group);
  Group group;
  journal->synced_bytes = reader.offset();
  // Where the groups begin that no group records as synced.
  std::deque<std::pair<uint64_t, uint64_t>> unsynced;
  while (true) {
    const uint64_t offset = reader.offset();
    const auto outcome = reader.Next(&group);
    if (!outcome.ok()) return outcome.status();
    if (*outcome == SegmentReader::Outcome::kEnd) break;
    if (*outcome == SegmentReader::Outcome::kGroup && follower.Follow(group)) {
      unsynced.emplace_back(group.number, group.offset);
      while (unsynced.front().first < group.durable_group) unsynced.pop_front();
      journal->synced_bytes = unsynced.front().second;
      continue;
    }
    const auto synced = WasSynced(&reader, offset, follower.group());
    if (!synced.ok()) return synced.status();
    if (*synced) {
      return JournalDamage(path, offset, reader.file_bytes(),
                           "groups that were synced are damaged");
    }
    last.bytes = offset;
    break;
  }
  journal->ends = follower.positions();
  journal->next_group = follower.group();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RecoveredJournal> FindJournal(FileSystem* files,
                                             const std::string& directory) {
  RecoveredJournal journal;
  auto identity = ReadFormat(files, directory);
  if (!identity.ok()) return identity.status();
  journal.identity = *std::move(identity);
  auto trim = ReadTrim(files, directory, journal.identity);
  if (!trim.ok()) return trim.status();
  journal.trim = *std::move(trim);
  absl::Status status = RecoverSegments(files, directory, &journal);
  if (!status.ok()) return status;
  status = RecoverLastSegment(files, directory, &journal);
  if (!status.ok()) return status;

  const SegmentState& last = journal.segments.back();
  const std::string path = SegmentPath(directory, last.number);
  const auto end = ReadEnd(files, directory);
  if (!end.ok() && !absl::IsNotFound(end.status())) return end.status();
  if (end.ok() && *end != LogEnd{last.number, last.bytes, journal.next_group}) {
    return JournalDamage(
        path, last.bytes, last.bytes,
        absl::StrCat("the journal was closed at byte ", end->bytes,
                     " of segment ", end->segment));
  }
  for (uint32_t p = 0; p < journal.identity.partitions; ++p) {
    if (journal.trim.first[p] > journal.ends[p]) {
      return JournalDamage(
          path, last.bytes, last.bytes,
          absl::StrCat("partition ", p, " ends before what is trimmed"));
    }
  }
  journal.closed = end.ok();
  return journal;
}

namespace {

// Cuts the file off. It keeps the room that it has on the disk: on a full one
// that may be all there is.
absl::Status CutOff(File* file, uint64_t end) {
  const auto allocated = file->Allocated();
  if (!allocated.ok()) return allocated.status();
  absl::Status status = file->Truncate(end);
  if (status.ok()) file->Allocate(*allocated).IgnoreError();
  return status;
}

// Rewrites the bytes of the file from `from` on. After a failed sync, the
// system may return them and yet count them as written, so that another sync
// does not write them.
absl::Status WriteAgain(File* file, uint64_t from, uint64_t end) {
  std::string buffer;
  while (from < end) {
    buffer.resize(std::min<uint64_t>(end - from, kRewriteBytes));
    const auto read = file->Read(from, buffer.size(), buffer.data());
    if (!read.ok()) return read.status();
    if (*read == 0) return absl::DataLossError("the file has become shorter");
    buffer.resize(*read);
    absl::Status status = file->Write(from, buffer);
    if (!status.ok()) return status;
    from += *read;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RecoveredJournal> RecoverJournal(FileSystem* files,
                                                const std::string& directory) {
  auto journal = FindJournal(files, directory);
  if (!journal.ok()) return journal;
  const SegmentState& last = journal->segments.back();
  absl::Status status;
  if (!journal->closed) {
    auto file = files->Open(SegmentPath(directory, last.number));
    if (!file.ok()) return file.status();
    const auto bytes = (*file)->Size();
    if (!bytes.ok()) return bytes.status();
    if (*bytes > last.bytes) status = CutOff(file->get(), last.bytes);
    if (status.ok()) {
      status = WriteAgain(file->get(), journal->synced_bytes, last.bytes);
    }
    if (status.ok()) status = (*file)->Sync();
    Failpoint("open.cut");
  }
  for (const uint64_t number : journal->leftovers) {
    if (status.ok()) status = files->Remove(SegmentPath(directory, number));
  }
  if (status.ok()) status = files->SyncDirectory(directory);
  if (!status.ok()) return status;
  return journal;
}

}  // namespace timecache::server
