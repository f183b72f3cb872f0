// The opaque tokens that name a group's deliveries in their settlements.

#ifndef TIMECACHED_SERVER_RPC_WATCH_DELIVERY_TOKEN_H_
#define TIMECACHED_SERVER_RPC_WATCH_DELIVERY_TOKEN_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/expiry_types.h"
#include "server/engine/store/group_types.h"

namespace timecache::server {

// The group's identity, and varints of the event's number, the attempt and the
// returns, and of the partition if it is not the first: as a rule at most 15
// bytes, which std::string keeps in itself.
inline constexpr size_t kMaxDeliveryTokenBytes = 32;

// Writes at most kMaxDeliveryTokenBytes; returns their end.
char* WriteDeliveryToken(const Delivery& delivery, char* to);

// Names the event in its group, for an operator: of no attempt.
std::string OperatorToken(const Delivery& delivery);

// Sets what names the delivery. INVALID_ARGUMENT about delivery_token for bytes
// that no server writes.
absl::Status ReadDeliveryToken(absl::string_view token, Settlement* to);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_DELIVERY_TOKEN_H_
