// What the service asks of the engine: operations on a namespace, and a
// completion.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_H_
#define TIMECACHED_SERVER_ENGINE_STORE_H_

#include <functional>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/clock.h"
#include "server/engine/map/operation.h"
#include "server/engine/map/scan.h"
#include "server/engine/registry.h"

namespace timecache {

// The data of the namespaces, here or on another machine. A namespace's
// max_operations_per_second counts here: an operation each, a size and a walk
// as one.
//
// Thread-safe. A store on this machine completes before the call returns, on
// the caller's thread; one on another machine may complete later, on a thread
// of its own. What a call is given by reference must stay valid until its
// completion, which is called exactly once.
class Store {
 public:
  using Done = absl::AnyInvocable<void(absl::Status)>;

  virtual ~Store() = default;

  // Applies the operations, in order for each key, and fills the result of
  // each: `results` has as many. `done` gets the error that kept all of them
  // from being tried (NOT_FOUND, INVALID_ARGUMENT), or OK.
  virtual void Execute(absl::string_view name,
                       absl::Span<const Operation> operations,
                       absl::Span<Result> results, Done done) = 0;

  // As TimeCacheMap::GetSize.
  virtual void GetSize(absl::string_view name, MapSize* size, Done done) = 0;

  // One call of TimeCacheMap::Scan. `*place` begins empty, and `*more` tells
  // whether to call again.
  virtual void Scan(absl::string_view name, absl::string_view prefix,
                    int max_entries, int64_t max_bytes, ScanPlace* place,
                    bool* more, const EntryVisitor& visit, Done done) = 0;
};

// The store that is this process.
class LocalStore final : public Store {
 public:
  // Neither is owned; both must outlive the store.
  LocalStore(const Registry* registry, const Clock* clock)
      : registry_(registry), clock_(clock) {}

  void Execute(absl::string_view name, absl::Span<const Operation> operations,
               absl::Span<Result> results, Done done) override;
  void GetSize(absl::string_view name, MapSize* size, Done done) override;
  void Scan(absl::string_view name, absl::string_view prefix, int max_entries,
            int64_t max_bytes, ScanPlace* place, bool* more,
            const EntryVisitor& visit, Done done) override;

 private:
  const Registry* const registry_;
  const Clock* const clock_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_ENGINE_STORE_H_
