// Finds a part that a Gather has collected by the hash of its name.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_PART_INDEX_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_PART_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/engine/shard/record.h"
#include "server/engine/store/key_hash.h"

namespace timecache::server {

// A hash table that lies behind the value in its record. Clients do not see it.
// All numbers are uint32, little-endian, at any address:
//   how many parts there are
//   slots, a power of two of them: where a part begins in the value; 0: empty
// A part is in the first slot from its hash on that was empty. At most half of
// the slots are taken.

// Whether the record must have an index, and has none: it has room for so many
// bytes of parts that a walk would take longer.
inline constexpr size_t kIndexedPartsBytes = 1024;
inline bool NeedsPartIndex(const Record& record) {
  return record.parts && record.index.empty() &&
         (record.value.size() >= kIndexedPartsBytes ||
          record.capacity >= kIndexedPartsBytes);
}

// An index of this value's parts with room for one more. It takes at most 16 B
// for each of these, or an eighth of the value. O(bytes of the expected names +
// parts).
std::string MakePartIndex(absl::string_view value, const KeyHash& hash);

bool HasRoomForPart(absl::string_view index);
// Adds a part that begins at `offset` to an index that has room for it, and
// lies at `to`. O(1) expected.
void AddToPartIndex(absl::string_view name, size_t offset, const KeyHash& hash,
                    absl::string_view index, char* to);

struct FoundPart {
  bool found = false;
  absl::string_view value;
  // How many the record has.
  int64_t parts = 0;
  // How many were looked at.
  uint64_t parts_read = 0;
};
// The parts begin at `begin` in the value. O(1) expected with an index, or else
// O(parts).
FoundPart FindPart(const Record& record, size_t begin, absl::string_view name,
                   const KeyHash& hash);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_PART_INDEX_H_
