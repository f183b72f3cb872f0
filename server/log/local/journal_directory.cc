#include "server/log/local/journal_directory.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "server/base/coding.h"
#include "server/base/crc32c.h"
#include "server/base/read_file.h"

namespace timecache::server {
namespace {

constexpr absl::string_view kFormatTitle = "timecached journal";
constexpr char kClockTitle[] = "behind_us ";
// Of the slots of TRIM: writing one leaves the sector of the other alone.
constexpr size_t kTrimAlignment = 4096;

std::string PathOf(const std::string& directory, absl::string_view name) {
  return absl::StrCat(directory, "/",
                      absl::string_view(name.data(), name.size()));
}

// "name value ... crc", in lines, the last one for all before.
std::string WithCrc(std::string text) {
  const uint32_t crc = Crc32c(0, text);
  absl::StrAppendFormat(&text, "crc %08x\n", crc);
  return text;
}

// The text before the CRC; DATA_LOSS if it does not fit.
absl::StatusOr<std::string> ReadWithCrc(FileSystem* files,
                                        const std::string& path) {
  auto text = ReadSmallFile(files, path);
  if (!text.ok()) return text;
  const size_t at = text->rfind("crc ");
  if (at == std::string::npos || WithCrc(text->substr(0, at)) != *text) {
    return FileDamage(path, "is damaged");
  }
  text->resize(at);
  return text;
}

size_t TrimSlotBytes(const JournalIdentity& identity) {
  const size_t bytes = 8 + size_t{8} * identity.partitions + 4;
  return (bytes + kTrimAlignment - 1) / kTrimAlignment * kTrimAlignment;
}

std::string EncodeTrim(const JournalIdentity& identity,
                       const TrimPositions& trim) {
  std::string bytes;
  PutNumber(&bytes, trim.sequence);
  for (const uint64_t first : trim.first) PutNumber(&bytes, first);
  PutNumber(&bytes, Crc32c(identity.seed(), bytes));
  bytes.resize(TrimSlotBytes(identity), '\0');
  return bytes;
}

}  // namespace

absl::string_view JournalAdvice() {
  return "`timecachectl journal check` lists what is readable, `timecachectl "
         "journal salvage` copies it into a new directory";
}

absl::Status JournalDamage(const std::string& path, uint64_t offset,
                           uint64_t file_bytes, absl::string_view what) {
  return absl::DataLossError(absl::StrFormat(
      "%s: damaged at byte %d of %d: %s; all before it is readable; %s", path,
      offset, file_bytes, what, JournalAdvice()));
}

absl::Status FileDamage(const std::string& path, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(path, ": ", what, "; ", JournalAdvice()));
}

std::string NewJournalId() {
  std::random_device random;
  std::string id;
  while (id.size() < kJournalIdBytes) {
    PutNumber(&id, static_cast<uint32_t>(random()));
  }
  return id;
}

std::string SegmentPath(const std::string& directory, uint64_t number) {
  return absl::StrFormat("%s/%0*d", directory, int{kSegmentNameDigits}, number);
}

absl::StatusOr<std::vector<uint64_t>> ListSegments(
    FileSystem* files, const std::string& directory) {
  const auto names = files->List(directory);
  if (!names.ok()) return names.status();
  std::vector<uint64_t> numbers;
  for (const std::string& name : *names) {
    uint64_t number;
    if (name.size() == kSegmentNameDigits && absl::SimpleAtoi(name, &number)) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

absl::StatusOr<JournalIdentity> ReadFormat(FileSystem* files,
                                           const std::string& directory) {
  const std::string path = PathOf(directory, kFormatFile);
  const auto text = ReadSmallFile(files, path);
  if (!text.ok()) return text.status();
  // A newer format may have another checksum: look at its version first.
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  absl::string_view version_text = lines[0];
  uint32_t version = 0;
  if (absl::ConsumePrefix(&version_text, kFormatTitle) &&
      absl::SimpleAtoi(version_text, &version) && version > kJournalVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": format ", version,
                     ", newer than this server's, which is ", kJournalVersion));
  }
  const auto checked = ReadWithCrc(files, path);
  if (!checked.ok()) return checked.status();
  JournalIdentity identity;
  if (version != kJournalVersion || lines.size() < 3 ||
      !absl::StartsWith(lines[1], "partitions ") ||
      !absl::SimpleAtoi(lines[1].substr(11), &identity.partitions) ||
      !absl::StartsWith(lines[2], "id ") ||
      lines[2].size() != 3 + 2 * kJournalIdBytes) {
    return FileDamage(path, "is damaged");
  }
  identity.id = absl::HexStringToBytes(lines[2].substr(3));
  return identity;
}

absl::Status WriteFormat(FileSystem* files, const std::string& directory,
                         const JournalIdentity& identity) {
  return WriteFileAtomically(files, directory, std::string(kFormatFile),
                             EncodeFormatFile(identity));
}

std::string EncodeFormatFile(const JournalIdentity& identity) {
  return WithCrc(absl::StrCat(kFormatTitle, " ", kJournalVersion,
                              "\npartitions ", identity.partitions, "\nid ",
                              absl::BytesToHexString(identity.id), "\n"));
}

std::string MachineBootId() {
  constexpr size_t kMaxBytes = 64;
  return std::string(absl::StripAsciiWhitespace(
      ReadFile("/proc/sys/kernel/random/boot_id", kMaxBytes).value_or("")));
}

absl::StatusOr<std::string> ReadBoot(FileSystem* files,
                                     const std::string& directory) {
  auto id = ReadSmallFile(files, PathOf(directory, kBootFile));
  if (absl::IsNotFound(id.status())) return std::string();
  return id;
}

absl::Status WriteBoot(FileSystem* files, const std::string& directory,
                       const std::string& boot_id) {
  return WriteFileAtomically(files, directory, kBootFile, boot_id);
}

absl::Status MarkAsCopy(FileSystem* files, const std::string& directory) {
  return WriteFileAtomically(files, directory, std::string(kCopyFile), "");
}

absl::StatusOr<bool> IsMarkedAsCopy(FileSystem* files,
                                    const std::string& directory) {
  const auto file = files->OpenToRead(PathOf(directory, kCopyFile));
  if (file.ok()) return true;
  if (absl::IsNotFound(file.status())) return false;
  return file.status();
}

absl::Status UnmarkAsCopy(FileSystem* files, const std::string& directory) {
  absl::Status status = files->Remove(PathOf(directory, kCopyFile));
  return status.ok() ? files->SyncDirectory(directory) : status;
}

absl::StatusOr<int64_t> ReadClockBehind(FileSystem* files,
                                        const std::string& directory) {
  const std::string path = PathOf(directory, kClockFile);
  const auto text = ReadWithCrc(files, path);
  if (absl::IsNotFound(text.status())) return 0;
  if (!text.ok() && !absl::IsDataLoss(text.status())) return text.status();
  absl::string_view number = text.ok() ? *text : absl::string_view();
  int64_t behind_us = 0;
  if (absl::ConsumePrefix(&number, kClockTitle) &&
      absl::SimpleAtoi(number, &behind_us) && behind_us >= 0) {
    return behind_us;
  }
  return FileDamage(path,
                    "is damaged: remove it, if the machine's clock was right");
}

absl::Status WriteClockBehind(FileSystem* files, const std::string& directory,
                              int64_t behind_us) {
  return WriteFileAtomically(
      files, directory, std::string(kClockFile),
      WithCrc(absl::StrCat(kClockTitle, behind_us, "\n")));
}

absl::StatusOr<TrimPositions> ReadTrim(FileSystem* files,
                                       const std::string& directory,
                                       const JournalIdentity& identity) {
  const std::string path = PathOf(directory, kTrimFile);
  const auto bytes = ReadSmallFile(files, path);
  if (absl::IsNotFound(bytes.status())) return FileDamage(path, "is missing");
  if (!bytes.ok()) return bytes.status();
  TrimPositions latest;
  const size_t slot_bytes = TrimSlotBytes(identity);
  for (size_t at = 0; at + slot_bytes <= bytes->size(); at += slot_bytes) {
    const absl::string_view slot =
        absl::string_view(*bytes).substr(at, slot_bytes);
    TrimPositions trim;
    trim.sequence = NumberAt<uint64_t>(slot, 0);
    for (uint32_t p = 0; p < identity.partitions; ++p) {
      trim.first.push_back(NumberAt<uint64_t>(slot, 8 + size_t{8} * p));
    }
    if (EncodeTrim(identity, trim) == slot &&
        (latest.first.empty() || trim.sequence > latest.sequence)) {
      latest = std::move(trim);
    }
  }
  if (latest.first.empty()) return FileDamage(path, "is damaged");
  return latest;
}

std::string EncodeTrimFile(const JournalIdentity& identity,
                           const TrimPositions& trim) {
  const std::string slot = EncodeTrim(identity, trim);
  return absl::StrCat(slot, slot);
}

absl::Status CreateTrim(FileSystem* files, const std::string& directory,
                        const JournalIdentity& identity,
                        const TrimPositions& trim) {
  return WriteFileAtomically(files, directory, std::string(kTrimFile),
                             EncodeTrimFile(identity, trim));
}

absl::Status OverwriteTrim(FileSystem* files, const std::string& directory,
                           const JournalIdentity& identity,
                           const TrimPositions& trim) {
  auto file = files->Open(PathOf(directory, kTrimFile));
  if (!file.ok()) return file.status();
  absl::Status status = (*file)->Write(
      trim.sequence % 2 * TrimSlotBytes(identity), EncodeTrim(identity, trim));
  return status.ok() ? (*file)->Sync() : status;
}

absl::StatusOr<LogEnd> ReadEnd(FileSystem* files,
                               const std::string& directory) {
  const std::string path = PathOf(directory, kEndFile);
  const auto text = ReadWithCrc(files, path);
  if (!text.ok()) return text.status();
  const std::vector<std::string> words = absl::StrSplit(*text, ' ');
  LogEnd end;
  if (words.size() != 4 || !absl::SimpleAtoi(words[0], &end.segment) ||
      !absl::SimpleAtoi(words[1], &end.bytes) ||
      !absl::SimpleAtoi(words[2], &end.next_group)) {
    return FileDamage(path, "is damaged");
  }
  return end;
}

absl::Status WriteEnd(FileSystem* files, const std::string& directory,
                      const LogEnd& end) {
  return WriteFileAtomically(files, directory, std::string(kEndFile),
                             EncodeEndFile(end));
}

std::string EncodeEndFile(const LogEnd& end) {
  return WithCrc(
      absl::StrCat(end.segment, " ", end.bytes, " ", end.next_group, " \n"));
}

bool PositionFollower::Follow(const Group& group,
                              const std::vector<bool>& partitions) {
  if (group.number != next_group_) {
    why_ = absl::StrCat("group ", group.number, " where ", next_group_,
                        " should be");
    return false;
  }
  for (const Section& section : group.sections) {
    const uint64_t next = next_[section.partition];
    // Without records, it marks those before its position as lost.
    const bool follows = section.records == 0 ? section.first_position >= next
                                              : section.first_position == next;
    const bool wanted = partitions.empty() || partitions[section.partition];
    if (!follows || (wanted && !IsIntact(identity_, section))) {
      why_ = absl::StrCat(
          "group ", group.number, ", partition ", section.partition,
          follows ? ": the checksum does not fit" : ": positions are missing");
      return false;
    }
  }
  ++next_group_;
  for (const Section& section : group.sections) {
    next_[section.partition] = section.first_position + section.records;
  }
  return true;
}

absl::Status CreateJournal(FileSystem* files, const std::string& directory,
                           uint32_t partitions) {
  if (files->OpenToRead(PathOf(directory, kRestoringFile)).ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        directory,
        ": the restore of a backup was interrupted: restore it again"));
  }
  const auto segments = ListSegments(files, directory);
  if (!segments.ok()) return segments.status();
  // A crash during creation leaves the first segment, without records.
  for (const uint64_t number : *segments) {
    const auto reader = SegmentReader::Open(
        files, SegmentPath(directory, number), /*identity=*/nullptr);
    if (!reader.ok() && !absl::IsDataLoss(reader.status())) {
      return reader.status();
    }
    if (number != 1 || !reader.ok() ||
        (*reader)->file_bytes() > (*reader)->offset()) {
      return FileDamage(PathOf(directory, kFormatFile),
                        "is missing, and there are records");
    }
  }
  const JournalIdentity identity{.id = NewJournalId(),
                                 .partitions = partitions};
  const SegmentHeader header{.identity = identity,
                             .number = 1,
                             .first_group = 1,
                             .bases = std::vector<uint64_t>(partitions)};
  files->Remove(PathOf(directory, kEndFile)).IgnoreError();
  absl::Status status =
      CreateTrim(files, directory, identity,
                 {.sequence = 1, .first = std::vector<uint64_t>(partitions)});
  if (status.ok()) {
    const std::string path = SegmentPath(directory, header.number);
    status = WriteFileAtomically(
        files, directory, path.substr(directory.size() + 1), header.Encode());
  }
  return status.ok() ? WriteFormat(files, directory, identity) : status;
}

}  // namespace timecache::server
