// Which nodes live and which one owns: a function of the control log's records.

#ifndef TIMECACHED_SERVER_CLUSTER_CONTROL_STATE_H_
#define TIMECACHED_SERVER_CLUSTER_CONTROL_STATE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/cluster/control_log.h"

namespace timecache::server {

// Every node that has applied the same records has the same state. No clock but
// that of the brokers is in it, and of theirs only what records span:
//
// - Counted time advances from each record to the next one by the difference of
//   their append times, at most half a lease, which is two heartbeats. So while
//   nobody can append, no node falls silent.
// - A node is gone when counted time is its failure timeout past its last record. So it
//   is when it appends, but does not read: if for so long, less half a lease, all that
//   it has read has been a lease older than what another node has.
// - A takeover counts if it names the last one before it, and the owner is gone, or
//   has released: to this node, to any, or to one that is gone. The first one of a
//   log counts, if its node has read the log in time.
// - All repeat the last takeover that they know. Who begins to read a trimmed log
//   learns of it by that, and of the owner by what the owner says, or that it says
//   nothing for a failure timeout.
//
// Not thread-safe. A record costs O(nodes); nothing is kept of it but the last one of
// each node, and when it was appended.
class ControlState {
 public:
  // The nodes that are remembered: beyond it, the one that has been silent longest is
  // forgotten, as is one that has been silent for kForgetAfter of counted time.
  static constexpr size_t kMaxNodes = 64;
  static constexpr absl::Duration kForgetAfter = absl::Minutes(10);
  // Of so many entries it is known when they were appended: the first ones of each
  // kMarkInterval by the brokers' clocks, which is the same for all who read them.
  static constexpr size_t kMaxMarks = 8'192;
  static constexpr int64_t kMarkIntervalMs = 20;

  // As its last record says.
  struct Node {
    std::string name;
    uint64_t incarnation = 0;
    std::string address;
    std::string version;
    absl::Duration lease;
    absl::Duration failure_timeout;
    // None: it has not said.
    std::optional<uint64_t> lag_messages;
    std::optional<absl::Duration> lag_age;
    // Whether it would take over at once.
    bool ready = false;
    // Counted time since then.
    absl::Duration silence;
    // Between what it has read, as its last record says, and the newest that a node
    // has.
    absl::Duration unread;
    bool gone = false;
  };
  // The node of the last takeover, also when it is gone.
  struct Owner {
    Node node;
    // The offset of the takeover plus 1.
    int64_t takeover = 0;
    // By the brokers' clocks.
    absl::Time since;
    bool released = false;
    // Of the release; empty: any.
    std::string successor;
  };
  struct View {
    std::optional<Owner> owner;
    // By name, the owner, too.
    std::vector<Node> nodes;
  };

  // `one_of_a_name`: a record ends what is known of other incarnations of its node, but
  // for who owns: a process has terms of its own of each slot.
  explicit ControlState(bool one_of_a_name = false)
      : one_of_a_name_(one_of_a_name) {}

  // While it is closed no takeover counts. All nodes must agree when that is.
  void SetClosed(bool closed) { closed_ = closed; }

  // In the order of the log. `append_time_ms`: see ControlEntry.
  void Apply(int64_t offset, int64_t append_time_ms,
             const ControlRecord& record);

  // The identity of the last takeover that counts, its offset plus 1; 0: none.
  int64_t takeover() const { return takeover_; }
  // None: there was no takeover, or its node is not known. Costs a copy, as `view`.
  std::optional<Owner> owner() const;
  bool IsOwner(const std::string& name, uint64_t incarnation) const;
  // The last record of the owner, without a copy; null: as `owner`.
  const ControlRecord* owner_record() const {
    return owner_ ? &owner_->last.record : nullptr;
  }
  // The same of an owner that is not gone and has not released; else null.
  const ControlRecord* live_owner() const;
  // Whether the owner has released to this node.
  bool IsSuccessor(const std::string& name) const {
    return owner_ && owner_->released && owner_->successor == name;
  }
  // Of the last owner's journal; 0: not known.
  uint64_t journal_id() const { return journal_id_; }
  // Whether a takeover by that node would count if it were the next record.
  bool MayTakeOver(const ControlRecord& record) const;

  View view() const;
  // Calls `visit` with each node that is not gone, by name.
  template <typename Visit>
  void VisitLive(Visit visit) const;

 private:
  using NodeKey = std::pair<std::string, uint64_t>;
  struct Seen {
    ControlRecord record;
    int64_t heard_us = 0;
    // When the last entry was appended that its node had read.
    int64_t read_us = 0;
    // When that was last less than a lease older than what another node had read.
    int64_t in_time_us = 0;
  };
  struct Mark {
    int64_t offset = 0;
    int64_t counted_us = 0;
  };
  struct Ownership {
    NodeKey key;
    Seen last;
    int64_t since_ms = 0;
    bool released = false;
    std::string successor;
  };

  void Count(int64_t append_time_ms, const ControlRecord& record);
  void AddMark(int64_t offset, int64_t append_time_ms);
  // When the last entry was appended that the sender had read.
  int64_t ReadUs(const ControlRecord& record) const;
  bool ReadsInTime(const ControlRecord& record, int64_t read_us) const;
  void NoteReading(Seen* seen) const;
  Seen Remember(const ControlRecord& record);
  void LearnTakeover(int64_t offset, const Seen& seen);
  bool IsGone(const Seen& seen) const;
  bool IsLive(const std::string& name) const;
  Node Describe(const Seen& seen) const;

  const bool one_of_a_name_;
  bool closed_ = false;
  std::optional<int64_t> first_offset_;
  int64_t last_append_ms_ = 0;
  // Counted time since the first record.
  int64_t counted_us_ = 0;
  // By offset, not empty once there was a record.
  std::deque<Mark> marks_;
  // The newest of all Seen::read_us that a record has said.
  int64_t read_us_ = 0;
  std::map<NodeKey, Seen> nodes_;
  int64_t takeover_ = 0;
  uint64_t journal_id_ = 0;
  // Of that takeover. None: its node has not been heard, since `unknown_since_us_`
  // of counted time.
  std::optional<Ownership> owner_;
  int64_t unknown_since_us_ = 0;
};

template <typename Visit>
void ControlState::VisitLive(Visit visit) const {
  for (const auto& [key, seen] : nodes_) {
    if (!IsGone(seen)) visit(seen.record);
  }
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_CONTROL_STATE_H_
