// The consumer groups of one map, by name.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_CONSUMER_GROUPS_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_CONSUMER_GROUPS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/base/lock_order.h"
#include "server/engine/groups/backlog_account.h"
#include "server/engine/groups/consumer_group.h"
#include "server/engine/groups/group_host.h"
#include "server/engine/store/namespace_options.h"

namespace timecache::server {

// Creates, finds, updates and deletes groups, settles their events, and runs
// their time-outs. Thread-safe.
class ConsumerGroups {
 public:
  static constexpr size_t kMaxGroups = 64;
  // Dead letters that one Advance tries to put.
  static constexpr int kMaxDeadLetters = 1'024;
  // And most bytes of their keys and values, but for a single larger one. Where they
  // take their time to be put, as many are under way at once, and more only when half
  // of them are done.
  static constexpr int64_t kMaxDeadLetterBytes = int64_t{4} << 20;

  struct DeadLetter {
    // As the map's options say.
    absl::string_view to_map;
    // The group's creator; see ConsumerGroup::created_by.
    absl::string_view created_by;
    std::string key;
    // The event as its format writes it by itself.
    std::string value;
  };
  // Puts a dead letter; the engine's Registry does it, as it knows the other
  // maps. Calls `done` once, before it returns or later, on any thread that
  // holds no lock of a map: if the letter's map is durable, once the letter is
  // stored. Only then the event is settled. So a crash in between loses no
  // letter: it is put again, under the same key. Until `done` is gone, the map
  // of the groups must be there.
  //
  // INVALID_ARGUMENT and OUT_OF_RANGE mean that no retry can succeed: the
  // letter is dropped. After any other error it is retried; PERMISSION_DENIED
  // means that the group's creator may not put it.
  using DeadLetterDone = absl::AnyInvocable<void(const absl::Status&)>;
  using DeadLetterSink =
      std::function<void(const DeadLetter& letter, DeadLetterDone done)>;

  // A group that was deleted because it had no member for its unused_ttl.
  struct ExpiredGroup {
    std::string name;
    // Events lost with it that were not reported to a member.
    uint64_t unsettled = 0;
    // The number of the next event of the log.
    uint64_t next_event = 0;
  };

  // `map` owns this and outlives it.
  explicit ConsumerGroups(GroupHost* map) : map_(map) {}
  ConsumerGroups(const ConsumerGroups&) = delete;
  ConsumerGroups& operator=(const ConsumerGroups&) = delete;

  // ALREADY_EXISTS (GROUP_EXISTS), RESOURCE_EXHAUSTED (MAX_GROUPS),
  // INVALID_ARGUMENT about `group` (the name) or an option, or NOT_FOUND
  // (NAMESPACE_NOT_FOUND) if the map is being deleted. `created_by` is the
  // principal that asks for it.
  absl::StatusOr<std::shared_ptr<ConsumerGroup>> Create(
      absl::string_view name, const GroupOptions& options,
      const LogPosition& start, int64_t now_us,
      absl::string_view created_by = {}) ABSL_LOCKS_EXCLUDED(change_mu_, mu_);
  // Moves the group to a position; with `drop` what is before it and not
  // settled is given up. Errors as Find's, and as ExpiryLog::Resume's.
  absl::StatusOr<SeekResult> Seek(absl::string_view name,
                                  const LogPosition& position, bool drop,
                                  int64_t now_us)
      ABSL_LOCKS_EXCLUDED(change_mu_, mu_);
  // For a member that is about to join it. If it does not exist, creates it,
  // with default options and the map's unused_group_ttl. A group with the name
  // of an expired one starts with the events lost since then.
  absl::StatusOr<std::shared_ptr<ConsumerGroup>> FindOrCreate(
      absl::string_view name, ExpiryLog::Start start, int64_t now_us,
      absl::string_view created_by = {}) ABSL_LOCKS_EXCLUDED(change_mu_, mu_);
  // NOT_FOUND (GROUP_NOT_FOUND), or INVALID_ARGUMENT for a name that no group
  // can have.
  absl::StatusOr<std::shared_ptr<ConsumerGroup>> Find(
      absl::string_view name) const ABSL_LOCKS_EXCLUDED(mu_);
  // Ordered by name.
  std::vector<std::shared_ptr<ConsumerGroup>> List() const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Changes the options by `change`, which gets those in force.
  absl::StatusOr<std::shared_ptr<ConsumerGroup>> Update(
      absl::string_view name,
      const std::function<absl::Status(GroupOptions*)>& change)
      ABSL_LOCKS_EXCLUDED(change_mu_, mu_);
  absl::Status Delete(absl::string_view name)
      ABSL_LOCKS_EXCLUDED(change_mu_, mu_);

  // Settles events of one group, each by itself, in order: `results` has as
  // many. GROUP_NOT_FOUND if none can be tried. Callable from any thread.
  absl::Status Settle(absl::string_view group,
                      absl::Span<const Settlement> settlements, int64_t now_us,
                      absl::Span<SettleResult> results)
      ABSL_LOCKS_EXCLUDED(mu_);

  // --- For the map.

  // When Advance next has something to do; kNeverUs if never.
  int64_t NextDueUs() const ABSL_LOCKS_EXCLUDED(mu_);
  // Makes timed-out events ready again, drops events beyond a group's
  // max_backlog_bytes or the map's budget, puts dead letters, and deletes
  // groups that are unused for too long. Returns whether there is more to do
  // now.
  bool Advance(int64_t now_us) ABSL_LOCKS_EXCLUDED(change_mu_, sink_mu_, mu_);
  // Ends all members' streams: the map is being deleted. The sink is not called
  // any more once this returns.
  void Close() ABSL_LOCKS_EXCLUDED(change_mu_, sink_mu_, mu_);

  // Sets the target of dead letters, the limit of all groups' memory, and how
  // long groups created from now on may be unused.
  void SetOptions(const NamespaceOptions& options) ABSL_LOCKS_EXCLUDED(mu_);
  // See LogFork: the identity of the copy that the map's log is, or 0.
  void SetFork(uint64_t fork) ABSL_LOCKS_EXCLUDED(mu_);
  const BacklogAccount& account() const { return account_; }
  // How many groups have expired, and the last ones of them, at most `most`,
  // the oldest first.
  uint64_t expired() const ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<ExpiredGroup> LastExpired(size_t most) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Set before use. Without it they cannot be put.
  void SetDeadLetterSink(DeadLetterSink sink) ABSL_LOCKS_EXCLUDED(sink_mu_);

  // --- Changes, of a map that is journaled.

  // Not owned, must outlive the map. Existing groups report their changes from
  // now on.
  void SetSink(GroupChangeSink* sink) ABSL_LOCKS_EXCLUDED(mu_);
  // The position of a walk of AppendAgain.
  struct WalkPosition {
    bool begun = false;
    std::string group;
    uint64_t event = 0;
  };
  // One step of a walk over all groups: reports each group to the sink as it
  // is, with the events that it keeps. Up to `max_events`, or about `max_bytes`
  // of them; sets `*position` for the next call and returns whether there is more.
  //
  // Changes from before a whole walk are then not needed to rebuild the groups,
  // if the events that the log had at its beginning were reported before
  // (TimeCacheMap::AppendRetained): a new group may start with them.
  bool AppendAgain(int max_events, int64_t max_bytes, WalkPosition* position)
      ABSL_LOCKS_EXCLUDED(mu_);

  // For GroupsReplay, before use: makes a group that was there before, and
  // remembers names that expired.
  void Restore(const GroupState& state, int64_t now_us)
      ABSL_LOCKS_EXCLUDED(change_mu_, mu_);
  void RestoreExpired(std::deque<ExpiredGroup> expired)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Groups = std::vector<std::shared_ptr<ConsumerGroup>>;

  absl::StatusOr<std::shared_ptr<ConsumerGroup>> Make(
      absl::string_view name, const GroupOptions& options,
      const LogPosition& start, int64_t now_us, absl::string_view created_by)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mu_) ABSL_LOCKS_EXCLUDED(mu_);
  std::shared_ptr<ConsumerGroup> NewGroup(absl::string_view name,
                                          const GroupOptions& options,
                                          absl::string_view created_by,
                                          uint64_t id) ABSL_LOCKS_EXCLUDED(mu_);
  void Enter(const std::shared_ptr<ConsumerGroup>& group)
      ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<ExpiredGroup> TakeExpired(absl::string_view name)
      ABSL_LOCKS_EXCLUDED(mu_);
  void AppendExpired(const ExpiredGroup& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TrimToBudget(const Groups& groups);
  void DeleteUnused(const Groups& groups, int64_t now_us)
      ABSL_LOCKS_EXCLUDED(change_mu_, mu_);
  void PutBack(ConsumerGroup* group, const Settlement& settlement,
               int64_t now_us, SettleResult* result);
  DeadLetterBudget RoomForDeadLetters();
  bool MayPutDeadLetters() const;
  void EndDeadLetter(ConsumerGroup* group, uint64_t event_id,
                     const absl::Status& put, int64_t bytes, int64_t now_us);
  void PutDeadLetter(const std::shared_ptr<ConsumerGroup>& group,
                     const Delivery& delivery, const std::string& to_map,
                     int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sink_mu_);

  GroupHost* const map_;
  BacklogAccount account_;
  // Of the namespace.
  std::atomic<int64_t> max_ttl_us_{0};

  // One change at a time.
  absl::Mutex change_mu_ ABSL_ACQUIRED_AFTER(lock_order::kUpdate)
      ABSL_ACQUIRED_BEFORE(lock_order::kDeadLetters);
  bool closed_ ABSL_GUARDED_BY(change_mu_) = false;

  // Held while dead letters are put.
  absl::Mutex sink_mu_ ABSL_ACQUIRED_AFTER(lock_order::kDeadLetters)
      ABSL_ACQUIRED_BEFORE(lock_order::kDeadLetterRights);
  DeadLetterSink sink_ ABSL_GUARDED_BY(sink_mu_);

  // Dead letters on their way, and whether others wait for them.
  std::atomic<int> letters_{0};
  std::atomic<int64_t> letter_bytes_{0};
  std::atomic<bool> letters_wait_{false};

  // Held for moments.
  mutable absl::Mutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kSweep)
      ABSL_ACQUIRED_BEFORE(lock_order::kGroup);
  absl::btree_map<std::string, std::shared_ptr<ConsumerGroup>> groups_
      ABSL_GUARDED_BY(mu_);
  std::string dead_letter_namespace_ ABSL_GUARDED_BY(mu_);
  int64_t unused_group_ttl_us_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t fork_ ABSL_GUARDED_BY(mu_) = 0;
  // The last kMaxGroups of them that have not been created again.
  std::deque<ExpiredGroup> expired_groups_ ABSL_GUARDED_BY(mu_);
  uint64_t expired_ ABSL_GUARDED_BY(mu_) = 0;
  GroupChangeSink* changes_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_CONSUMER_GROUPS_H_
