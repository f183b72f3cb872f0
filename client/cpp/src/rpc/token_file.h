// A bearer token, and the file that it is in.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_TOKEN_FILE_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_TOKEN_FILE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace timecache {

// Follows a file that another process replaces, such as one that renews tokens.
// Thread-safe. Token costs a lock and a stat, and reads the file when that
// differs, and every kInterval.
class TokenFile {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(1);
  static constexpr size_t kMaxTokenBytes = 4096;
  // With white space around it.
  static constexpr size_t kMaxFileBytes = 1 << 20;

  // Reads it for the first time. INVALID_ARGUMENT, or what the system says,
  // when there is no token in it: one line of graphic ASCII characters.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(
      const std::string& path);

  // The token. If the file can no longer be read, the last one stays: the
  // server reports when it is no longer valid.
  std::string Token() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Which file it is, and when it was written: device, inode, size, seconds and
  // nanoseconds. Zeros where there is none.
  using FileState = std::array<int64_t, 5>;

  static FileState StateOf(const std::string& path);

  TokenFile(std::string path, std::string token, const FileState& state);

  const std::string path_;
  absl::Mutex mu_;
  std::string token_ ABSL_GUARDED_BY(mu_);
  absl::Time read_ ABSL_GUARDED_BY(mu_);
  // What stat said before that.
  FileState state_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_TOKEN_FILE_H_
