// Namespaces of several partitions over a store that knows maps alone.

#ifndef TIMECACHED_SERVER_ENGINE_PARTS_PARTITIONED_STORE_H_
#define TIMECACHED_SERVER_ENGINE_PARTS_PARTITIONED_STORE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/store.h"

namespace timecache::server {

// How many partitions each namespace has, known without waiting.
class PartitionDirectory {
 public:
  virtual ~PartitionDirectory() = default;

  // The names of the partitions' maps, in order, of a namespace that has several;
  // null for one that has one, or does not exist. Thread-safe. While no namespace
  // has several it costs an atomic load.
  using Names = std::shared_ptr<const std::vector<std::string>>;
  virtual Names PartitionsOf(absl::string_view namespace_name) const = 0;
};

// Implements Store on `maps`, in which each partition is a map of its own (see
// partitions.h). What concerns a namespace of one partition is passed on as it is.
//
// Of a namespace of several:
//  - operations go to their keys' partitions, which take their share of a batch at
//    the same time; results are in the order of the operations. An atomic batch,
//    and what must be atomic, is in one partition: INVALID_ARGUMENT otherwise,
//    which tells of hash tags.
//  - sizes and statistics are sums, scans go through one partition after another.
//  - options are the same in all of them; the map divides the limits. Partition 0
//    is made last and deleted first: a namespace exists if it does. A change is
//    answered when all have it. What was interrupted by a crash is finished or
//    undone by ReconcilePartitions.
//  - watches and members of groups read all partitions: see merged_reader.h.
class PartitionedStore final : public Store {
 public:
  // Neither is owned; both must outlive the store.
  PartitionedStore(Store* maps, const PartitionDirectory* directory);
  // ... all of Store.
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTS_PARTITIONED_STORE_H_
