// A registry, and the namespaces in it as clients see them.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_PARTS_WORLD_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_PARTS_WORLD_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/local_store.h"
#include "server/engine/parts/partitioned_store.h"
#include "server/engine/registry.h"

namespace timecache::server {

// Nothing in it waits: calls have completed when they return. Not thread-safe.
class PartsWorld {
 public:
  // `clock` is not owned.
  explicit PartsWorld(const Clock* clock, const RegistryLimits& limits = {})
      : reaper_(clock),
        registry_(clock, &reaper_, limits),
        maps_(&registry_, clock),
        store_(&maps_, &registry_) {}

  Registry& registry() { return registry_; }
  Store& store() { return store_; }
  Reaper& reaper() { return reaper_; }

  // What `call` gives to the completion that it gets.
  template <typename T, typename Call>
  static absl::StatusOr<T> Get(const Call& call) {
    std::optional<absl::StatusOr<T>> result;
    call([&result](absl::StatusOr<T> done) { result = std::move(done); });
    return *std::move(result);
  }

  absl::Status Create(absl::string_view name, const NamespaceOptions& options) {
    return Get<NamespaceInfo>([&](auto done) {
             store_.CreateNamespace(name, options, std::move(done));
           })
        .status();
  }
  absl::Status Update(absl::string_view name,
                      OptionsChange<NamespaceOptions> change) {
    return Get<NamespaceInfo>([&](auto done) {
             store_.UpdateNamespace(name, std::move(change), std::move(done));
           })
        .status();
  }
  absl::Status Delete(absl::string_view name) {
    absl::Status result = absl::UnknownError("no answer");
    store_.DeleteNamespace(
        name, [&](absl::Status done) { result = std::move(done); });
    return result;
  }
  absl::StatusOr<NamespaceInfo> Describe(absl::string_view name) {
    return Get<NamespaceInfo>([&](auto done) {
      store_.GetNamespace(name, /*include_statistics=*/true, std::move(done));
    });
  }
  absl::StatusOr<NamespaceSize> GetSize(absl::string_view name) {
    return Get<NamespaceSize>(
        [&](auto done) { store_.GetSize(name, std::move(done)); });
  }

  // In turns; their number is in `*turns`, unless that is null.
  absl::Status Execute(absl::string_view name,
                       absl::Span<const Operation> operations,
                       std::vector<Result>* results, int* turns = nullptr) {
    results->resize(operations.size());
    absl::Status result;
    int count = 0;
    for (BatchProgress progress; !progress.done && result.ok(); ++count) {
      store_.Execute(name, operations, absl::MakeSpan(*results), &progress,
                     [&](absl::Status done) { result = std::move(done); });
    }
    if (turns != nullptr) *turns = count;
    return result;
  }
  Result Execute(absl::string_view name, const Operation& operation) {
    std::vector<Result> results;
    absl::Status status = Execute(name, {&operation, 1}, &results);
    if (!status.ok()) results[0].status = std::move(status);
    return results[0];
  }
  // The names of the maps, in order.
  std::vector<std::string> MapNames() const {
    std::vector<std::string> names;
    for (const auto& map : registry_.List()) names.push_back(map->name());
    return names;
  }

 private:
  Reaper reaper_;
  Registry registry_;
  LocalStore maps_;
  PartitionedStore store_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_PARTS_WORLD_H_
