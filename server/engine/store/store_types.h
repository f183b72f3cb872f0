// A Store's descriptions of namespaces and groups, and their listing.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_STORE_TYPES_H_
#define TIMECACHED_SERVER_ENGINE_STORE_STORE_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/expiry_types.h"
#include "server/engine/store/group_types.h"
#include "server/engine/store/in_flight_limit.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/statistics.h"

namespace timecache::server {

struct NamespaceInfo {
  std::string name;
  NamespaceOptions options;
  // Null unless they were asked for.
  std::unique_ptr<const NamespaceStatistics> statistics;
  // Of one that was created or updated: see Registry::Warnings.
  std::vector<std::string> warnings = {};
};

struct GroupInfo {
  std::string namespace_name;
  std::string name;
  GroupOptions options;
  // The principal that created it.
  std::string created_by;
  // Null unless they were asked for.
  std::unique_ptr<const GroupStatistics> statistics;
};

// A group of a namespace. Views.
struct GroupName {
  absl::string_view namespace_name;
  absl::string_view name;
};

// A page of namespaces with their statistics, which lock each shard, ends behind so
// many.
inline constexpr int kMaxListedShards = 4'096;

// A part of a list that is ordered by name.
struct ListQuery {
  // Names after this one; empty: all.
  std::string after;
  size_t most = SIZE_MAX;
  bool include_statistics = false;
  // Of maps: those alone whose names are namespaces', which are partitions 0.
  bool namespaces_only = false;
  // Of a cluster's maps: those in these slots alone (SlotOfMap). Empty: in all that
  // the store has.
  std::vector<uint32_t> slots = {};
  // Which names are listed; null: all. Called before the completion, on any
  // thread.
  std::function<bool(absl::string_view name)> visible;
};

template <typename Info>
struct Page {
  std::vector<Info> items;
  // Whether more names follow.
  bool more = false;
};

// Changes the options in force, or returns an error. It owns what it needs, and
// may be called on any thread, and again if another change came between.
template <typename Options>
using OptionsChange = std::function<absl::Status(Options* options)>;

// A group that is to be created.
struct NewGroup {
  GroupOptions options;
  LogPosition start = {};
  // The principal that asks for it.
  std::string created_by;
};

// A membership in groups of one name, one in each namespace.
struct Membership {
  std::string group;
  // Events that the member may hold, in each of the groups.
  int max_in_flight = 1'000;
  // Of a group that is created by its first member.
  LogStart start = LogStart::kNow;
  // The principal that asks for it.
  std::string created_by;
  std::string peer = {};
  // A call that takes events without a stream: FAILED_PRECONDITION
  // (SINGLE_ACTIVE) of a group that is single_active. Its events stay with its
  // caller once it was answered.
  bool fetches = false;
  // Of one that fetches: it reads more than once, as it waits for events.
  bool waits = true;
  // Of a member that is one in several partitions, each of which has a group:
  // what it may hold in all of them together. Null: max_in_flight alone counts.
  std::shared_ptr<InFlightLimit> in_flight = nullptr;
  // And the number that it has in all of them, greater than that of earlier ones.
  // 0: the group chooses.
  uint64_t member_id = 0;

  // Whether the member is one in several partitions.
  bool in_several() const { return member_id != 0; }
};

// By namespace; of one of several partitions by their maps' names, see
// partitions.h.
using LogPoints = std::map<std::string, LogPoint>;

// A store's content and its limits; a limit of 0 is none.
struct StoreUsage {
  int64_t namespaces = 0;
  int64_t max_namespaces = 0;
  // Entries, and bytes of their keys and values, in all namespaces.
  int64_t entries = 0;
  int64_t max_entries = 0;
  int64_t bytes = 0;
  int64_t max_bytes = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_STORE_TYPES_H_
