// SettleExpired, from its request to the group and back.

#ifndef TIMECACHED_SERVER_SERVICE_WATCH_SETTLE_H_
#define TIMECACHED_SERVER_SERVICE_WATCH_SETTLE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/engine/groups/group_types.h"
#include "server/engine/registry.h"
#include "server/service/call/refusal_count.h"
#include "timecache/v1/watch.pb.h"

namespace timecache {

inline constexpr int kMaxSettlements = 4'096;

// INVALID_ARGUMENT for what the engine does not see: no action, malformed
// durations, fields of another action.
absl::StatusOr<Settlement> ToSettlement(const v1::Settlement& from);

// Settles what `request` asks for, each by itself, and fills `*response`. An
// error says that none was tried. `*refused_by_limits`, unless null, counts
// those that a limit refused. Thread-safe; costs what the group's Settle does.
absl::Status Settle(const v1::SettleExpiredRequest& request,
                    const Registry& registry, int64_t now_us,
                    v1::SettleExpiredResponse* response,
                    RefusalCount* refused_by_limits = nullptr);

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_WATCH_SETTLE_H_
