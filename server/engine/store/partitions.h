// What the partitions of a namespace are called. Which one a key is in:
// server/base/key_partition.h.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_PARTITIONS_H_
#define TIMECACHED_SERVER_ENGINE_STORE_PARTITIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/key_partition.h"

namespace timecache::server {

// A namespace with num_partitions P > 1 is P maps. Each has a log, event numbers
// and groups of its own, and falls on a partition of the journal by its name. The
// map of partition 0 has the namespace's name, that of partition i > 0 is called
// NAME#i: a name that no client can give.

// 0 <= partition < kMaxPartitions.
std::string PartitionName(absl::string_view namespace_name, int partition);

// The same for another node, which may know of a namespace of this name that was made
// anew: NAME#i/count, also of partition 0. The map has it only if the namespace has so
// many partitions. 1 < count <= kMaxPartitions.
std::string PartitionAddress(absl::string_view namespace_name, int partition,
                             int count);

// The namespace of a map, and which of its partitions the map is: what a
// PartitionName or PartitionAddress was made of, for a namespace's own name 0.
struct PartitionPlace {
  absl::string_view namespace_name;
  int partition = 0;
  // Of a PartitionAddress; else 0.
  int count = 0;
};
// partition -1: it is neither.
PartitionPlace PlaceOf(absl::string_view map_name);

// The map's own name: of a PartitionAddress the PartitionName, which is a part of it;
// else the name itself. Costs a search for a character.
absl::string_view MapNameOf(absl::string_view map_name_or_address);

// Which of a cluster's slots, which are the partitions of its journal, the map is in,
// by its name or address. Never changes: existing journals depend on it.
uint32_t SlotOfMap(absl::string_view map_name, uint32_t slots);

// OK if a map may be called so. Else, or for a partition that no namespace has,
// as ValidateNamespaceName.
absl::Status ValidateMapName(absl::string_view map_name);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_PARTITIONS_H_
