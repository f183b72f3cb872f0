// The groups at the end of the log that are not synced.

#ifndef TIMECACHED_SERVER_LOG_LOCAL_UNSYNCED_GROUPS_H_
#define TIMECACHED_SERVER_LOG_LOCAL_UNSYNCED_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/log/local/file_system.h"

namespace timecache::server {

// Keeps their bytes, to be written again if a sync fails: the system may have
// dropped data that it could not write. Nothing is copied: groups are moved in,
// and the memory of those that are dropped is used again.
//
// Not thread-safe. What is kept for later is at most kSpareBytesMax.
class UnsyncedGroups {
 public:
  static constexpr uint64_t kSpareBytesMax = uint64_t{16} << 20;

  bool empty() const { return groups_.empty(); }
  size_t size() const { return groups_.size(); }
  uint64_t bytes() const { return bytes_; }

  void Add(std::string group) {
    bytes_ += group.size();
    groups_.push_back(std::move(group));
  }
  // Drops the oldest `count`.
  void DropFirst(size_t count) {
    for (; count > 0; --count) {
      bytes_ -= groups_.front().size();
      Spare(std::move(groups_.front()));
      groups_.pop_front();
    }
  }
  void Clear() { DropFirst(size()); }

  // An empty string, with the memory of a group that was dropped, if there is
  // one.
  std::string TakeSpare() {
    if (spares_.empty()) return {};
    std::string spare = std::move(spares_.back());
    spares_.pop_back();
    spare_bytes_ -= spare.capacity();
    return spare;
  }

  // Writes all of them once more, up to the end of the log at `end`.
  absl::Status WriteTo(File* file, uint64_t end) const {
    uint64_t at = end - bytes_;
    for (const std::string& group : groups_) {
      absl::Status status = file->Write(at, group);
      if (!status.ok()) return status;
      at += group.size();
    }
    return absl::OkStatus();
  }

 private:
  void Spare(std::string group) {
    if (spare_bytes_ + group.capacity() > kSpareBytesMax) return;
    group.clear();
    spare_bytes_ += group.capacity();
    spares_.push_back(std::move(group));
  }

  std::deque<std::string> groups_;
  uint64_t bytes_ = 0;
  std::vector<std::string> spares_;
  uint64_t spare_bytes_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_UNSYNCED_GROUPS_H_
