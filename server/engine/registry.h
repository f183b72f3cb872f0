// The maps of a server, by name: of each namespace one, or its partitions.

#ifndef TIMECACHED_SERVER_ENGINE_REGISTRY_H_
#define TIMECACHED_SERVER_ENGINE_REGISTRY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/base/clock.h"
#include "server/base/lock_order.h"
#include "server/engine/map/change_log.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/map_bin.h"
#include "server/engine/reaper.h"
#include "server/engine/server_account.h"
#include "server/engine/store/partition_directory.h"
#include "server/engine/store/store.h"

namespace timecache::server {

// INVALID_ARGUMENT about the first invalid one, unless a map may have this name
// and these options.
absl::Status ValidateNamespace(absl::string_view name,
                               const NamespaceOptions& options);

// Creates, finds, updates and deletes maps, each by its own name, also if it is
// one of several partitions (partitions.h; partitioned_maps.h has what concerns all
// of a namespace's). A map that was found may be used after its deletion: its finder
// then owns it alone.
//
// Thread-safe. Find costs a reader's lock and a hash lookup.
class Registry final : public PartitionDirectory {
 public:
  // `clock` and `reaper` are not owned and must outlive the registry. `account`
  // has the limits, and may be that of several registries.
  Registry(const Clock* clock, Reaper* reaper,
           std::shared_ptr<ServerAccount> account);
  // With an account of its own.
  Registry(const Clock* clock, Reaper* reaper, const RegistryLimits& limits)
      : Registry(clock, reaper, std::make_shared<ServerAccount>(limits)) {}
  ~Registry() override;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The logs of durable maps' changes. Without them no map is durable. Not
  // owned, must outlive the maps. Set before use.
  void SetChangeLogs(ChangeLogs* logs) { change_logs_ = logs; }
  JournalKind journal_kind() const {
    return change_logs_ == nullptr ? JournalKind::kNone : change_logs_->kind();
  }

  // INVALID_ARGUMENT, also if dead letters would go in a cycle, ALREADY_EXISTS,
  // also for a later partition of a namespace that has the first one, or
  // RESOURCE_EXHAUSTED (MAX_NAMESPACES, MAX_MEMORY).
  absl::StatusOr<std::shared_ptr<TimeCacheMap>> Create(
      absl::string_view name, const NamespaceOptions& options)
      ABSL_LOCKS_EXCLUDED(mu_);
  // For a namespace that the configuration has, or a partition that a restored
  // one lacks: no limit refuses it, as a server that restored as much as it may
  // hold would never start again.
  absl::StatusOr<std::shared_ptr<TimeCacheMap>> CreateConfigured(
      absl::string_view name, const NamespaceOptions& options)
      ABSL_LOCKS_EXCLUDED(mu_);

  // A map of this registry that Find does not return, for a caller that
  // rebuilds one and then adds it. `origin` is used, except for its versions.
  std::shared_ptr<TimeCacheMap> Make(absl::string_view name,
                                     const NamespaceOptions& options,
                                     TimeCacheMap::Origin origin);
  // ALREADY_EXISTS. Also beyond max_namespaces: restored maps are not refused.
  absl::Status Add(const std::shared_ptr<TimeCacheMap>& map)
      ABSL_LOCKS_EXCLUDED(mu_);
  // All versions that are assigned from now on are at least this one.
  void RaiseVersions(uint64_t version) { versions_.RaiseTo(version); }

  // NOT_FOUND, or INVALID_ARGUMENT for a name that no namespace can have.
  absl::StatusOr<std::shared_ptr<TimeCacheMap>> Find(
      absl::string_view name) const ABSL_LOCKS_EXCLUDED(mu_);

  // See PartitionDirectory. A namespace is there when its first partition is.
  Names PartitionsOf(absl::string_view namespace_name) const override
      ABSL_LOCKS_EXCLUDED(mu_);

  // What is allowed in the options of this namespace and probably not meant, a
  // sentence each; see DeadLetterWarnings. O(namespaces).
  std::vector<std::string> Warnings(absl::string_view name) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Ordered by name: all, or `most` of those behind the name `after`. O(what is
  // returned).
  std::vector<std::shared_ptr<TimeCacheMap>> List() const
      ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<std::shared_ptr<TimeCacheMap>> ListAfter(absl::string_view after,
                                                       size_t most) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Changes the options of one map by `change`, which gets those in force.
  // Atomic among Updates. INVALID_ARGUMENT leaves them as they were.
  absl::StatusOr<std::shared_ptr<TimeCacheMap>> Update(
      absl::string_view name,
      const std::function<absl::Status(NamespaceOptions*)>& change)
      ABSL_LOCKS_EXCLUDED(mu_);

  // `*deleted` gets the map that had the name, if it is not null.
  absl::Status Delete(absl::string_view name,
                      std::shared_ptr<TimeCacheMap>* deleted = nullptr)
      ABSL_LOCKS_EXCLUDED(mu_);
  // This map: NOT_FOUND if its name is another's.
  absl::Status DeleteMap(const std::shared_ptr<TimeCacheMap>& map)
      ABSL_LOCKS_EXCLUDED(mu_);

  ServerAccount* account() { return account_.get(); }
  RegistryLimits limits() const { return account_->limits(); }

  // Whether a principal may put entries into a namespace now: OK or
  // PERMISSION_DENIED. Called for each dead letter, with the creator of its
  // group, on the reaper's thread. Until it is set every letter may be put.
  // SetDeadLetterRight waits for a call in progress.
  using DeadLetterRight = std::function<absl::Status(
      absl::string_view principal, absl::string_view name)>;
  void SetDeadLetterRight(DeadLetterRight right)
      ABSL_LOCKS_EXCLUDED(dead_letter_mu_);

  // Of a registry that has some of a cluster's maps. Both are set before use.

  // Dead letters are put into their namespace in `store`, on any node, with the
  // same right, entry and outcomes; where the call itself fails, whatever its error,
  // the letter is tried again. Not owned: must outlive the registry, and answer all
  // calls before it ends. Letters whose answers come after the registry stay in their
  // groups, for the next owner.
  //
  // `when` is called with each answer: what it is given, and may call at once or later,
  // on any thread, takes the letter's event out of its group. What it drops stays there
  // as those do. Null: at once.
  using WhenToSettle = std::function<void(absl::AnyInvocable<void()> settle)>;
  void SetDeadLetterStore(Store* store, WhenToSettle when = nullptr) {
    dead_letter_store_ = store;
    when_to_settle_ = std::move(when);
  }
  // What needs other namespaces is its caller's (parts/dead_letter_walk.h): whether
  // dead letters go in a cycle, and Warnings, which are none.
  void LeaveRoutesToCaller() { checks_routes_ = false; }

 private:
  enum class Limits : uint8_t { kObeyed, kIgnored };
  absl::StatusOr<std::shared_ptr<TimeCacheMap>> Create(
      absl::string_view name, const NamespaceOptions& options, Limits limits)
      ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<NamespaceOptions> OptionsOf(absl::string_view name) const
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckRoute(absl::string_view name,
                          const NamespaceOptions& options) const
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckFree(absl::string_view name, Limits limits) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);
  absl::Status Insert(const std::shared_ptr<TimeCacheMap>& map, Limits limits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckDeadLetterRight(const ConsumerGroups::DeadLetter& letter)
      ABSL_LOCKS_EXCLUDED(dead_letter_mu_);
  void SendDeadLetter(std::shared_ptr<TimeCacheMap> from,
                      const ConsumerGroups::DeadLetter& letter,
                      ConsumerGroups::DeadLetterDone done);
  // `from` is the map of the letter's group.
  void PutDeadLetter(std::shared_ptr<TimeCacheMap> from,
                     const ConsumerGroups::DeadLetter& letter,
                     ConsumerGroups::DeadLetterDone done)
      ABSL_LOCKS_EXCLUDED(dead_letter_mu_, mu_);

  const Clock* const clock_;
  Reaper* const reaper_;
  ChangeLogs* change_logs_ = nullptr;
  // The maps keep it, too.
  const std::shared_ptr<ServerAccount> account_;
  VersionSource versions_;
  // The maps keep it, too.
  const std::shared_ptr<MapBin> bin_ = std::make_shared<MapBin>();

  // Held while the right is checked.
  absl::Mutex dead_letter_mu_ ABSL_ACQUIRED_AFTER(lock_order::kDeadLetterRights)
      ABSL_ACQUIRED_BEFORE(lock_order::kAccess);
  DeadLetterRight dead_letter_right_ ABSL_GUARDED_BY(dead_letter_mu_);
  Store* dead_letter_store_ = nullptr;
  WhenToSettle when_to_settle_;
  bool checks_routes_ = true;
  // What the answers to letters that were sent need of the registry.
  struct LetterGate {
    // Held by answers.
    absl::Mutex mu;
    bool closed ABSL_GUARDED_BY(mu) = false;
  };
  const std::shared_ptr<LetterGate> letter_gate_ =
      std::make_shared<LetterGate>();

  mutable absl::Mutex mu_;
  absl::flat_hash_map<std::string, std::shared_ptr<TimeCacheMap>> maps_
      ABSL_GUARDED_BY(mu_);
  // The same in order. The names are the maps' own.
  absl::btree_map<absl::string_view, std::shared_ptr<TimeCacheMap>> by_name_
      ABSL_GUARDED_BY(mu_);
  // First partitions.
  int namespaces_ ABSL_GUARDED_BY(mu_) = 0;
  // The partitions of the namespaces that have several, and how many there are.
  absl::flat_hash_map<std::string, Names> partitioned_ ABSL_GUARDED_BY(mu_);
  std::atomic<size_t> partitioned_count_{0};
  // One Create or Update at a time.
  absl::Mutex update_mu_ ABSL_ACQUIRED_BEFORE(mu_, lock_order::kDeadLetters);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_REGISTRY_H_
