#include "server/log/local/journal_tools.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "server/log/local/journal_copy.h"
#include "server/log/local/journal_directory.h"

namespace timecache::server {
namespace {

constexpr size_t kCopyBytes = size_t{1} << 20;

// Reads all that is readable, past damage.
class Scan {
 public:
  // Intact, in order, at or after the end of the partition's one before.
  using Visitor = absl::FunctionRef<absl::Status(const Section& section)>;

  Scan(FileSystem* files, std::string directory)
      : files_(files), directory_(std::move(directory)) {}

  // Finds the identity and the segments.
  absl::Status Open();
  absl::Status Run(Visitor visit);
  JournalReport& report() { return report_; }

 private:
  absl::Status RunSegment(uint64_t number, Visitor visit);
  absl::Status RunGroups(SegmentReader* reader, JournalReport::File* file,
                         Visitor visit);
  // Any partition may have had records here.
  void LoseTails() {
    for (auto& partition : report_.partitions) partition.tail_lost = true;
  }

  FileSystem* const files_;
  const std::string directory_;
  std::vector<uint64_t> segments_;
  std::vector<uint64_t> next_;  // by partition
  uint64_t next_group_ = 1;
  JournalReport report_;
};

absl::Status Scan::Open() {
  auto segments = ListSegments(files_, directory_);
  if (!segments.ok()) return segments.status();
  segments_ = *std::move(segments);
  auto identity = ReadFormat(files_, directory_);
  if (absl::IsFailedPrecondition(identity.status())) return identity.status();
  if (absl::IsNotFound(identity.status()) && segments_.empty()) {
    return absl::NotFoundError(absl::StrCat(directory_, ": no journal"));
  }
  // Every segment has the identity of FORMAT.
  for (size_t i = 0; i < segments_.size() && !identity.ok(); ++i) {
    const auto reader = SegmentReader::Open(
        files_, SegmentPath(directory_, segments_[i]), nullptr);
    if (reader.ok()) identity = (*reader)->header().identity;
  }
  if (!identity.ok()) return identity.status();
  report_.identity = *std::move(identity);
  report_.partitions.resize(report_.identity.partitions);
  next_.resize(report_.identity.partitions);
  if (const auto trim = ReadTrim(files_, directory_, report_.identity);
      trim.ok()) {
    for (uint32_t p = 0; p < report_.identity.partitions; ++p) {
      report_.partitions[p].first = trim->first[p];
    }
  }
  return absl::OkStatus();
}

absl::Status Scan::Run(Visitor visit) {
  for (const uint64_t number : segments_) {
    absl::Status status = RunSegment(number, visit);
    if (!status.ok()) return status;
  }
  for (uint32_t p = 0; p < report_.identity.partitions; ++p) {
    JournalReport::Partition& partition = report_.partitions[p];
    partition.end = std::max(next_[p], partition.first);
  }
  const auto end = ReadEnd(files_, directory_);
  if (end.ok() ? end->next_group != next_group_
               : !absl::IsNotFound(end.status())) {
    LoseTails();
  }
  return absl::OkStatus();
}

absl::Status Scan::RunSegment(uint64_t number, Visitor visit) {
  JournalReport::File file;
  file.path = SegmentPath(directory_, number);
  auto reader = SegmentReader::Open(files_, file.path, &report_.identity);
  if (absl::IsDataLoss(reader.status())) {
    file.damage = "byte 0: its header";
    reader =
        SegmentReader::OpenWithoutHeader(files_, file.path, report_.identity);
  }
  if (!reader.ok()) return reader.status();
  file.bytes = (*reader)->file_bytes();
  if (file.damage.empty()) {
    file.readable_bytes = (*reader)->offset();
    next_group_ = std::max(next_group_, (*reader)->header().first_group);
    for (uint32_t p = 0; p < report_.identity.partitions; ++p) {
      if ((*reader)->header().bases[p] >
          std::max(next_[p], report_.partitions[p].first)) {
        file.damage = "records before it are missing";
      }
    }
  }
  absl::Status status = RunGroups(reader->get(), &file, visit);
  report_.files.push_back(std::move(file));
  return status;
}

absl::Status Scan::RunGroups(SegmentReader* reader, JournalReport::File* file,
                             Visitor visit) {
  const auto damage = [&](uint64_t offset, absl::string_view what) {
    if (file->damage.empty()) {
      file->damage = absl::StrCat("byte ", offset, ": ", what);
    }
  };
  Group group;
  while (true) {
    const auto outcome = reader->Next(&group);
    if (!outcome.ok()) return outcome.status();
    if (*outcome == SegmentReader::Outcome::kEnd) return absl::OkStatus();
    if (*outcome == SegmentReader::Outcome::kDamage) {
      LoseTails();
      damage(group.offset, "not a whole group of records");
      const auto found = reader->Resynchronise(group.offset + 1);
      if (!found.ok()) return found.status();
      if (!*found) return absl::OkStatus();
      continue;
    }
    uint64_t readable = reader->offset() - group.offset;
    for (const Section& section : group.sections) {
      uint64_t& next = next_[section.partition];
      if (!IsIntact(report_.identity, section)) {
        report_.partitions[section.partition].tail_lost = true;
        damage(group.offset, absl::StrCat("partition ", section.partition,
                                          ": the checksum does not fit"));
        readable -= section.body.size();
        continue;
      }
      if (section.first_position < next) {
        damage(group.offset, "a position comes twice");
        continue;
      }
      JournalReport::Partition& partition =
          report_.partitions[section.partition];
      const uint64_t end = section.first_position + section.records;
      if (end > partition.first) {
        partition.records +=
            end - std::max(section.first_position, partition.first);
      }
      next = end;
      partition.tail_lost = false;
      absl::Status status = visit(section);
      if (!status.ok()) return status;
    }
    next_group_ = group.number + 1;
    file->readable_bytes += readable;
    ++file->groups;
  }
}

// Writes sections into a new journal, each a group of its own.
class Salvage {
 public:
  Salvage(FileSystem* files, std::string to, const JournalReport& report)
      : files_(files), to_(std::move(to)), next_(report.partitions.size()) {
    identity_ = {.id = NewJournalId(),
                 .partitions = report.identity.partitions};
    for (const JournalReport::Partition& partition : report.partitions) {
      trim_.first.push_back(partition.first);
      tail_lost_.push_back(!report.intact && partition.tail_lost);
    }
  }

  absl::Status Start() {
    absl::Status status = CreateEmptyDirectory(files_, to_);
    return status.ok() ? StartSegment() : status;
  }

  absl::Status Add(const Section& section) {
    if (offset_ > kSegmentBytes) {
      absl::Status status = file_->Sync();
      if (status.ok()) status = StartSegment();
      if (!status.ok()) return status;
    }
    uint64_t& next = next_[section.partition];
    if (section.first_position > next) {
      absl::Status status = WriteGroup([&] {
        // Without records: marks those before its position as lost.
        encoder_.StartSection(section.partition, section.first_position);
      });
      if (!status.ok()) return status;
    }
    next = section.first_position + section.records;
    absl::Status read;
    absl::Status status = WriteGroup([&] {
      encoder_.StartSection(section.partition, section.first_position);
      read = VisitRecords(section, [&](uint64_t, absl::string_view record) {
        encoder_.Add(record);
        return absl::OkStatus();
      });
    });
    return read.ok() ? status : read;
  }

  absl::Status Finish() {
    // Positions lost at an end are not reused; their number is unknown: one
    // position stands for them.
    absl::Status status;
    for (uint32_t p = 0; p < identity_.partitions && status.ok(); ++p) {
      const uint64_t end =
          std::max(trim_.first[p], next_[p] + (tail_lost_[p] ? 1 : 0));
      if (end > next_[p]) {
        status = WriteGroup([&] { encoder_.StartSection(p, end); });
      }
    }
    if (status.ok()) status = file_->Sync();
    if (status.ok()) status = CreateTrim(files_, to_, identity_, trim_);
    if (status.ok()) {
      status = WriteEnd(files_, to_, {segment_, offset_, group_});
    }
    if (status.ok()) status = MarkAsCopy(files_, to_);
    return status.ok() ? WriteFormat(files_, to_, identity_) : status;
  }

 private:
  static constexpr uint64_t kSegmentBytes = uint64_t{64} << 20;

  absl::Status StartSegment() {
    const SegmentHeader header = {.identity = identity_,
                                  .number = ++segment_,
                                  .first_group = group_,
                                  .bases = next_};
    auto file = files_->Create(SegmentPath(to_, segment_));
    if (!file.ok()) return file.status();
    file_ = *std::move(file);
    const std::string bytes = header.Encode();
    offset_ = bytes.size();
    return file_->Write(0, bytes);
  }

  absl::Status WriteGroup(absl::FunctionRef<void()> fill) {
    encoder_.Start(identity_, group_, group_, /*sections=*/1);
    fill();
    const absl::string_view bytes = encoder_.Finish();
    absl::Status status = file_->Write(offset_, bytes);
    offset_ += bytes.size();
    ++group_;
    return status;
  }

  FileSystem* const files_;
  const std::string to_;
  JournalIdentity identity_;
  TrimPositions trim_;
  std::vector<bool> tail_lost_;  // by partition
  std::vector<uint64_t> next_;
  std::unique_ptr<File> file_;
  GroupEncoder encoder_;
  uint64_t segment_ = 0;
  uint64_t offset_ = 0;
  uint64_t group_ = 1;
};

}  // namespace

std::string JournalReport::ToString() const {
  std::string text;
  for (const File& file : files) {
    absl::StrAppendFormat(&text, "%s: %d of %d bytes readable, %d groups%s%s\n",
                          file.path, file.readable_bytes, file.bytes,
                          file.groups, file.damage.empty() ? "" : "; ",
                          file.damage);
  }
  for (size_t p = 0; p < partitions.size(); ++p) {
    absl::StrAppendFormat(
        &text, "partition %d: positions %d to %d, %d readable\n", p,
        partitions[p].first, partitions[p].end, partitions[p].records);
  }
  if (!damage.empty()) absl::StrAppend(&text, damage, "\n");
  absl::StrAppend(&text, intact ? "intact\n" : "damaged\n");
  return text;
}

bool JournalReport::HasTornTail() const {
  return intact && !files.empty() && !files.back().damage.empty();
}

uint64_t JournalReport::Records() const {
  uint64_t records = 0;
  for (const Partition& partition : partitions) records += partition.records;
  return records;
}

uint64_t JournalReport::Lost() const {
  uint64_t lost = 0;
  for (const Partition& partition : partitions) lost += Lost(partition);
  return lost;
}

absl::StatusOr<std::unique_ptr<DirectoryLock>> LockClosedJournal(
    FileSystem* files, const std::string& directory) {
  auto lock = files->Lock(directory, kLockFile, FileSystem::LockedBy::kReader);
  if (lock.ok() || absl::IsFailedPrecondition(lock.status())) return lock;
  return nullptr;
}

absl::StatusOr<JournalReport> CheckJournal(FileSystem* files,
                                           const std::string& directory) {
  Scan scan(files, directory);
  absl::Status status = scan.Open();
  if (status.ok()) {
    status = scan.Run([](const Section&) { return absl::OkStatus(); });
  }
  if (!status.ok()) return status;
  JournalReport& report = scan.report();
  const auto found = FindJournal(files, directory);
  report.intact = found.ok();
  // Damage to the last segment that does not prevent opening it is a torn tail.
  for (size_t i = 0; i + 1 < report.files.size(); ++i) {
    if (!report.files[i].damage.empty()) report.intact = false;
  }
  if (!found.ok()) {
    report.damage = std::string(absl::StripSuffix(
        found.status().message(), absl::StrCat("; ", JournalAdvice())));
  }
  return std::move(report);
}

absl::Status ReadClosedJournal(FileSystem* files, const std::string& directory,
                               Journal::Visitor visit) {
  const auto journal = FindJournal(files, directory);
  if (!journal.ok()) return journal.status();
  const std::vector<uint64_t>& first = journal->trim.first;
  for (const SegmentState& segment : journal->segments) {
    const std::string path = SegmentPath(directory, segment.number);
    const auto reader = SegmentReader::Open(files, path, &journal->identity);
    if (!reader.ok()) return reader.status();
    // What is behind that is a torn tail.
    (*reader)->LimitTo(segment.bytes);
    PositionFollower follower(journal->identity, segment.bases,
                              (*reader)->header().first_group);
    Group group;
    while ((*reader)->offset() < segment.bytes) {
      const auto outcome = (*reader)->Next(&group);
      if (!outcome.ok()) return outcome.status();
      if (*outcome != SegmentReader::Outcome::kGroup) {
        return JournalDamage(path, group.offset, segment.bytes,
                             "not a group of records");
      }
      if (!follower.Follow(group)) {
        return JournalDamage(path, group.offset, segment.bytes, follower.why());
      }
      for (const Section& section : group.sections) {
        absl::Status status = VisitRecords(
            section, [&](uint64_t position, absl::string_view record) {
              return position < first[section.partition]
                         ? absl::OkStatus()
                         : visit(section.partition, position, record);
            });
        if (!status.ok()) return status;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<JournalReport> SalvageJournal(FileSystem* files,
                                             const std::string& directory,
                                             const std::string& to) {
  auto report = CheckJournal(files, directory);
  if (!report.ok()) return report;
  Scan scan(files, directory);
  absl::Status status = scan.Open();
  Salvage salvage(files, to, *report);
  if (status.ok()) status = salvage.Start();
  if (status.ok()) {
    status =
        scan.Run([&](const Section& section) { return salvage.Add(section); });
  }
  if (status.ok()) status = salvage.Finish();
  if (!status.ok()) return status;
  return report;
}

namespace {

absl::Status CopyInto(FileSystem* files, const std::string& path,
                      const std::string& name, uint64_t bytes,
                      JournalCopy* copy) {
  auto file = files->OpenToRead(path);
  if (!file.ok()) return file.status();
  absl::Status status = copy->BeginFile(name, bytes);
  std::string buffer(kCopyBytes, '\0');
  for (uint64_t offset = 0; offset < bytes && status.ok();) {
    const auto read =
        (*file)->Read(offset, std::min<uint64_t>(buffer.size(), bytes - offset),
                      buffer.data());
    if (!read.ok()) return read.status();
    if (*read == 0) return absl::DataLossError(absl::StrCat(path, ": is cut"));
    status = copy->AddBytes(absl::string_view(buffer).substr(0, *read));
    offset += *read;
  }
  return status.ok() ? copy->EndFile() : status;
}

absl::Status AddText(const std::string& name, const std::string& text,
                     JournalCopy* copy) {
  absl::Status status = copy->BeginFile(name, text.size());
  if (status.ok()) status = copy->AddBytes(text);
  return status.ok() ? copy->EndFile() : status;
}

}  // namespace

absl::StatusOr<JournalReport> RestoreJournal(FileSystem* files,
                                             const std::string& backup,
                                             const std::string& to) {
  const auto journal = FindJournal(files, backup);
  if (absl::IsNotFound(journal.status())) {
    return absl::NotFoundError(absl::StrCat(backup,
                                            ": no whole backup, and no "
                                            "journal: FORMAT is "
                                            "missing"));
  }
  if (!journal.ok()) return journal.status();
  auto copy = JournalCopy::Begin(files, to);
  if (!copy.ok()) return copy.status();
  absl::Status status;
  for (const SegmentState& segment : journal->segments) {
    const std::string path = SegmentPath(backup, segment.number);
    status = CopyInto(files, path, path.substr(backup.size() + 1),
                      segment.bytes, copy->get());
    if (!status.ok()) return status;
  }
  const SegmentState& last = journal->segments.back();
  status = AddText(kTrimFile, EncodeTrimFile(journal->identity, journal->trim),
                   copy->get());
  if (status.ok()) {
    status = AddText(
        kEndFile, EncodeEndFile({last.number, last.bytes, journal->next_group}),
        copy->get());
  }
  if (status.ok()) {
    status =
        AddText(kFormatFile, EncodeFormatFile(journal->identity), copy->get());
  }
  if (!status.ok()) return status;
  return (*copy)->Finish();
}

}  // namespace timecache::server
