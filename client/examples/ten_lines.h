// Recipes without a class of their own: a rate limiter, an idempotency key,
// presence. Meant to be copied.

#ifndef TIMECACHED_CLIENT_EXAMPLES_TEN_LINES_H_
#define TIMECACHED_CLIENT_EXAMPLES_TEN_LINES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "timecache/client.h"
#include "timecache/recipes/table.h"
#include "timecache/watcher.h"

namespace timecache::examples {

// Whether this caller may call once more: `limit` times in a window, which
// begins with its first call and lasts a bucket width of the namespace longer
// at most. A call without an answer may have counted: let it pass, or not.
absl::StatusOr<bool> MayCall(const Client& client, const std::string& caller,
                             int64_t limit, absl::Duration window);

// The answer to a request, which is worked on once, however often it comes:
// later ones get the same answer for as long as it is remembered. ABORTED: it
// is being worked on, now or before a crash less than `work_time` ago; try
// again. An unanswered claim is such a crash. FAILED_PRECONDITION: it took
// longer than `work_time`, and may have been worked on again.
absl::StatusOr<std::string> AnswerOnce(const Client& client,
                                       const std::string& request,
                                       absl::Duration work_time,
                                       absl::Duration remembered,
                                       absl::FunctionRef<std::string()> work);

// Presence: each member calls Table::Add, more often than the table's ttl, and
// Table::List lists all members. This returns the members that have left since
// the last call, and waits at most `patience` for events.
absl::StatusOr<std::vector<std::string>> WhoHasLeft(
    const Table& table, Watcher& watcher,
    absl::Duration patience = absl::InfiniteDuration());

}  // namespace timecache::examples

#endif  // TIMECACHED_CLIENT_EXAMPLES_TEN_LINES_H_
