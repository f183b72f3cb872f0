// A list that is read often and changed by many clients.
//
//   timecache::Array hosts(client, "hosts");
//   absl::StatusOr<uint64_t> id = hosts.Add("10.0.0.7");
//   absl::StatusOr<timecache::Array::Contents> all = hosts.Read();
//   hosts.Remove(*id);

#ifndef TIMECACHE_RECIPES_ARRAY_H_
#define TIMECACHE_RECIPES_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "timecache/client.h"
#include "timecache/export.h"

namespace timecache {

struct ArrayOptions {
  // The array's own time to live; unset: the namespace's.
  std::optional<absl::Duration> ttl = {};
  // Whether Add and Update renew it; otherwise it counts from the creation.
  bool renew = true;
};

// A list under one key of the client's namespace. Add and Remove append their
// change to the entry, and readers fold the changes: neither reads nor rewrites
// the list, and no lock is needed. Update changes it as a whole, by version. It
// expires as a whole; Fold reads the value of the event.
//
// Guarantee: no concurrent change is lost. Each item has an id; an id is in the
// list at most once, where it was first added, so that Add and Remove may be
// repeated: the client does so by itself when a connection is lost.
//
// An unanswered Add, Remove or Update may have been applied. Repeat Add(item)
// and Remove with the same id, Add only until the item is removed; a removed id
// must not be added again. After an unanswered Update, Read shows whether it
// was applied.
//
// Cost: Add and Remove send the item, or 9 B, and cost O(that). Read and
// Compact transfer everything that was appended since the last compaction, 13 B
// and the value for an item that was added. A change that finds the entry at
// the namespace's max_value_bytes compacts it, once; then it fails with
// FAILED_PRECONDITION (reason VALUE_TOO_LARGE).
//
// Thread-safe. Cheap to copy.
class TIMECACHED_EXPORT Array {
 public:
  struct Item {
    uint64_t id = 0;
    std::string value;
  };

  struct Contents {
    std::vector<Item> items;  // In the order in which they were added.
    uint64_t version = 0;     // The entry's; 0: there is none.
    // The entry's size, and its size after a compaction.
    size_t stored_bytes = 0;
    size_t compact_bytes = 0;
  };

  Array(const Client& client, std::string key, ArrayOptions options = {});

  // Not 0.
  static uint64_t NewId();

  // Adds it at the end, and returns its id, which is new.
  absl::StatusOr<uint64_t> Add(std::string_view value) const;
  // The same with an id of the caller's.
  absl::Status Add(const Item& item) const;
  // An id that is not in the list is OK.
  absl::Status Remove(uint64_t id) const;
  absl::StatusOr<Contents> Read() const;

  // Reads the list, lets `change` change it, and stores it if the entry has not
  // changed meanwhile; otherwise starts again, up to 16 times: then ABORTED.
  // `change` may be called several times, and gives new items an id by NewId.
  absl::Status Update(
      absl::FunctionRef<void(std::vector<Item>& items)> change) const;

  // Rewrites the entry without removed items; keeps its deadline. Worth the
  // transfer when stored_bytes is a multiple of compact_bytes. ABORTED as in
  // Update.
  absl::Status Compact() const;

  // Decodes an entry's value. DATA_LOSS if it is not an array.
  static absl::StatusOr<Contents> Fold(std::string_view value);

 private:
  absl::Status Append(const std::string& record, bool only_if_present) const;
  absl::Status Rewrite(absl::FunctionRef<void(std::vector<Item>& items)> change,
                       bool renew) const;

  Client client_;
  std::string key_;
  ArrayOptions options_;
};

}  // namespace timecache

#endif  // TIMECACHE_RECIPES_ARRAY_H_
