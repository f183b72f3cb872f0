#include "server/log/local/record_backup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/log/local/backup_archive.h"
#include "server/log/local/journal_backup.h"
#include "server/log/local/journal_directory.h"

namespace timecache::server {

RecordBackup::RecordBackup(std::vector<uint64_t> first, size_t segment_bytes)
    : segment_bytes_(segment_bytes),
      first_(std::move(first)),
      identity_({.id = NewJournalId(),
                 .partitions = static_cast<uint32_t>(first_.size())}),
      time_s_(absl::ToUnixSeconds(absl::Now())),
      next_(first_),
      written_(first_) {
  StartSegment();
}

absl::Status RecordBackup::Add(uint32_t partition, uint64_t position,
                               absl::string_view record) {
  if (position != next_[partition]) {
    return absl::DataLossError(
        absl::StrCat("partition ", partition, " of the journal goes on at ",
                     "position ", position, " in place of ", next_[partition]));
  }
  ++next_[partition];
  Waiting& waiting = waiting_[partition];
  if (waiting.records.empty()) waiting.first = position;
  waiting.records.emplace_back(record);
  waiting_bytes_ += GroupEncoder::BodyBytes(record);
  if (waiting_bytes_ >= kGroupBytes) WriteGroup();
  return absl::OkStatus();
}

void RecordBackup::Finish() {
  if (!waiting_.empty()) WriteGroup();
  const LogEnd end = {segment_, bytes_.size(), group_};
  EndSegment();
  for (const auto& [name, contents] :
       DescribeBackup(identity_, {.first = first_}, end)) {
    AddFile(name, contents);
  }
  out_ += ArchiveEnd();
}

std::string RecordBackup::Take(size_t bytes) {
  std::string taken = out_.substr(taken_, bytes);
  taken_ += taken.size();
  return taken;
}

void RecordBackup::StartSegment() {
  const SegmentHeader header = {.identity = identity_,
                                .number = ++segment_,
                                .first_group = group_,
                                .bases = written_};
  bytes_ = header.Encode();
}

void RecordBackup::EndSegment() {
  AddFile(SegmentPath("", segment_).substr(1), bytes_);
}

void RecordBackup::WriteGroup() {
  if (bytes_.size() >= segment_bytes_) {
    EndSegment();
    StartSegment();
  }
  encoder_.Start(identity_, group_, group_,
                 static_cast<uint32_t>(waiting_.size()), waiting_bytes_);
  for (const auto& [partition, waiting] : waiting_) {
    encoder_.StartSection(partition, waiting.first);
    for (const std::string& record : waiting.records) encoder_.Add(record);
    written_[partition] = next_[partition];
  }
  const absl::string_view group = encoder_.Finish();
  bytes_.append(group.data(), group.size());
  ++group_;
  waiting_.clear();
  waiting_bytes_ = 0;
}

void RecordBackup::AddFile(absl::string_view name, absl::string_view contents) {
  // What was taken goes here, as less is left then than a caller takes at a time.
  out_.erase(0, std::exchange(taken_, 0));
  absl::StrAppend(&out_, ArchiveHeader(name, contents.size(), time_s_),
                  contents, ArchivePadding(contents.size()));
}

}  // namespace timecache::server
