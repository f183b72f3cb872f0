// What all namespaces of a process hold together, and how much they may.

#ifndef TIMECACHED_SERVER_ENGINE_SERVER_ACCOUNT_H_
#define TIMECACHED_SERVER_ENGINE_SERVER_ACCOUNT_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/shard/usage.h"

namespace timecache::server {

// Limits of all maps together; 0 is no limit.
struct RegistryLimits {
  int max_namespaces = 0;
  int64_t max_entries = 0;
  int64_t max_bytes = 0;
};

// Counts namespaces, entries and bytes for the registries that share it: those of
// a process, whose limits are the process's. What a registry has leaves the
// account with it.
//
// Of a registry counts what it serves: a map from its Registry::Add or Create on.
// What a standby of a cluster rebuilds counts only once it is served: it refuses no
// put of others before, and is not refused itself. Then all are above the limit at
// worst, and refuse what grows. Its memory counts all the time, in MemoryBudget.
//
// Thread-safe.
class ServerAccount {
 public:
  explicit ServerAccount(const RegistryLimits& limits);
  ServerAccount(const ServerAccount&) = delete;
  ServerAccount& operator=(const ServerAccount&) = delete;

  // Limits below the current content refuse further puts. FAILED_PRECONDITION,
  // and nothing changes, for the first limit of entries or bytes of an account
  // that was made without one: its maps are not counted.
  absl::Status SetLimits(const RegistryLimits& limits) ABSL_LOCKS_EXCLUDED(mu_);
  RegistryLimits limits() const ABSL_LOCKS_EXCLUDED(mu_);

  // Of entries and bytes; null if they are not counted.
  Usage* usage() { return counts_ ? &usage_ : nullptr; }

  // RESOURCE_EXHAUSTED (MAX_NAMESPACES) unless there may be another namespace.
  absl::Status CheckNamespaces() const ABSL_LOCKS_EXCLUDED(mu_);
  // The same, and counts it.
  absl::Status AddNamespace() ABSL_LOCKS_EXCLUDED(mu_);
  // Beyond the limit, too.
  void AddNamespaceAnyway() ABSL_LOCKS_EXCLUDED(mu_);
  void SubtractNamespaces(int count) ABSL_LOCKS_EXCLUDED(mu_);
  int namespaces() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status CheckNamespacesLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const bool counts_;
  Usage usage_;

  mutable absl::Mutex mu_;
  RegistryLimits limits_ ABSL_GUARDED_BY(mu_);
  int namespaces_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SERVER_ACCOUNT_H_
