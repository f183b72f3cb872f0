// SettleExpired, from its request to the group and back.

#ifndef TIMECACHED_SERVER_RPC_WATCH_SETTLE_H_
#define TIMECACHED_SERVER_RPC_WATCH_SETTLE_H_

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/store/group_types.h"
#include "server/engine/store/store.h"
#include "server/rpc/call/refusal_count.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::server {

inline constexpr int kMaxSettlements = 4'096;

// INVALID_ARGUMENT for errors that the engine cannot see: a malformed token,
// no action, malformed durations, fields of another action.
absl::StatusOr<Settlement> ToSettlement(const v1::Settlement& from);

// Gets the error that prevented all settlements, or OK, and which of them a
// limit refused.
using SettleDone =
    absl::AnyInvocable<void(absl::Status, const RefusalCount& refused)>;

// Applies the settlements of `request`, each by itself, and fills `*response`.
// Both must live until `done` is called, on whichever thread the store
// completes.
void Settle(const v1::SettleExpiredRequest& request, Store* store,
            v1::SettleExpiredResponse* response, SettleDone done);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_SETTLE_H_
