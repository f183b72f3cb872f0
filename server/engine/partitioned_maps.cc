#include "server/engine/partitioned_maps.h"

#include <memory>
#include <string>

#include "server/engine/store/partitions.h"

namespace timecache::server {
namespace {

// Whether the map is a partition of a namespace that exists.
bool HasNamespace(const TimeCacheMap& map, const Registry& registry) {
  const auto first = registry.Find(map.namespace_name());
  return first.ok() && map.partition() < (*first)->options().num_partitions;
}

absl::Status CopyOptions(absl::string_view namespace_name,
                         const std::string& to, Registry* registry) {
  return registry
      ->Update(to,
               [&](NamespaceOptions* options) {
                 const auto first = registry->Find(namespace_name);
                 if (first.ok()) *options = (*first)->options();
                 return first.status();
               })
      .status();
}

}  // namespace

absl::Status CreatePartitions(absl::string_view namespace_name,
                              const NamespaceOptions& options,
                              Registry* registry) {
  // One that exists may have other partitions.
  int partition =
      registry->Find(namespace_name).ok() ? 0 : options.num_partitions - 1;
  const int last = partition;
  for (; partition >= 0; --partition) {
    const absl::Status status =
        registry
            ->CreateConfigured(PartitionName(namespace_name, partition),
                               options)
            .status();
    if (status.ok()) continue;
    while (++partition <= last) {
      registry->Delete(PartitionName(namespace_name, partition)).IgnoreError();
    }
    return status;
  }
  return absl::OkStatus();
}

absl::Status UpdatePartitions(
    absl::string_view namespace_name,
    const std::function<absl::Status(NamespaceOptions*)>& change,
    Registry* registry) {
  absl::Status status = registry->Update(namespace_name, change).status();
  const Registry::Names names = registry->PartitionsOf(namespace_name);
  if (names == nullptr) return status;
  for (size_t i = 1; i < names->size() && status.ok(); ++i) {
    status = CopyOptions(namespace_name, (*names)[i], registry);
  }
  return status;
}

absl::Status ReconcilePartitions(Registry* registry) {
  absl::Status first_error;
  for (const auto& map : registry->List()) {
    if (map->partition() == 0 || HasNamespace(*map, *registry)) continue;
    first_error.Update(registry->Delete(map->name()));
  }
  for (const auto& first : registry->List()) {
    if (first->partition() != 0) continue;
    const NamespaceOptions options = first->options();
    for (int i = 1; i < options.num_partitions; ++i) {
      const std::string name = PartitionName(first->name(), i);
      const auto map = registry->Find(name);
      if (!map.ok()) {
        first_error.Update(registry->CreateConfigured(name, options).status());
      } else if ((*map)->options() != options) {
        first_error.Update(CopyOptions(first->name(), name, registry));
      }
    }
  }
  return first_error;
}

}  // namespace timecache::server
