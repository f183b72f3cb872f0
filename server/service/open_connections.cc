#include "server/service/open_connections.h"

#include <sys/stat.h>

#include "absl/time/clock.h"

namespace timecache {
namespace {

// 0 if it is not open, or no socket.
ino_t InodeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

}  // namespace

bool OpenConnections::Add(int fd) {
  const ino_t inode = InodeOf(fd);
  absl::MutexLock lock(&mu_);
  const auto place = static_cast<size_t>(fd);
  if (place >= inodes_.size()) inodes_.resize(place + 1);
  // The number was another connection's, which is gone.
  if (inodes_[place] != 0) --count_;
  inodes_[place] = 0;
  if (count_ >= max_) Recount();
  if (count_ >= max_) {
    ++refused_;
    return false;
  }
  inodes_[place] = inode;
  ++count_;
  return true;
}

size_t OpenConnections::Count() const {
  absl::MutexLock lock(&mu_);
  Recount();
  return count_;
}

uint64_t OpenConnections::refused() const {
  absl::MutexLock lock(&mu_);
  return refused_;
}

void OpenConnections::Recount() const {
  const absl::Time now = absl::Now();
  if (now - recounted_ < kRecountInterval && now >= recounted_) return;
  recounted_ = now;
  for (size_t fd = 0; fd < inodes_.size(); ++fd) {
    if (inodes_[fd] == 0 || InodeOf(static_cast<int>(fd)) == inodes_[fd])
      continue;
    inodes_[fd] = 0;
    --count_;
  }
}

}  // namespace timecache
