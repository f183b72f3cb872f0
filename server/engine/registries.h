// The registries of a process, which come and go.

#ifndef TIMECACHED_SERVER_ENGINE_REGISTRIES_H_
#define TIMECACHED_SERVER_ENGINE_REGISTRIES_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "server/base/clock.h"
#include "server/base/duration_histogram.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"

namespace timecache::server {

// A registry, with the reaper and the clock of its maps. None is owned.
struct RegistryMember {
  const Registry* registry = nullptr;
  const Reaper* reaper = nullptr;
  const Clock* clock = nullptr;
};

// For readers of all of them, such as metrics. A process that is no node with
// slots has one, from its start to its end; of a node each slot that it serves has
// one. A standby's has no maps yet that could be read.
//
// Thread-safe. A read keeps Add and Remove waiting until it ends, and blocks no
// other one.
class Registries {
 public:
  Registries() = default;
  explicit Registries(const RegistryMember& member) { Add(member); }
  Registries(const Registries&) = delete;
  Registries& operator=(const Registries&) = delete;

  // From when it is served until before it, its reaper or its clock ends. Wait
  // for reads in progress, which take the time of a scrape, and locks of maps: the
  // caller holds none.
  void Add(const RegistryMember& member) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(const Registry* registry) ABSL_LOCKS_EXCLUDED(mu_);

  // Calls `visit` with each, in the order of Add: all stay until it returns.
  // `visit` must not use this object.
  void ForEach(absl::FunctionRef<void(const RegistryMember& member)> visit)
      const ABSL_LOCKS_EXCLUDED(mu_);

  // The maps of all that are there, by their names, each with the time of its
  // clock: `visit` as ForEach's.
  using MapVisitor = absl::FunctionRef<void(
      const std::shared_ptr<TimeCacheMap>& map, int64_t now_us)>;
  void ForEachMap(MapVisitor visit) const ABSL_LOCKS_EXCLUDED(mu_);

  // See Reaper::sweeps: of all, also of those that have gone, so that it only
  // grows.
  DurationHistogram sweeps() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  std::vector<RegistryMember> members_ ABSL_GUARDED_BY(mu_);
  // Of the reapers that have gone.
  DurationHistogram gone_sweeps_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_REGISTRIES_H_
