// Makes the consumer groups of a map again, from what was told of them and from
// the log of a map that is made again.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_GROUPS_REPLAY_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_GROUPS_REPLAY_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/expiry/expiry_log.h"
#include "server/engine/groups/consumer_groups.h"
#include "server/engine/groups/group_change.h"
#include "server/engine/groups/group_state.h"
#include "server/engine/groups/kept_events.h"

namespace timecache::server {

// One group. Each event of the log is its own until a change says what became
// of it. Used by one thread.
class ReplayedGroup final : public ExpiryLog::Follower {
 public:
  // `exists` is the first change of it; the others as KeptEvents.
  ReplayedGroup(const GroupChange& exists, absl::string_view map,
                const EventFormat* format);

  void OnAppend(uint64_t first_event,
                const std::shared_ptr<const EventBatch>& batch) override;
  // The log has none of its events before this one, but those that it told.
  void BeginAt(uint64_t event) {
    state_.next_event = std::max(state_.next_event, event);
  }
  // DATA_LOSS: no group tells this.
  absl::Status Apply(const GroupChange& change);

  // What it has come to; nothing comes after this. Events of which nothing was
  // told and which the log does not have are lost.
  GroupState Take();

 private:
  void Settle(const GroupChange& change);
  void Fail(const GroupChange& change);
  void Drop(const GroupChange& change);
  void CountAttempts(const GroupChange& change);
  void Remove(const GroupChange& change);

  GroupState state_;
  KeptEvents kept_;
};

// All groups of one map, and the names of those that expired.
//
// Changes may be missing before some point, if ConsumerGroups::AppendAgain has
// told behind it what was there: changes of a group that is not known are from
// before it was told again.
class GroupsReplay {
 public:
  // Neither is owned. `groups` has none, and is the map's that has the log.
  GroupsReplay(ConsumerGroups* groups, ExpiryLog* log, absl::string_view map,
               const EventFormat* format);
  ~GroupsReplay();
  GroupsReplay(const GroupsReplay&) = delete;
  GroupsReplay& operator=(const GroupsReplay&) = delete;

  // DATA_LOSS: no map tells this.
  absl::Status Apply(const GroupChange& change);
  // Nothing comes any more: hands the groups over.
  void Finish(int64_t now_us);

 private:
  using Kind = GroupChange::Kind;

  void Begin(const GroupChange& exists);
  void End(const std::string& name);
  void Remember(const GroupChange& expired);

  ConsumerGroups* const groups_;
  ExpiryLog* const log_;
  const std::string map_;
  const EventFormat* const format_;
  std::map<std::string, std::unique_ptr<ReplayedGroup>> by_name_;
  std::deque<ConsumerGroups::ExpiredGroup> expired_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_GROUPS_REPLAY_H_
