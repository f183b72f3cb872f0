// A set whose members expire.
//
//   timecache::Table online(client, "online", {.ttl = absl::Minutes(1)});
//   online.Add("alice");
//   absl::StatusOr<std::vector<std::string>> who = online.List();

#ifndef TIMECACHE_RECIPES_TABLE_H_
#define TIMECACHE_RECIPES_TABLE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "timecache/client.h"
#include "timecache/export.h"

namespace timecache {

struct TableOptions {
  // How long a member stays without being added again: 1 ms to the namespace's
  // max_ttl. Unset: the namespace's ttl.
  std::optional<absl::Duration> ttl = {};
};

// A set in the client's namespace: each member is an entry, NAME/MEMBER, so
// that no second entry needs updating. No name of a table or other structure in
// a namespace may be another one's name followed by a '/'.
//
// Guarantee: Add, Remove and Contains of one member are atomic, from whatever
// client. List has each member that is in the table during the whole of it
// exactly once, and others at most once. Members expire one by one, each with
// an event (MemberOf).
//
// An unanswered Add or Remove may have happened. A repeated call has the same
// effect; only its result may be wrong because the first attempt was applied.
//
// Cost: one round trip and O(1) for each call. List scans: O(entries of the
// namespace), so give a table whose listing matters a namespace of its own.
//
// Thread-safe. Cheap to copy.
class TIMECACHED_EXPORT Table {
 public:
  Table(const Client& client, std::string_view name, TableOptions options = {});

  // Adds a member, or renews its time to live. Returns whether it is new.
  absl::StatusOr<bool> Add(std::string_view member) const;
  // Returns whether it was in the table.
  absl::StatusOr<bool> Remove(std::string_view member) const;
  // Never renews.
  absl::StatusOr<bool> Contains(std::string_view member) const;
  // In bytewise order.
  absl::StatusOr<std::vector<std::string>> List() const;

  // The member whose entry has this key, e.g. of an ExpiredEvent; none if the
  // key is not of this table.
  std::optional<std::string> MemberOf(std::string_view key) const;
  // What the keys of its members begin with: for WatchOptions::key_prefix.
  const std::string& key_prefix() const { return key_prefix_; }

 private:
  Client client_;
  std::string key_prefix_;
  TableOptions options_;
};

}  // namespace timecache

#endif  // TIMECACHE_RECIPES_TABLE_H_
