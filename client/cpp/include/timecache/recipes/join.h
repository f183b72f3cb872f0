// Joins streams by id: Storm's SingleJoinBolt.
//
//   timecache::Join join(client, "people", {.sources = {"gender", "age"}});
//   join.Add("7", "gender", "female");              // Nothing yet.
//   absl::StatusOr<std::optional<timecache::Joined>> row =
//       join.Add("7", "age", "42");                 // {"female", "42"}
//
// What does not become complete in time: see Incomplete.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "timecache/client.h"
#include "timecache/export.h"
#include "timecache/operation.h"
#include "timecache/watch_types.h"

namespace timecache {

struct JoinOptions {
  // What is joined: 1 to 1,024 different names of 1 to 256 B. All joins of one
  // name have the same.
  std::vector<std::string> sources = {};
  // How long an id waits for its last tuple, from its first one on. Unset: the
  // namespace's ttl.
  std::optional<absl::Duration> ttl = {};
};

// A row: a tuple of each source, in the order of JoinOptions::sources.
struct Joined {
  std::string id;
  std::vector<std::string> tuples;
};

// A row whose time was up.
struct IncompleteJoin {
  std::string id;
  std::vector<std::optional<std::string>> tuples;  // Those that came.
};

// Joins tuples of several sources that have the same id; what has come of an
// id waits in the entry NAME/ID of the client's namespace.
//
// Guarantee: each id ends in exactly one of two ways. It is *complete*: the row
// is returned to exactly one call, that which brought the last tuple. Or it has
// *failed by time-out*: one event has the tuples that came. A tuple that comes
// after the end begins its id anew, and fails alone.
//
// Errors: ALREADY_EXISTS (reason PART_EXISTS): this source has brought another
// tuple for the id, which stays. The same one again is OK, and changes nothing.
//
// An unanswered Add may have happened: add it again. If it was the one that
// completed the row, then the row went with the answer, and the repetition
// fails alone, by time-out; so who must not lose a row keeps its tuples until
// it is handled, e.g. by an acker (timecache/recipes/acker.h).
//
// Cost: one round trip for a tuple, in a Pipeline by MakeOperation two
// microseconds or less for small ones; O(its size) and, for the last one, O(the
// row's). A waiting row takes its tuples, the names of all sources, and about
// 40 B: short names are worth it.
//
// Thread-safe. Cheap to copy.
class TIMECACHED_EXPORT Join {
 public:
  Join(const Client& client, std::string_view name, JoinOptions options);

  // An id of several fields: two are equal only if all of their fields are.
  static std::string Id(std::initializer_list<std::string_view> fields);

  // The row, if this tuple completes it.
  absl::StatusOr<std::optional<Joined>> Add(std::string_view id,
                                            std::string_view source,
                                            std::string_view tuple) const;

  // The same for a Batch or Pipeline, and what its result comes to.
  Operation MakeOperation(std::string_view id, std::string_view source,
                          std::string_view tuple) const;
  absl::StatusOr<std::optional<Joined>> Row(
      std::string_view id, const OperationResult& result) const;

  // The row that has failed by this event of a watch or group. None for other
  // keys. An eviction or rotation fails a row, too.
  std::optional<IncompleteJoin> Incomplete(const ExpiredEvent& event) const;

  const std::string& key_prefix() const { return key_prefix_; }

 private:
  std::optional<Joined> RowOf(std::string_view id,
                              const std::optional<GatheredParts>& parts) const;

  Client client_;
  std::string key_prefix_;
  std::vector<std::string> sources_;
  GatherOptions options_;
};

}  // namespace timecache
