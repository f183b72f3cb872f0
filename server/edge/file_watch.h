#ifndef TIMECACHED_SERVER_EDGE_FILE_WATCH_H_
#define TIMECACHED_SERVER_EDGE_FILE_WATCH_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/housekeeping.h"
#include "server/base/lock_order.h"

namespace timecache::server {

// Reports changes of files: certificates, keys, rules. Checks them at an
// interval; the content behind the path counts, so that a write in place, a
// rename over the path and the swap of a symbolic link on the way to it (as
// Kubernetes updates its volumes) are all the same.
//
// Files that belong together are one set, with one callback. A set is read
// again when one of its files has changed, vanished or come back: a change that
// was seen half (one file of two, half of a file) is followed by another
// callback with the rest. A file that cannot be read is retried at each check,
// whatever stat says, and the set's callback is called with the error at once
// and then every kFailureReminder: the content in force may have been withdrawn
// meanwhile.
//
// Thread-safe. A check costs a stat per file, and reading it if stat shows a
// change. Keeps hashes, not contents; a file descriptor, so that it can read
// where the process has no other left; and a thread, once there is a set.
class FileWatch {
 public:
  // Of all sets, and of a file.
  static constexpr size_t kMaxFiles = 128;
  static constexpr size_t kMaxFileBytes = 4 << 20;
  static constexpr absl::Duration kFailureReminder = absl::Minutes(1);

  // What is in each file of the set, in the order of Add, or why it cannot be
  // read (see read_file.h).
  using Contents = std::vector<absl::StatusOr<std::string>>;
  // Not called after the destructor has ended, and by one thread at a time. It
  // must not call the FileWatch.
  using Callback = std::function<void(const Contents&)>;

  // `now` says when a file was last changed shortly before it was read, and when
  // a reminder is due.
  explicit FileWatch(std::function<absl::Time()> now = absl::Now);
  // Waits for a callback in progress.
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Watches a set of files. `changed` is called at once, before this returns,
  // and then after each change. RESOURCE_EXHAUSTED, and no call, above
  // kMaxFiles.
  absl::Status Add(std::vector<std::string> paths, absl::Duration interval,
                   Callback changed) ABSL_LOCKS_EXCLUDED(mu_);

  // Checks all sets now, by reading the files whatever stat says, and returns
  // when the callbacks have returned.
  void Check() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct File;
  struct Set;

  // Calls back if there is a change. `read_all`: whatever stat says.
  void Look(bool read_all, Set* set) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::string> Read(const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Its own: a file system that hangs must not hold up other work.
  Housekeeping housekeeping_;
  const std::function<absl::Time()> now_;

  absl::Mutex mu_ ABSL_ACQUIRED_BEFORE(lock_order::kUpdate);
  size_t files_ ABSL_GUARDED_BY(mu_) = 0;
  // Open for nothing but to be closed where there is no other descriptor; -1
  // until there is one again.
  int spare_fd_ ABSL_GUARDED_BY(mu_) = -1;
  std::vector<std::unique_ptr<Set>> sets_ ABSL_GUARDED_BY(mu_);
  // One for each set. They take mu_, so they end without it.
  std::vector<std::unique_ptr<Housekeeping::Task>> looks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_FILE_WATCH_H_
