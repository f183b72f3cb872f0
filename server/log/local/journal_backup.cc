#include "server/log/local/journal_backup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/failpoint.h"
#include "server/log/local/backup_archive.h"

namespace timecache::server {

std::vector<std::pair<std::string, std::string>> DescribeBackup(
    const JournalIdentity& identity, const TrimPositions& trim,
    const LogEnd& end) {
  return {{kTrimFile, EncodeTrimFile(identity, trim)},
          {kEndFile, EncodeEndFile(end)},
          {kCopyFile, ""},
          {kFormatFile, EncodeFormatFile(identity)}};
}

JournalBackup::JournalBackup(FileSystem* files, std::string directory,
                             const Contents& contents, Release release)
    : files_(files),
      directory_(std::move(directory)),
      release_(std::move(release)),
      time_s_(absl::ToUnixSeconds(absl::Now())) {
  for (const SegmentState& segment : contents.segments) {
    const std::string path = SegmentPath("", segment.number);
    parts_.push_back({path.substr(1), segment.bytes, "", segment.number});
  }
  for (auto& [name, text] :
       DescribeBackup(contents.identity, contents.trim, contents.end)) {
    const uint64_t bytes = text.size();
    parts_.push_back({std::move(name), bytes, std::move(text), 0});
  }
  for (const Part& part : parts_) {
    total_bytes_ +=
        kArchiveBlockBytes + part.bytes + ArchivePadding(part.bytes).size();
  }
  total_bytes_ += ArchiveEnd().size();
}

JournalBackup::~JournalBackup() { release_(kNone); }

absl::StatusOr<std::string> JournalBackup::Read(size_t bytes) {
  std::string to;
  // An archive's own blocks are not divided; they are small.
  while (to.size() < bytes && !ended_) {
    if (part_ == parts_.size()) {
      to.append(ArchiveEnd());
      ended_ = true;
      break;
    }
    const Part& part = parts_[part_];
    absl::Status status;
    if (!begun_) {
      status = Begin(part, &to);
      begun_ = true;
    } else if (offset_ < part.bytes) {
      status = AddFrom(part, bytes - to.size(), &to);
    } else {
      to.append(ArchivePadding(part.bytes));
      ++part_;
      begun_ = false;
      offset_ = 0;
      file_ = nullptr;
      if (part.segment != 0) release_(part.segment + 1);
    }
    if (!status.ok()) return status;
  }
  return to;
}

absl::Status JournalBackup::Begin(const Part& part, std::string* to) {
  to->append(ArchiveHeader(part.name, part.bytes, time_s_));
  if (part.segment == 0) return absl::OkStatus();
  Failpoint("backup.segment");
  auto file = files_->OpenToRead(SegmentPath(directory_, part.segment));
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  return absl::OkStatus();
}

absl::Status JournalBackup::AddFrom(const Part& part, size_t bytes,
                                    std::string* to) {
  const auto size =
      static_cast<size_t>(std::min<uint64_t>(bytes, part.bytes - offset_));
  const size_t before = to->size();
  if (part.segment == 0) {
    to->append(part.contents, offset_, size);
  } else {
    to->resize(before + size);
    const auto read = file_->Read(offset_, size, to->data() + before);
    if (!read.ok()) return read.status();
    if (*read < size) {
      return absl::DataLossError(absl::StrCat(
          SegmentPath(directory_, part.segment), ": ends at byte ",
          offset_ + *read, ", and was written to byte ", part.bytes));
    }
  }
  offset_ += size;
  return absl::OkStatus();
}

}  // namespace timecache::server
