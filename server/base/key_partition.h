// Which partition of a namespace a key is in: what the server and its clients have to
// agree on, as clients may send a call to a partition's owner.

#ifndef TIMECACHED_SERVER_BASE_KEY_PARTITION_H_
#define TIMECACHED_SERVER_BASE_KEY_PARTITION_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace timecache::server {

// What of a key decides its partition: as in Redis Cluster, what is between the
// first { and the next } if that is not empty, or else all of it. So keys that are
// to be changed atomically can be kept in one partition.
absl::string_view HashTag(absl::string_view key);

// CRC-32C of HashTag(key). O(key).
uint32_t PartitionHash(absl::string_view key);

// PartitionHash(key), modulo num_partitions.
int PartitionOfKey(absl::string_view key, int num_partitions);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_KEY_PARTITION_H_
