// How a member of a consumer group settles the events that it receives. See
// timecache/group_worker.h, and Client::Settle for settling without a worker.

#ifndef TIMECACHE_SETTLE_H_
#define TIMECACHE_SETTLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace timecache {

// Most settlements of one request.
inline constexpr size_t kMaxSettlements = 4096;

enum class SettleAction {
  kAck,      // Done.
  kNack,     // Deliver it again.
  kPutBack,  // Put it back into the namespace; then done.
  kExtend,   // Not settled yet: the member needs longer.
};

// What to do with an event: a plain value.
struct Settle {
  // Done. Also accepted from an earlier attempt, while the event is unsettled.
  static Settle Ack() { return {SettleAction::kAck}; }
  // Deliver it again, after 0 to 7 days.
  static Settle Nack(absl::Duration delay = absl::ZeroDuration()) {
    return {SettleAction::kNack, delay};
  }
  // Put it back with its value and a fresh time to live, unless the key exists
  // again. `ttl` as in PutOptions; unset: the entry's own, if it had one, else
  // the namespace's.
  static Settle PutBack(std::optional<absl::Duration> ttl = std::nullopt) {
    return {SettleAction::kPutBack, absl::ZeroDuration(), ttl};
  }
  // The same until a time: see PutOptions.
  static Settle PutBackUntil(absl::Time expire_at, bool allow_past = false) {
    Settle settle = PutBack();
    settle.expire_at = expire_at;
    settle.allow_past = allow_past;
    return settle;
  }
  // Give this attempt another ack_timeout from now, as often as needed. A
  // GroupWorker does it by itself while its handler runs; of a handler it is
  // an error.
  static Settle Extend() { return {SettleAction::kExtend}; }

  SettleAction action = SettleAction::kAck;
  absl::Duration delay = absl::ZeroDuration();  // Of kNack.
  // Of kPutBack, as in PutOptions.
  std::optional<absl::Duration> ttl = {};
  std::optional<absl::Time> expire_at = {};
  bool allow_past = false;
};

// One event, settled.
struct Settlement {
  uint64_t event_id = 0;  // From the event.
  uint32_t attempt = 0;   // From the event.
  Settle how = {};
  // From the event: then a kNack, kPutBack or kExtend of a delivery that ended
  // with the member's stream is STALE_ATTEMPT. Unset: any delivery of that
  // attempt is meant.
  std::optional<uint32_t> returns = {};
};

// The outcome of one settlement.
struct SettleResult {
  // NOT_FOUND (EVENT_NOT_UNSETTLED): the event has been settled already, or is
  // a dead letter, or lost. FAILED_PRECONDITION (STALE_ATTEMPT): a kNack,
  // kPutBack or kExtend came too late, the event has been delivered again.
  // INVALID_ARGUMENT: a field is out of its range. Of kPutBack also the errors
  // of Put; the event stays unsettled.
  absl::Status status = {};
  // Of kPutBack: the entry's new version; 0 if the key existed again and the
  // event was dropped.
  uint64_t version = 0;
};

}  // namespace timecache

#endif  // TIMECACHE_SETTLE_H_
