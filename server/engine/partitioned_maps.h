// All maps of a namespace together, in a registry.

#ifndef TIMECACHED_SERVER_ENGINE_PARTITIONED_MAPS_H_
#define TIMECACHED_SERVER_ENGINE_PARTITIONED_MAPS_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/registry.h"
#include "server/engine/store/namespace_options.h"

namespace timecache::server {

// Thread-safe functions, whose cost is that of the registry for each partition.
// None waits for the journal.

// A namespace that the configuration has, with all of its partitions, the first one
// last; or none of them. Errors as Registry::CreateConfigured.
absl::Status CreatePartitions(absl::string_view namespace_name,
                              const NamespaceOptions& options,
                              Registry* registry);

// Changes the options of the first partition, as Registry::Update, and gives the
// others the same. So they are the same after two calls at a time, too.
absl::Status UpdatePartitions(
    absl::string_view namespace_name,
    const std::function<absl::Status(NamespaceOptions*)>& change,
    Registry* registry);

// Finishes, or undoes, what a crash has interrupted. Of a namespace that has a
// first partition, those that are missing are made and all get its options. Others
// belong to no namespace, and are deleted. After all maps were restored, and before
// any is used.
absl::Status ReconcilePartitions(Registry* registry);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTITIONED_MAPS_H_
