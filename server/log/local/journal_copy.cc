#include "server/log/local/journal_copy.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/base/failpoint.h"
#include "server/log/local/journal_directory.h"

namespace timecache::server {
namespace {

// In a directory that is the root of a disk.
constexpr char kLostAndFound[] = "lost+found";
// FORMAT is some lines of text.
constexpr size_t kFormatBytesMax = 4096;
// Of standard input, at once.
constexpr size_t kInputBytes = size_t{1} << 20;

bool IsTemporary(absl::string_view name) {
  return absl::EndsWith(name, kTemporarySuffix);
}

// Also incomplete ones.
bool IsPart(absl::string_view name) {
  name = absl::StripSuffix(name, kTemporarySuffix);
  if (name == kTrimFile || name == kEndFile || name == kCopyFile ||
      name == kFormatFile) {
    return true;
  }
  return name.size() == kSegmentNameDigits &&
         std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

// Whether the directory is empty, or has only the files of an interrupted copy:
// without FORMAT, it is not a journal.
absl::Status CheckIsFree(FileSystem* files, const std::string& directory,
                         bool* unfinished) {
  const auto names = files->List(directory);
  if (!names.ok()) return names.status();
  const std::set<std::string> there(names->begin(), names->end());
  if (there.contains(kFormatFile)) {
    return absl::AlreadyExistsError(
        absl::StrCat(directory, ": holds a journal"));
  }
  *unfinished = there.contains(kRestoringFile);
  for (const std::string& name : there) {
    const bool passes =
        name == kLockFile || name == kLostAndFound ||
        absl::StripSuffix(name, kTemporarySuffix) == kRestoringFile ||
        (*unfinished && IsPart(name));
    if (passes) continue;
    return absl::AlreadyExistsError(
        absl::StrCat(directory, ": is not empty: there is ", name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<JournalCopy>> JournalCopy::Begin(
    FileSystem* files, const std::string& directory) {
  absl::Status status = files->CreateDirectory(directory);
  bool unfinished = false;
  if (status.ok()) status = CheckIsFree(files, directory, &unfinished);
  if (!status.ok()) return status;
  auto lock = files->Lock(directory, kLockFile, FileSystem::LockedBy::kWriter);
  if (!lock.ok()) return lock.status();
  // A server may have created a journal there before it was locked.
  status = CheckIsFree(files, directory, &unfinished);
  if (!status.ok()) return status;
  std::unique_ptr<JournalCopy> copy(
      new JournalCopy(files, directory, *std::move(lock)));
  if (unfinished) status = copy->Clear();
  if (status.ok()) {
    status = WriteFileAtomically(files, directory, kRestoringFile, "");
  }
  if (!status.ok()) return status;
  return copy;
}

JournalCopy::~JournalCopy() {
  file_ = nullptr;
  if (!finished_) Clear().IgnoreError();
}

std::string JournalCopy::PathOf(const std::string& name) const {
  return absl::StrCat(directory_, "/", name);
}

absl::Status JournalCopy::Clear() {
  const auto names = files_->List(directory_);
  if (!names.ok()) return names.status();
  // The first one: from here on it is not a journal.
  absl::Status status = RemoveIfThere(files_, PathOf(kFormatFile));
  for (const std::string& name : *names) {
    if (!status.ok()) return status;
    if (IsPart(name)) status = RemoveIfThere(files_, PathOf(name));
  }
  // After the others, or a crash would leave them without it.
  if (status.ok()) status = RemoveIfThere(files_, PathOf(kRestoringFile));
  if (status.ok()) status = RemoveIfThere(files_, PathOf(kLockFile));
  return status;
}

absl::Status JournalCopy::BeginFile(const std::string& name, uint64_t bytes) {
  name_ = name;
  offset_ = 0;
  // From an archive of a server's directory.
  if (name == kLockFile || name == kReserveFile) return absl::OkStatus();
  // From an interrupted write: it is not needed.
  if (IsPart(name) && IsTemporary(name)) return absl::OkStatus();
  if (!IsPart(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "not a backup of timecached: it has a file \"", name, "\""));
  }
  if (!names_.insert(name).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("a damaged backup: it has ", name, " twice"));
  }
  if (name == kFormatFile) {
    if (bytes <= kFormatBytesMax) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("a damaged backup: ", name, " is too long"));
  }
  auto file = files_->Create(PathOf(name));
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  return absl::OkStatus();
}

absl::Status JournalCopy::AddBytes(absl::string_view bytes) {
  if (name_ == kFormatFile) absl::StrAppend(&format_, bytes);
  if (file_ == nullptr) return absl::OkStatus();
  absl::Status status = file_->Write(offset_, bytes);
  offset_ += bytes.size();
  return status;
}

absl::Status JournalCopy::EndFile() {
  if (file_ == nullptr) return absl::OkStatus();
  return std::exchange(file_, nullptr)->Sync();
}

absl::Status JournalCopy::AddArchive(
    absl::FunctionRef<absl::StatusOr<std::string>()> read) {
  ArchiveReader reader(this);
  while (true) {
    const auto bytes = read();
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty()) return reader.Finish();
    absl::Status status = reader.Add(*bytes);
    if (!status.ok()) return status;
  }
}

absl::StatusOr<JournalReport> JournalCopy::Finish() {
  if (!names_.contains(kFormatFile)) {
    return absl::DataLossError("the backup is incomplete: FORMAT is missing");
  }
  Failpoint("restore.copied");
  absl::Status status = MarkAsCopy(files_, directory_);
  if (status.ok()) {
    status = WriteFileAtomically(files_, directory_, kFormatFile, format_);
  }
  if (!status.ok()) return status;
  Failpoint("restore.described");
  auto report = CheckJournal(files_, directory_);
  if (!report.ok()) return report;
  if (!report->intact) {
    return absl::DataLossError(
        absl::StrCat("the backup is damaged:\n", report->ToString()));
  }
  status = files_->Remove(PathOf(kRestoringFile));
  if (status.ok()) status = RemoveIfThere(files_, PathOf(kLockFile));
  if (status.ok()) status = files_->SyncDirectory(directory_);
  if (!status.ok()) return status;
  finished_ = true;
  Failpoint("restore.end");
  return report;
}

absl::StatusOr<JournalReport> RestoreInput(const std::string& directory) {
  if (isatty(STDIN_FILENO) == 1) {
    return absl::InvalidArgumentError(
        "standard input is a terminal: redirect a backup to it");
  }
  auto copy = JournalCopy::Begin(FileSystem::Posix(), directory);
  if (!copy.ok()) return copy.status();
  const absl::Status status =
      (*copy)->AddArchive([]() -> absl::StatusOr<std::string> {
        std::string bytes(kInputBytes, '\0');
        while (true) {
          const ssize_t size = read(STDIN_FILENO, bytes.data(), bytes.size());
          if (size < 0 && errno == EINTR) continue;
          if (size < 0) return absl::ErrnoToStatus(errno, "standard input");
          bytes.resize(static_cast<size_t>(size));
          return bytes;
        }
      });
  if (!status.ok()) return status;
  return (*copy)->Finish();
}

}  // namespace timecache::server
