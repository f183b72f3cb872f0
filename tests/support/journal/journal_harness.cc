#include "tests/support/journal/journal_harness.h"

#include "server/log/local/journal_copy.h"

namespace timecache::server {

ReadResult ReadAll(const Journal& journal) {
  ReadResult result;
  result.partitions.resize(journal.partitions());
  std::vector<Journal::ReadFrom> from;
  for (uint32_t p = 0; p < journal.partitions(); ++p) {
    from.push_back({p, journal.First(p)});
  }
  result.status = journal.Read(
      from, [&](uint32_t p, uint64_t position, absl::string_view record) {
        if (!result.partitions[p].emplace(position, record).second) {
          return absl::InternalError("a position came twice");
        }
        return absl::OkStatus();
      });
  return result;
}

absl::Status BackUp(LocalJournal* journal, FileSystem* files,
                    const std::string& to, size_t piece_bytes) {
  const auto backup = journal->OpenBackup();
  auto copy = JournalCopy::Begin(files, to);
  if (!copy.ok()) return copy.status();
  absl::Status status = (*copy)->AddArchive(
      [&backup, piece_bytes] { return backup->Read(piece_bytes); });
  return status.ok() ? (*copy)->Finish().status() : status;
}

std::string ArchiveOf(LocalJournal* journal) {
  const auto backup = journal->OpenBackup();
  std::string archive;
  while (true) {
    const auto piece = backup->Read(1 << 20);
    if (!piece.ok() || piece->empty()) return archive;
    archive += *piece;
  }
}

absl::Status Unpack(const std::string& archive, FileSystem* files,
                    const std::string& to, size_t piece_bytes) {
  auto copy = JournalCopy::Begin(files, to);
  if (!copy.ok()) return copy.status();
  size_t at = 0;
  absl::Status status = (*copy)->AddArchive([&] {
    const std::string piece = archive.substr(at, piece_bytes);
    at += piece.size();
    return piece;
  });
  return status.ok() ? (*copy)->Finish().status() : status;
}

JournalHarness::JournalHarness(uint32_t partitions, uint64_t segment_bytes) {
  options_.partitions = partitions;
  options_.segment_bytes = segment_bytes;
  options_.own_thread = false;
  options_.now = [this] { return now_; };
  options_.on_failure = [this](const std::string& line) {
    failures_.push_back(line);
  };
  options_.files = files_.get();
}

absl::Status JournalHarness::Open() {
  Close();
  auto journal = LocalJournal::Open(kTestDirectory, options_);
  if (!journal.ok()) return journal.status();
  journal_ = *std::move(journal);
  return absl::OkStatus();
}

void JournalHarness::Crash() {
  auto copy = files_->Copy();
  // Closing may write, but to a disk that is gone.
  Close();
  UseFiles(std::move(copy));
}

void JournalHarness::UseFiles(std::unique_ptr<MemoryFileSystem> files) {
  old_files_.push_back(std::exchange(files_, std::move(files)));
  options_.files = files_.get();
}

size_t JournalHarness::Append(uint32_t partition,
                              std::vector<std::string> records,
                              Durability durability) {
  const size_t index = results_.size();
  results_.push_back(absl::UnknownError("not done"));
  journal_->Append(partition, std::move(records), durability,
                   [this, index](absl::StatusOr<uint64_t> result, auto) {
                     results_[index] = std::move(result);
                   });
  return index;
}

absl::StatusOr<uint64_t> JournalHarness::AppendNow(uint32_t partition,
                                                   std::string record,
                                                   Durability durability) {
  const size_t index = Append(partition, {std::move(record)}, durability);
  RunOnce();
  return results_[index];
}

std::string JournalHarness::LastSegment() const {
  const auto segments = ListSegments(files_.get(), kTestDirectory);
  return SegmentPath(kTestDirectory, segments->back());
}

}  // namespace timecache::server
