// A cluster as one of its nodes describes it: plain structs, those of
// GetCluster in proto/timecache/v1/server.proto.

#ifndef TIMECACHE_CLUSTER_TYPES_H_
#define TIMECACHE_CLUSTER_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace timecache {

// What a node does; see the enum in server.proto.
enum class NodeRole {
  kUnknown,
  kStandby,     // It replays the journal.
  kTakingOver,  // It owns, and finishes the replay.
  kOwner,       // It serves.
  kGone,        // Silent for failure_timeout.
};

// A node by its last heartbeat.
struct ClusterNode {
  std::string name = {};
  std::string address = {};  // "host:port" for clients.
  std::string version = {};  // "0.1.0".
  NodeRole role = NodeRole::kUnknown;
  absl::Duration since_heartbeat = {};
  uint64_t lag_messages = 0;  // Of the journal, not replayed then.
  bool caught_up = false;     // It may take over.
  // Of the oldest of these messages, at most; none: not known.
  std::optional<absl::Duration> lag_age = {};
};

// A partition of the journal with the maps in it, where each has an owner of its own.
struct ClusterSlot {
  std::string owner = {};    // Empty: none.
  std::string standby = {};  // Takes over if the owner is gone; empty: none.
  bool standby_ready = false;
  std::string moves_to = {};  // Empty: it stays.
};

// A topic's setting that can lose acknowledged writes, or stop the cluster.
struct TopicSetting {
  std::string topic = {};
  std::string setting = {};  // "min.insync.replicas".
  std::string value = {};
  std::string wanted = {};  // In words: "2 or more".
};

struct ClusterInfo {
  std::string name = {};
  std::string node = {};                // The one that answered.
  std::vector<ClusterNode> nodes = {};  // By name.
  std::string owner = {};  // Empty: no node owns, or each slot has its own.
  uint64_t claim = 0;      // The identity of its takeover.
  std::optional<absl::Time> owner_since = {};
  // Of the node that answered, if it owns; negative: it has ended.
  std::optional<absl::Duration> lease_left = {};
  // How far its clock is ahead of the brokers'; negative: behind.
  absl::Duration clock_skew = {};
  // The standby that a handover without a name goes to; empty: none can.
  std::string successor = {};
  std::vector<std::string> brokers = {};
  std::vector<TopicSetting> wrong_settings = {};
  // What keeps the node that answered from taking over; empty: nothing.
  std::string waits_for = {};
  // By number, where nodes share the ownership; else empty.
  std::vector<ClusterSlot> slots = {};
};

}  // namespace timecache

#endif  // TIMECACHE_CLUSTER_TYPES_H_
