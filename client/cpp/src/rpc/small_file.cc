#include "client/cpp/src/rpc/small_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace timecache {

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  const auto error = [&path](int number) {
    return absl::ErrnoToStatus(number, absl::StrCat(path, ": cannot be read"));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return error(errno);
  std::string bytes;
  char step[16 << 10];
  while (bytes.size() <= kMaxSmallFileBytes) {
    errno = 0;
    const size_t got = std::fread(step, 1, sizeof(step), file.get());
    if (std::ferror(file.get())) return error(errno);
    if (got == 0) return bytes;
    bytes.append(step, got);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": is longer than ", kMaxSmallFileBytes, " bytes"));
}

}  // namespace timecache
