// Joins streams by id: Storm's SingleJoinBolt.
//
//   timecache::Join join(client, "people", {.sources = {"gender", "age"}});
//   join.Add("7", "gender", "female");              // Nothing yet.
//   absl::StatusOr<std::optional<timecache::Joined>> row =
//       join.Add("7", "age", "42");                 // {"female", "42"}
//
// What does not become complete in time: see Incomplete.

#ifndef TIMECACHE_RECIPES_JOIN_H_
#define TIMECACHE_RECIPES_JOIN_H_

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
  // The streams to join: 1 to 1,024 different names of 1 to 256 B. All joins of
  // one name must have the same sources.
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

// A row that was not complete in time.
struct IncompleteJoin {
  std::string id;
  std::vector<std::optional<std::string>> tuples;  // Those that arrived.
};

// Joins tuples of several sources that have the same id; the tuples of an id
// wait in the entry NAME/ID of the client's namespace.
//
// Guarantee: each id ends in exactly one of two ways. It is *complete*: the row
// is returned to exactly one call, the one that added the last tuple. Or it has
// *failed by time-out*: one event has the tuples that arrived. A tuple that
// arrives after the end starts a new row of the id, which fails alone.
//
// Errors: ALREADY_EXISTS (reason PART_EXISTS): this source has added another
// tuple for the id, which is kept. The same one again is OK, and changes
// nothing.
//
// An unanswered Add may have happened: add it again. If it completed the row,
// then the row was lost with the response, and the repetition fails alone, by
// time-out; so an application that must not lose a row keeps its tuples until
// the row is handled, e.g. with an acker (timecache/recipes/acker.h).
//
// Cost: one round trip for a tuple, in a Pipeline by MakeOperation two
// microseconds or less for small ones; O(its size) and, for the last one, O(the
// row's). A waiting row takes its tuples, the names of all sources, and about
// 40 B: use short names.
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

  // The same for a Batch or Pipeline, and its decoded result.
  Operation MakeOperation(std::string_view id, std::string_view source,
                          std::string_view tuple) const;
  absl::StatusOr<std::optional<Joined>> Row(
      std::string_view id, const OperationResult& result) const;

  // The row whose failure this event of a watch or group reports. None for
  // other keys. An eviction or rotation fails a row, too.
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

#endif  // TIMECACHE_RECIPES_JOIN_H_
