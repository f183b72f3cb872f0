// Rebuilds the consumer groups of a map from their recorded changes and from
// the log of the rebuilt map.

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

// One group. Each event of the log belongs to it until a change records its
// outcome. Used by one thread.
class ReplayedGroup final : public ExpiryLog::Follower {
 public:
  // `exists` is the first change of it.
  ReplayedGroup(const GroupChange& exists, absl::string_view key_prefix,
                absl::string_view map);

  void OnAppend(uint64_t first_event,
                const std::shared_ptr<const EventBatch>& batch) override;
  absl::string_view key_prefix() const override {
    return state_.options.key_prefix;
  }
  void OnAppendSelected(uint64_t first_event,
                        const SelectedEvents& selected) override;
  // The log has none of its events before this one, except those that its
  // changes contain.
  void BeginAt(uint64_t event) {
    state_.next_event = std::max(state_.next_event, event);
  }
  // DATA_LOSS: no group writes such a change. `log` is the one that it follows.
  absl::Status Apply(const GroupChange& change, const ExpiryLog& log);

  // The resulting state; no further calls. Events without a change that the log
  // does not have are lost.
  GroupState Take();

 private:
  void SetOptions(GroupOptions options);
  uint64_t events() const {
    return state_.next_event - state_.first_event + state_.counts.moved;
  }
  void Seek(const GroupChange& change, const ExpiryLog& log);
  void Settle(const GroupChange& change);
  void Fail(const GroupChange& change);
  void Drop(const GroupChange& change);
  void CountDelivery(const GroupChange& change);
  void Remove(const GroupChange& change);

  GroupState state_;
  KeptEvents kept_;
};

// All groups of one map, and the names of those that expired.
//
// Changes before some point may be missing, if ConsumerGroups::AppendAgain
// wrote the state after it: changes of an unknown group are from before it was
// written again.
class GroupsReplay {
 public:
  // Neither is owned. `groups` has none, and is the map's that has the log.
  GroupsReplay(ConsumerGroups* groups, ExpiryLog* log, absl::string_view map);
  ~GroupsReplay();
  GroupsReplay(const GroupsReplay&) = delete;
  GroupsReplay& operator=(const GroupsReplay&) = delete;

  // DATA_LOSS: no map writes such a change.
  absl::Status Apply(const GroupChange& change);
  // The end of the changes: hands over the groups.
  void Finish(int64_t now_us);

 private:
  using Kind = GroupChange::Kind;

  void Begin(const GroupChange& exists);
  void End(const std::string& name);
  void Remember(const GroupChange& expired);

  ConsumerGroups* const groups_;
  ExpiryLog* const log_;
  const std::string map_;
  std::map<std::string, std::unique_ptr<ReplayedGroup>> by_name_;
  std::deque<ConsumerGroups::ExpiredGroup> expired_;
  // Of groups whose kExists is to come.
  std::map<std::string, std::string> key_prefixes_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_GROUPS_REPLAY_H_
