// A bearer token, and the file that it is in.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace timecache {

// Follows a file that others replace, as what renews tokens does. Thread-safe.
// Token costs a lock and a look at the clock, and reads the file every
// kInterval.
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

  // The token. What cannot be read any more leaves the last one: the server
  // says when it is no longer good.
  std::string Token() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  TokenFile(std::string path, std::string token);

  const std::string path_;
  absl::Mutex mu_;
  std::string token_ ABSL_GUARDED_BY(mu_);
  absl::Time read_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache
