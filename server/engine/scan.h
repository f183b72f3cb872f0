// The size of a namespace, and a walk over its entries.

#ifndef TIMECACHED_SERVER_ENGINE_SCAN_H_
#define TIMECACHED_SERVER_ENGINE_SCAN_H_

#include <cstdint>
#include <functional>

#include "absl/strings/string_view.h"

namespace timecache::server {

// Live entries, and bytes of their keys and values.
struct NamespaceSize {
  int64_t entries = 0;
  int64_t bytes = 0;
};

// The position of a walk. Opaque to callers: a walk starts with a new one, and
// each step takes the one that the previous step set.
struct ScanPosition {
  int shard = 0;
  uint32_t tag = 0;
  bool begins() const { return shard == 0 && tag == 0; }
  friend bool operator==(const ScanPosition&, const ScanPosition&) = default;
};

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
};

// Receives an entry of a walk. The views are valid until it returns; it may run
// under a lock, so it must only copy.
using EntryVisitor = std::function<void(const EntryView& entry)>;

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SCAN_H_
