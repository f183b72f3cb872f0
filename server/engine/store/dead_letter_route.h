// Where the dead letters of namespaces go: from one to the next.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_DEAD_LETTER_ROUTE_H_
#define TIMECACHED_SERVER_ENGINE_STORE_DEAD_LETTER_ROUTE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/namespace_options.h"

namespace timecache::server {

// The options of a namespace; none if there is no such one.
using OptionsOf =
    absl::FunctionRef<std::optional<NamespaceOptions>(absl::string_view name)>;

// INVALID_ARGUMENT that names the cycle, if the dead letters of the namespace
// `name` would come back to it by way of `options.dead_letter_namespace`: an
// event that every group rejects would go round for ever, and grow. Follows the
// others as they are: O(namespaces on the way).
absl::Status CheckDeadLetterRoute(absl::string_view name,
                                  const NamespaceOptions& options,
                                  OptionsOf options_of);

// Letters that live for less than this are warned of.
inline constexpr int64_t kMinDeadLetterTtlUs =
    int64_t{86'400} * kMicrosPerSecond;

// What is allowed and probably not meant, a sentence each: the dead letters of
// `name` go to a namespace that is not there, or expire within a day.
// `senders` is how many others send theirs to `name`.
std::vector<std::string> DeadLetterWarnings(absl::string_view name,
                                            const NamespaceOptions& options,
                                            int senders, OptionsOf options_of);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_DEAD_LETTER_ROUTE_H_
