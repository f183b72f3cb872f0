#include "server/log/local/log_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/failpoint.h"

namespace timecache::server {

LogWriter::LogWriter(FileSystem* files, std::string directory,
                     DirectoryLock* lock, const RecoveredJournal& recovered)
    : files_(files),
      directory_(std::move(directory)),
      lock_(lock),
      identity_(recovered.identity),
      end_{recovered.segments.back().number, recovered.segments.back().bytes,
           recovered.next_group},
      positions_(recovered.ends) {}

absl::Status LogWriter::Start() {
  auto file = files_->Open(SegmentPath(directory_, end_.segment));
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  FindRoom();
  return absl::OkStatus();
}

void LogWriter::FindRoom() {
  const auto allocated = file_->Allocated();
  if (!allocated.ok() || *allocated <= end_.bytes + kRoundedBytesMax) return;
  const uint64_t room = *allocated - kRoundedBytesMax;
  // Otherwise a file system may take back what it gave without being asked.
  if (file_->Allocate(room).ok()) room_ = room;
}

absl::Status LogWriter::StartSegment(DiskReserve* reserve) {
  Failpoint("roll.begin");
  absl::Status status = Sync();
  // Reads of a segment that is not the last one end with the file. This also
  // frees the rest of the room that the segment was given.
  if (status.ok()) status = CutOff();
  if (!status.ok()) return status;
  const SegmentHeader header = {.identity = identity_,
                                .number = end_.segment + 1,
                                .first_group = end_.next_group,
                                .bases = positions_};
  const std::string bytes = header.Encode();
  const std::string path = SegmentPath(directory_, header.number);
  const uint64_t room = reserve == nullptr ? 0 : reserve->bytes();
  auto file = CreateSegment(reserve, path, bytes);
  if (!file.ok()) return file.status();
  Failpoint("roll.created");
  // From here on a crash finds it: the one before must not grow any more.
  file_ = *std::move(file);
  room_ = room;
  name_unsynced_ = true;
  end_.segment = header.number;
  end_.bytes = bytes.size();
  Failpoint("roll.end");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<File>> LogWriter::CreateSegment(
    DiskReserve* reserve, const std::string& path, absl::string_view header) {
  const std::string temporary = absl::StrCat(path, kTemporarySuffix);
  std::unique_ptr<File> created;
  if (reserve == nullptr) {
    auto file = files_->Create(temporary);
    if (!file.ok()) return file;
    created = *std::move(file);
  }
  File* const file = reserve == nullptr ? created.get() : reserve->file();
  const std::string& from = reserve == nullptr ? temporary : reserve->path();
  // Complete before it gets its name: a damaged header is never a torn write.
  absl::Status status = file->Write(0, header);
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = files_->Rename(from, path);
  if (!status.ok()) {
    if (reserve == nullptr) files_->Remove(temporary).IgnoreError();
    return status;
  }
  return reserve == nullptr ? std::move(created) : reserve->Give();
}

absl::Status LogWriter::CutOff() {
  absl::Status status = file_->Truncate(end_.bytes);
  if (status.ok()) room_ = 0;
  if (!status.ok() || !may_overhang_) return status;
  status = file_->Sync();
  if (status.ok()) may_overhang_ = false;
  return status;
}

absl::Status LogWriter::SyncName() {
  if (!name_unsynced_) return absl::OkStatus();
  absl::Status status = lock_->Sync();
  if (status.ok()) name_unsynced_ = false;
  return status;
}

absl::Status LogWriter::Finish() {
  absl::Status status = Sync();
  return status.ok() && may_overhang_ ? CutOff() : status;
}

absl::Status LogWriter::WriteGroup(absl::Span<LogAppend* const> appends,
                                   bool sync) {
  absl::Status status = SyncName();
  if (status.ok()) status = WriteUnsyncedAgain();
  if (status.ok() && !MayWrite()) status = Sync();
  if (!status.ok()) return status;
  std::vector<uint64_t> positions = positions_;
  uint32_t sections = 0;
  size_t body_bytes = 0;
  const LogAppend* previous = nullptr;
  for (const LogAppend* const append : appends) {
    if (previous == nullptr || previous->partition != append->partition) {
      ++sections;
    }
    for (const std::string& record : append->records) {
      body_bytes += GroupEncoder::BodyBytes(record);
    }
    previous = append;
  }
  encoder_.Start(identity_, end_.next_group,
                 unsynced_.empty() ? end_.next_group : first_unsynced_group_,
                 sections, body_bytes);
  previous = nullptr;
  for (LogAppend* const append : appends) {
    append->position = positions[append->partition];
    if (previous == nullptr || previous->partition != append->partition) {
      encoder_.StartSection(append->partition, append->position);
    }
    previous = append;
    for (const std::string& record : append->records) encoder_.Add(record);
    positions[append->partition] += append->records.size();
  }
  const absl::string_view bytes = encoder_.Finish();
  const size_t size = bytes.size();
  status = file_->Write(end_.bytes, bytes);
  Failpoint("commit.written");
  if (status.ok() && sync) {
    status = SyncFile();
    Failpoint("commit.synced");
  }
  if (!status.ok()) return Undo(std::move(status));
  if (sync) {
    unsynced_.Clear();
  } else {
    if (unsynced_.empty()) first_unsynced_group_ = end_.next_group;
    unsynced_.Add(encoder_.Take(unsynced_.TakeSpare()));
  }
  end_.bytes += size;
  ++end_.next_group;
  positions_ = std::move(positions);
  return absl::OkStatus();
}

absl::Status LogWriter::Undo(absl::Status status) {
  const auto size = file_->Size();
  if (size.ok() && *size <= end_.bytes) return status;
  may_overhang_ = true;
  const absl::Status undone = file_->Truncate(end_.bytes);
  // That was cut off, too.
  if (room_ > 0 && !file_->Allocate(room_).ok()) room_ = 0;
  const bool lacks_room =
      absl::IsResourceExhausted(undone) || absl::IsUnavailable(undone);
  return undone.ok() || lacks_room ? status
                                   : absl::InternalError(undone.message());
}

absl::Status LogWriter::SyncFile() {
  ++syncs_;
  const auto began = std::chrono::steady_clock::now();
  absl::Status status = file_->Sync();
  sync_latency_.Add(MicrosSince(began));
  if (!status.ok()) {
    ++sync_errors_;
    // The system may have dropped data that it could not write.
    unsynced_may_be_lost_ = !unsynced_.empty();
  }
  return status;
}

absl::Status LogWriter::WriteUnsyncedAgain() {
  if (!unsynced_may_be_lost_) return absl::OkStatus();
  absl::Status status = unsynced_.WriteTo(file_.get(), end_.bytes);
  if (status.ok()) unsynced_may_be_lost_ = false;
  return status;
}

File* LogWriter::BeginSync() {
  if (unsynced_.empty() || unsynced_may_be_lost_) return nullptr;
  ++syncs_;
  syncing_groups_ = unsynced_.size();
  syncing_end_ = end_.next_group;
  return file_.get();
}

void LogWriter::EndSync(const absl::Status& status, int64_t took_us) {
  sync_latency_.Add(took_us);
  if (status.ok()) {
    unsynced_.DropFirst(syncing_groups_);
    first_unsynced_group_ = syncing_end_;
  } else {
    ++sync_errors_;
    // As after SyncFile; including groups written meanwhile.
    unsynced_may_be_lost_ = true;
  }
}

absl::Status LogWriter::Sync() {
  absl::Status status = SyncName();
  if (!status.ok() || unsynced_.empty()) return status;
  status = WriteUnsyncedAgain();
  if (status.ok()) status = SyncFile();
  if (status.ok()) unsynced_.Clear();
  return status;
}

}  // namespace timecache::server
