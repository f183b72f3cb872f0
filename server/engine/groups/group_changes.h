// Reports the changes of one consumer group to a sink.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_CHANGES_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_CHANGES_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/engine/groups/group_change.h"
#include "server/engine/shard/change.h"

namespace timecache::server {

// Consecutive events with the same outcome are one change, which is reported at
// the next different change, or at Flush.
//
// Not thread-safe: it works under the group's lock, whose holder calls Flush
// before releasing it. Without a sink a call costs a branch.
class GroupChanges {
 public:
  using Kind = GroupChange::Kind;

  // `name` is the group's; it must outlive this.
  explicit GroupChanges(absl::string_view name) { open_.name = name; }
  GroupChanges(const GroupChanges&) = delete;
  GroupChanges& operator=(const GroupChanges&) = delete;

  // Not owned; null: nothing is reported.
  void SetSink(GroupChangeSink* sink) { sink_ = sink; }

  // The outcome of one event, or of those from `first` to before `end`: see
  // GroupChange.
  void Add(Kind kind, uint64_t event, int attempt, int64_t ready_us = 0) {
    AddRange(kind, event, event + 1, attempt, ready_us);
  }
  void AddRange(Kind kind, uint64_t first, uint64_t end, int attempt = 0,
                int64_t ready_us = 0) {
    if (sink_ != nullptr && first < end) {
      Extend(kind, first, end, attempt, ready_us);
    }
  }

  // Any other change, of the group's name.
  void Append(GroupChange change) {
    if (sink_ == nullptr) return;
    Flush();
    change.name = open_.name;
    sink_->AddGroup(change);
    ++reported_;
  }

  void Flush() {
    if (open_.first == open_.end) return;
    sink_->AddGroup(open_);
    ++reported_;
    open_.first = open_.end;
  }

  // Of all changes so far, including the one that the next Flush reports.
  uint64_t count() const {
    return reported_ + (open_.first == open_.end ? 0 : 1);
  }

 private:
  void Extend(Kind kind, uint64_t first, uint64_t end, int attempt,
              int64_t ready_us) {
    if (open_.first == open_.end || open_.end != first || open_.kind != kind ||
        open_.attempt != attempt || open_.ready_us != ready_us) {
      Flush();
      open_.kind = kind;
      open_.first = first;
      open_.attempt = attempt;
      open_.ready_us = ready_us;
    }
    open_.end = end;
  }

  GroupChangeSink* sink_ = nullptr;
  uint64_t reported_ = 0;
  // Not reported yet, if it has events.
  GroupChange open_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_CHANGES_H_
