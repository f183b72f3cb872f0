// For calls that do nothing unless all of their namespaces are there.

#ifndef TIMECACHED_SERVER_ENGINE_PARTS_WHEN_ALL_EXIST_H_
#define TIMECACHED_SERVER_ENGINE_PARTS_WHEN_ALL_EXIST_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/parts/gather.h"
#include "server/engine/store/store.h"

namespace timecache::server {

// OK, or the error of the first that is not, in their order. `names`, not empty, must
// stay until `done`.
inline void WhenAllExist(Store* store, absl::Span<const std::string> names,
                         Store::Done done) {
  GatherAll<NamespaceInfo>(
      names.size(),
      [&](size_t i, Store::DoneWith<NamespaceInfo> found) {
        store->GetNamespace(names[i], /*include_statistics=*/false,
                            std::move(found));
      },
      [done = std::move(done)](
          const absl::StatusOr<std::vector<NamespaceInfo>>& all) mutable {
        done(all.status());
      });
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTS_WHEN_ALL_EXIST_H_
