// The size of a namespace, and a walk over its entries.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_SCAN_H_
#define TIMECACHED_SERVER_ENGINE_STORE_SCAN_H_

#include <cstdint>
#include <functional>

#include "absl/strings/string_view.h"

namespace timecache::server {

// Live entries, and bytes of their keys and values.
struct NamespaceSize {
  int64_t entries = 0;
  int64_t bytes = 0;
};

// The position of a walk, which is in order of the hashes of keys. Opaque to
// callers: a walk starts with a new one, and each step takes the one that the
// previous step set, or that of an entry behind which another walk is to go on.
// Neither growth of the index nor compaction changes where an entry stands.
struct ScanPosition {
  int shard = 0;
  uint32_t tag = 0;
  // Of the entries of this tag, those whose hash has at least this below it.
  uint64_t rest = 0;
  // The map's log_id. 0: of no map yet.
  uint64_t map = 0;
  // Whether this walk has made a step, and not only the one that it continues.
  bool begun = false;
  // Of the namespace; what is above is of this one's map.
  int partition = 0;
  friend bool operator==(const ScanPosition&, const ScanPosition&) = default;
};

// What an operation has done to an entry; see ChangeKind in watch.proto.
enum class ChangeKind : uint8_t { kNone, kPut, kRenewed, kRemoved };

// An entry where it lies. The views live as long as what it lies in.
struct EntryView {
  absl::string_view key;
  absl::string_view value;
  uint64_t version = 0;
  int64_t put_us = 0;
  int64_t deadline_us = 0;
  // Whether the value is GatheredParts: see gathered_parts.h.
  bool parts = false;
  // When the key began to be there.
  int64_t create_us = 0;
  // What a renewal gives it; 0: the namespace's TTL.
  int64_t own_ttl_us = 0;
  // Its traceparent, in either form. Empty: none.
  absl::string_view trace = {};
  // Of a change, which happened at `put_us`; of one that was removed, the
  // version was its last.
  ChangeKind change = ChangeKind::kNone;
};

// An entry that a walk has met.
struct ScannedEntry : EntryView {
  // Behind it. Two entries of one position (one hash, all 64 bits of it) come
  // one after the other: a walk can go on only behind both.
  ScanPosition next;
};

// Receives an entry of a walk. The views are valid until it returns; it may run
// under a lock, so it must only copy.
using EntryVisitor = std::function<void(const ScannedEntry& entry)>;

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_SCAN_H_
