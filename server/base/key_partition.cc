#include "server/base/key_partition.h"

#include "server/base/crc32c.h"

namespace timecache::server {

absl::string_view HashTag(absl::string_view key) {
  const size_t open = key.find('{');
  if (open == absl::string_view::npos) return key;
  const size_t close = key.find('}', open + 1);
  if (close == absl::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

uint32_t PartitionHash(absl::string_view key) {
  return Crc32c(0, HashTag(key));
}

int PartitionOfKey(absl::string_view key, int num_partitions) {
  return static_cast<int>(PartitionHash(key) %
                          static_cast<uint32_t>(num_partitions));
}

}  // namespace timecache::server
