#ifndef TIMECACHED_SERVER_OPS_FILE_WATCH_H_
#define TIMECACHED_SERVER_OPS_FILE_WATCH_H_

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/common/steady_cond_var.h"

namespace timecache {

// Tells of changes of files: certificates, keys, rules. Looks at them at an
// interval; what counts is the content behind the path, so that a write in
// place, a rename over the path and the swap of a symbolic link on the way to
// it (as Kubernetes updates its volumes) are all the same.
//
// Files that belong together are one set, with one callback. A set is read
// again when one of its files has changed, vanished or come back, and not
// otherwise: a change that was seen half (one file of two, half of a file) is
// followed by another callback with the rest.
//
// Thread-safe. One thread in all, which starts with the first set. A look costs
// a stat per file, and reading it when that tells of a change. Keeps hashes,
// not contents.
class FileWatch {
 public:
  // Of all sets, and of a file.
  static constexpr size_t kMaxFiles = 128;
  static constexpr size_t kMaxFileBytes = 4 << 20;

  // What is in each file of the set, in the order of Add, or why it cannot be
  // read (see read_file.h).
  using Contents = std::vector<absl::StatusOr<std::string>>;
  // Not called after the destructor has begun, and by one thread at a time. It
  // must not call the FileWatch.
  using Callback = std::function<void(const Contents&)>;

  FileWatch();
  // Waits for a callback that is under way.
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Watches a set of files. `changed` is called at once, before this returns,
  // and then after each change. RESOURCE_EXHAUSTED, and no call, above
  // kMaxFiles.
  absl::Status Add(std::vector<std::string> paths, absl::Duration interval,
                   Callback changed) ABSL_LOCKS_EXCLUDED(mu_);

  // Looks at all sets now, at the files themselves and not only at what stat
  // says, and returns when the callbacks have.
  void Check() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct File;
  struct Set;

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Calls back if there is a change. `read_all`: whatever stat says.
  static void Look(bool read_all, Set* set);

  absl::Mutex mu_;
  SteadyCondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  size_t files_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Set> sets_ ABSL_GUARDED_BY(mu_);
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_OPS_FILE_WATCH_H_
