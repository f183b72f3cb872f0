#include "server/base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace timecache {
namespace {

absl::Status SystemError(const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be read"));
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max,
                                     FileKind kind) {
  // Where pipes are refused, one is opened without a writer.
  const int wait = kind == FileKind::kAny ? 0 : O_NONBLOCK;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | wait);
  if (fd < 0) return SystemError(path);
  const auto closer = absl::MakeCleanup([fd] { close(fd); });
  struct stat info;
  if (fstat(fd, &info) != 0) return SystemError(path);
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a directory: name the file in it"));
  }
  if (kind == FileKind::kRegular && !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is not a regular file"));
  }
  std::string bytes;
  // One byte more than is allowed, to detect a longer file.
  size_t size = 0;
  for (;;) {
    constexpr size_t kStepBytes = 64 << 10;
    bytes.resize(std::min(size + kStepBytes, bytes_max + 1));
    const ssize_t got = read(fd, bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(path);
    size += static_cast<size_t>(got);
    if (size > bytes_max) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path, ": is longer than ", bytes_max, " bytes"));
    }
    if (got == 0) break;
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace timecache
