// Which namespaces have several partitions.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_PARTITION_DIRECTORY_H_
#define TIMECACHED_SERVER_ENGINE_STORE_PARTITION_DIRECTORY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

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

  // The names by which those of a namespace with so many, which may not be there yet,
  // are reached: in this process by their own, PartitionName.
  virtual Names NamesOf(absl::string_view namespace_name, int count) const;
};

// Those of a namespace with so many.
PartitionDirectory::Names PartitionNames(absl::string_view namespace_name,
                                         int count);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_PARTITION_DIRECTORY_H_
