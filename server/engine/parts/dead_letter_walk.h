// The checks of where dead letters go, where the namespaces are on several nodes.

#ifndef TIMECACHED_SERVER_ENGINE_PARTS_DEAD_LETTER_WALK_H_
#define TIMECACHED_SERVER_ENGINE_PARTS_DEAD_LETTER_WALK_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/store.h"

namespace timecache::server {

// The same as CheckDeadLetterRoute and DeadLetterWarnings, over a store that knows
// all namespaces: for the home of a namespace, whose registry leaves them to it
// (Registry::LeaveRoutesToCaller). `store` is not owned and must be there until
// `done` was called, once, on any thread; the other arguments are copied.
// Thread-safe functions.

// Namespaces on the way of a route that are looked at: a longer one is taken for
// one that ends.
inline constexpr int kMaxDeadLetterSteps = 64;

// Before `name` is created with these options, or updated to another
// dead_letter_namespace. INVALID_ARGUMENT that names the cycle; or the error of a
// namespace that could not be asked, such as UNAVAILABLE: then it is unknown, and is
// to be tried again. Without a dead_letter_namespace it completes inline. Two changes
// at the same time, on two nodes, may make a cycle that neither sees. One call for
// each namespace on the way, one after the other.
void CheckDeadLetterRoute(Store* store, absl::string_view name,
                          const NamespaceOptions& options, Store::Done done);

// A page of namespaces that is asked for, and how many pages.
inline constexpr size_t kSendersPage = 1'000;
inline constexpr int kMaxSendersPages = 64;

// For NamespaceInfo::warnings, once it has these options. What could not be asked is
// not warned of. One call about the dead_letter_namespace, and, if the options have a
// ttl below kMinDeadLetterTtlUs, a list of all namespaces.
using WarningsDone =
    absl::AnyInvocable<void(std::vector<std::string> warnings)>;
void FindDeadLetterWarnings(Store* store, absl::string_view name,
                            const NamespaceOptions& options, WarningsDone done);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTS_DEAD_LETTER_WALK_H_
