#include "server/journal/local/log_writer.h"

#include <utility>

#include "server/journal/local/failpoint.h"

namespace timecache::server {

LogWriter::LogWriter(FileSystem* files, std::string directory,
                     const RecoveredJournal& recovered)
    : files_(files),
      directory_(std::move(directory)),
      identity_(recovered.identity),
      end_{recovered.segments.back().number, recovered.segments.back().bytes,
           recovered.next_group},
      positions_(recovered.ends) {}

absl::Status LogWriter::Start() {
  auto file = files_->Open(SegmentPath(directory_, end_.segment));
  if (file.ok()) file_ = *std::move(file);
  return file.status();
}

absl::Status LogWriter::StartSegment() {
  Failpoint("roll.begin");
  absl::Status status = Sync();
  if (!status.ok()) return status;
  const SegmentHeader header = {.identity = identity_,
                                .number = end_.segment + 1,
                                .first_group = end_.next_group,
                                .bases = positions_};
  const std::string bytes = header.Encode();
  const std::string path = SegmentPath(directory_, header.number);
  // Complete before it gets its name: a damaged header is never a torn write.
  status = WriteFileAtomically(files_, directory_,
                               path.substr(directory_.size() + 1), bytes);
  if (!status.ok()) return status;
  Failpoint("roll.created");
  auto file = files_->Open(path);
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  end_.segment = header.number;
  end_.bytes = bytes.size();
  Failpoint("roll.end");
  return absl::OkStatus();
}

absl::Status LogWriter::WriteGroup(absl::Span<LogAppend* const> appends,
                                   bool sync) {
  absl::Status status = WriteUnsyncedAgain();
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
  if (!status.ok()) {
    // Undone, or a later restart would find records whose append has failed.
    const absl::Status undone = file_->Truncate(end_.bytes);
    return undone.ok() ? status : absl::InternalError(undone.message());
  }
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

void LogWriter::EndSync(const absl::Status& status, uint64_t took_us) {
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
  if (unsynced_.empty()) return absl::OkStatus();
  absl::Status status = WriteUnsyncedAgain();
  if (status.ok()) status = SyncFile();
  if (status.ok()) unsynced_.Clear();
  return status;
}

}  // namespace timecache::server
