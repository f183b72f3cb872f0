// The engine's interface: all that the service needs of namespaces, their
// entries, their consumer groups and their events.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_STORE_H_
#define TIMECACHED_SERVER_ENGINE_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/store/deaths_ahead.h"
#include "server/engine/store/hot_keys.h"
#include "server/engine/store/operation.h"
#include "server/engine/store/readers.h"
#include "server/engine/store/scan.h"
#include "server/engine/store/store_types.h"

namespace timecache::server {

// Namespaces by name, here or on other machines.
//
// Calls complete asynchronously: `done` is called exactly once, before the call
// returns or later, on the caller's thread or another. Arguments passed by
// reference, view or span must stay valid until then. So a store may wait for
// its journal or for another machine, and its caller never blocks. GetUsage and
// SetDeadLetterRight are synchronous, as they concern this process alone; so
// are the reads of an EventReader, which read memory.
//
// Calls about a namespace that does not exist: NOT_FOUND (NAMESPACE_NOT_FOUND),
// or INVALID_ARGUMENT for a name that no namespace can have. The same of
// groups: GROUP_NOT_FOUND. Ranges of options are checked here.
//
// Thread-safe.
class Store {
 public:
  using Done = absl::AnyInvocable<void(absl::Status)>;
  template <typename T>
  using DoneWith = absl::AnyInvocable<void(absl::StatusOr<T>)>;

  virtual ~Store() = default;

  // --- Entries. A namespace's max_operations_per_second counts here: an
  // operation each, a size and a walk as one.

  // Applies the operations, in order for each key, and fills the result of
  // each: `results` has as many. `done` gets the error that kept all of them
  // from being tried, or OK.
  void Execute(absl::string_view name, absl::Span<const Operation> operations,
               absl::Span<Result> results, Done done) {
    Execute(name, operations, results, /*progress=*/nullptr, std::move(done));
  }
  // One turn of that, unless `progress` is null: if `*progress` is not done by
  // the time of `done`, call again with the same arguments. It may end there:
  // the operations whose results then wait, or that it has not reached, change
  // nothing. `progress->on_applied` says earlier than `done` that no turn is
  // left.
  virtual void Execute(absl::string_view name,
                       absl::Span<const Operation> operations,
                       absl::Span<Result> results, BatchProgress* progress,
                       Done done) = 0;

  // Applies all of them, each on a key of its own, or none, at one instant: then
  // the result of each that fails says why, and the others are ABORTED
  // (NOT_APPLIED). At most kMaxAtomicOperations. Beyond the rate limit all fail.
  // Where it is unknown whether they are stored, all have that error.
  virtual void ExecuteAtomic(absl::string_view name,
                             absl::Span<const Operation> operations,
                             absl::Span<Result> results, Done done) = 0;

  // Live entries at one instant.
  virtual void GetSize(absl::string_view name,
                       DoneWith<NamespaceSize> done) = 0;

  // One step of a walk over the live entries whose keys begin with `prefix`.
  // Every entry that is live from the first step to the last is visited exactly
  // once, others at most once. A step visits about `max_entries` or
  // `max_bytes`, or none where it had to search long. `*position` starts empty,
  // or as the ScannedEntry::next of another walk over the same namespace and
  // prefix, which this one then continues; `*more` says whether to call again.
  // INVALID_ARGUMENT (position) for one of another namespace, also of one that
  // had this name.
  virtual void Scan(absl::string_view name, absl::string_view prefix,
                    int max_entries, int64_t max_bytes, ScanPosition* position,
                    bool* more, EntryVisitor visit, Done done) = 0;

  // --- Namespaces. Statistics cost O(shards) each: only where they
  // are asked for.

  // ALREADY_EXISTS (NAMESPACE_EXISTS) or RESOURCE_EXHAUSTED (MAX_NAMESPACES,
  // MAX_MEMORY).
  virtual void CreateNamespace(absl::string_view name, NamespaceOptions options,
                               DoneWith<NamespaceInfo> done) = 0;
  virtual void GetNamespace(absl::string_view name, bool include_statistics,
                            DoneWith<NamespaceInfo> done) = 0;
  virtual void ListNamespaces(ListQuery query,
                              DoneWith<Page<NamespaceInfo>> done) = 0;
  // Atomic among updates. An error leaves the options as they were.
  virtual void UpdateNamespace(absl::string_view name,
                               OptionsChange<NamespaceOptions> change,
                               DoneWith<NamespaceInfo> done) = 0;
  virtual void DeleteNamespace(absl::string_view name, Done done) = 0;
  // Kills the live bucket that would die next: how many entries died.
  virtual void RotateNamespace(absl::string_view name,
                               DoneWith<int64_t> done) = 0;
  // What dies when. O(live buckets) in each shard.
  virtual void GetDeaths(absl::string_view name, DeathsQuery query,
                         DoneWith<DeathsAhead> done) = 0;
  // The keys that are used most, by a sample: 1 to HotKeys::kMaxKeys.
  virtual void GetHotKeys(absl::string_view name, size_t max_keys,
                          DoneWith<HotKeys> done) = 0;

  // --- Consumer groups.

  // ALREADY_EXISTS (GROUP_EXISTS) or RESOURCE_EXHAUSTED (MAX_GROUPS,
  // MAX_MEMORY).
  virtual void CreateGroup(GroupName name, NewGroup group,
                           DoneWith<GroupInfo> done) = 0;
  virtual void GetGroup(GroupName name, bool include_statistics,
                        DoneWith<GroupInfo> done) = 0;
  virtual void ListGroups(absl::string_view namespace_name, ListQuery query,
                          DoneWith<Page<GroupInfo>> done) = 0;
  // As UpdateNamespace.
  virtual void UpdateGroup(GroupName name, OptionsChange<GroupOptions> change,
                           DoneWith<GroupInfo> done) = 0;
  virtual void DeleteGroup(GroupName name, Done done) = 0;
  // The streams that are members, the oldest first.
  virtual void ListMembers(GroupName name,
                           DoneWith<std::vector<MemberInfo>> done) = 0;

  // Moves the group: errors as OpenLogs' of a point. With `drop` what is before
  // the position and not settled is given up.
  virtual void SeekGroup(GroupName name, LogPosition position, bool drop,
                         DoneWith<SeekResult> done) = 0;
  // O(log of the unsettled events), and O(1) for each that is looked at: 100,000
  // at most.
  virtual void ListUnsettled(GroupName name, UnsettledQuery query,
                             DoneWith<UnsettledPage> done) = 0;

  // Settles events of the group, each by itself, in order, and fills the result
  // of each: `results` has as many. `done` gets the error that kept all of them
  // from being tried, or OK.
  virtual void Settle(GroupName name, absl::Span<const Settlement> settlements,
                      absl::Span<SettleResult> results, Done done) = 0;

  // --- Watches: a reader for each of the namespaces, in their order, or for
  // none of them. `wake` is every reader's; see EventReader. Opening is
  // asynchronous, since to join a group may be to create it.

  using Readers = std::vector<std::unique_ptr<EventReader>>;
  using Wake = std::function<void()>;

  // At the namespace's point in `points`, or where `start` says. Of a point, an
  // error has the metadata `namespace`: FAILED_PRECONDITION (LOG_CHANGED) for
  // one of another log, OUT_OF_RANGE (RESUME_POINT_AHEAD) for one that the log
  // has not reached.
  virtual void OpenLogs(absl::Span<const std::string> names, LogStart start,
                        const LogPoints& points, Wake wake,
                        DoneWith<Readers> done) = 0;
  // The same of changes. FAILED_PRECONDITION (NO_CHANGES) for a namespace that
  // keeps none.
  virtual void OpenChanges(absl::Span<const std::string> names, LogStart start,
                           const LogPoints& points, Wake wake,
                           DoneWith<Readers> done) = 0;
  // Creates groups that do not exist: RESOURCE_EXHAUSTED (MAX_GROUPS), with the
  // metadata `namespace`, if that fails. No group is created unless all
  // namespaces exist.
  virtual void JoinGroups(absl::Span<const std::string> names,
                          Membership membership, Wake wake,
                          DoneWith<Readers> done) = 0;
  // RESOURCE_EXHAUSTED (MAX_EXPIRING_WATCHERS).
  virtual void OpenExpiring(absl::Span<const std::string> names,
                            ExpiringOptions options, Wake wake,
                            DoneWith<Readers> done) = 0;

  // --- Of this process.

  virtual StoreUsage GetUsage() const = 0;

  // Whether a principal may put entries into a namespace now: OK or
  // PERMISSION_DENIED. Called for each dead letter, with the creator of its
  // group, on a thread of the store. Until it is set every letter may be put.
  // Waits for a call in progress.
  using DeadLetterRight = std::function<absl::Status(
      absl::string_view principal, absl::string_view name)>;
  virtual void SetDeadLetterRight(DeadLetterRight right) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_STORE_H_
