// The access rules in force, read from a file.

#ifndef TIMECACHED_SERVER_EDGE_ACCESS_FILE_H_
#define TIMECACHED_SERVER_EDGE_ACCESS_FILE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/api/access.h"
#include "server/base/lock_order.h"
#include "server/edge/access_rules.h"
#include "server/edge/file_watch.h"

namespace timecache::server {

// The outcome of reading the file so far.
struct AccessFileState {
  // Of the last time.
  bool ok = false;
  // When the rules in force were read.
  absl::Time loaded_at;
  uint64_t succeeded = 0;
  uint64_t failed = 0;
};

// Follows the file: its content is the rules in force, unless it cannot be read
// or is invalid; then the last valid content is. Logs access_file_loaded and
// access_file_refused.
//
// Thread-safe. Callers are identified from a snapshot of the rules, which costs
// the copy of a pointer, and no call waits for a reload.
class AccessFile final : public Access {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(1);

  // Reads the file, and again when `watch`, which is not owned, sees it change.
  // An error if it cannot be read or is invalid now: no caller is admitted
  // without rules. The result keeps itself alive while `watch` uses it.
  static absl::StatusOr<std::shared_ptr<AccessFile>> Open(
      const std::string& path, FileWatch* watch);

  absl::StatusOr<std::shared_ptr<const Caller>> Authenticate(
      const Credentials& credentials) const override ABSL_LOCKS_EXCLUDED(mu_);
  std::shared_ptr<const Caller> FindPrincipal(
      absl::string_view name) const override ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t generation() const override {
    return generation_.load(std::memory_order_acquire);
  }
  // Called on the watch's thread, or on that of a caller of its Check.
  void SetListener(std::function<void()> on_change) override
      ABSL_LOCKS_EXCLUDED(listener_mu_);

  AccessFileState state() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  explicit AccessFile(std::string path) : path_(std::move(path)) {}

  std::shared_ptr<const AccessRules> rules() const ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Take(const absl::StatusOr<std::string>& content)
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnContent(const absl::StatusOr<std::string>& content)
      ABSL_LOCKS_EXCLUDED(mu_, listener_mu_);

  const std::string path_;
  // Set after rules_: a thread that reads it first reads rules that are no
  // older.
  std::atomic<uint64_t> generation_{0};

  mutable absl::Mutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kAccess)
      ABSL_ACQUIRED_BEFORE(lock_order::kStream);
  // No std::atomic: GCC 12's releases its lock before it has read the pointer,
  // which processors other than x86 may observe (google/sanitizers, issue
  // 1558).
  std::shared_ptr<const AccessRules> rules_ ABSL_GUARDED_BY(mu_);
  AccessFileState state_ ABSL_GUARDED_BY(mu_);
  absl::Status last_ ABSL_GUARDED_BY(mu_);

  // Held while the listener runs.
  absl::Mutex listener_mu_ ABSL_ACQUIRED_BEFORE(lock_order::kStream);
  std::function<void()> on_change_ ABSL_GUARDED_BY(listener_mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_ACCESS_FILE_H_
