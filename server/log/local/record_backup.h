// A backup of a journal that is not on this machine's disk, from its records.

#ifndef TIMECACHED_SERVER_LOG_LOCAL_RECORD_BACKUP_H_
#define TIMECACHED_SERVER_LOG_LOCAL_RECORD_BACKUP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/log/local/segment.h"

namespace timecache::server {

// The bytes of an archive (backup_archive.h) as JournalBackup has them: of a journal
// with another id, in which every record keeps its partition and its position.
//
// Not thread-safe. Holds a segment and a group, and what Take has not returned.
class RecordBackup {
 public:
  // A segment is written once it is whole, as its size comes first in an archive:
  // so it is smaller than one on a disk.
  static constexpr size_t kSegmentBytes = size_t{8} << 20;
  static constexpr size_t kGroupBytes = size_t{1} << 20;

  // The positions of the first record of each partition, or of the next one.
  explicit RecordBackup(std::vector<uint64_t> first,
                        size_t segment_bytes = kSegmentBytes);
  RecordBackup(const RecordBackup&) = delete;
  RecordBackup& operator=(const RecordBackup&) = delete;

  // DATA_LOSS: it is not the partition's next one.
  absl::Status Add(uint32_t partition, uint64_t position,
                   absl::string_view record);
  // All records were added. Once.
  void Finish();

  // The next position of a partition.
  uint64_t next(uint32_t partition) const { return next_[partition]; }
  // What can be taken now, and the next bytes of it, at most so many.
  size_t ready() const { return out_.size() - taken_; }
  std::string Take(size_t bytes);

 private:
  struct Waiting {
    uint64_t first = 0;
    std::vector<std::string> records;
  };

  void StartSegment();
  void EndSegment();
  void WriteGroup();
  void AddFile(absl::string_view name, absl::string_view contents);

  const size_t segment_bytes_;
  const std::vector<uint64_t> first_;
  const JournalIdentity identity_;
  const int64_t time_s_;
  // Of all records, and of those that are in a group.
  std::vector<uint64_t> next_;
  std::vector<uint64_t> written_;
  // The next group, by partition, and of its records.
  std::map<uint32_t, Waiting> waiting_;
  size_t waiting_bytes_ = 0;
  GroupEncoder encoder_;
  uint64_t group_ = 1;
  // The one that is being written.
  uint64_t segment_ = 0;
  std::string bytes_;
  // Of the archive.
  std::string out_;
  size_t taken_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_RECORD_BACKUP_H_
