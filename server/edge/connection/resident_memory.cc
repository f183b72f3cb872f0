#include "server/edge/connection/resident_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace timecache::server {

ResidentMemory::ResidentMemory()
    : fd_(open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}

ResidentMemory::~ResidentMemory() {
  if (fd_ >= 0) close(fd_);
}

int64_t ResidentMemory::Bytes() const {
  // All pages, those that are resident, and more: see proc(5).
  std::array<char, 128> text;
  const ssize_t size = pread(fd_, text.data(), text.size(), 0);
  if (size <= 0) return 0;
  const std::pair<absl::string_view, absl::string_view> all =
      absl::StrSplit(absl::string_view(text.data(), static_cast<size_t>(size)),
                     absl::MaxSplits(' ', 1));
  int64_t pages = 0;
  const absl::string_view resident = all.second.substr(0, all.second.find(' '));
  if (!absl::SimpleAtoi(resident, &pages)) return 0;
  static const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  return pages * page_bytes;
}

}  // namespace timecache::server
