// How a store says that what its caller believes of a namespace is old.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_STALE_NAMES_H_
#define TIMECACHED_SERVER_ENGINE_STORE_STALE_NAMES_H_

#include "absl/status/status.h"

namespace timecache::server {

// A node that reaches maps by PartitionAddress, or by a namespace's name because it has
// one partition, may have learned how many there are before the namespace was made
// anew. The map's store then applies nothing, and answers NOT_FOUND
// (NAMESPACE_NOT_FOUND) with this mark: so there is no namespace of this name and of as
// many partitions, but maybe another one. Nodes tell it to each other; clients see the
// error without it.
absl::Status MarkStale(absl::Status status);
bool IsStale(const absl::Status& status);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_STALE_NAMES_H_
