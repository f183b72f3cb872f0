// How a member of a consumer group settles the events that it receives. See
// timecache/group_worker.h, and Client::Settle for settling without a worker.

#ifndef TIMECACHE_SETTLE_H_
#define TIMECACHE_SETTLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace timecache {

// Most settlements of one request.
inline constexpr size_t kMaxSettlements = 4096;
// Longest reason of a kNack or kTerminate.
inline constexpr size_t kMaxReasonBytes = 256;

enum class SettleAction {
  kAck,      // Done.
  kNack,     // Deliver it again.
  kPutBack,  // Put it back into the namespace; then done.
  kExtend,   // Not settled yet: the member needs longer.
  // Do not deliver it again: it goes to the dead letters now.
  kTerminate,
};

// What to do with an event: a plain value.
struct Settle {
  // Done. Also accepted from an earlier delivery, while the event is unsettled.
  static Settle Ack() { return {SettleAction::kAck}; }
  // Deliver it again, after 0 to 7 days; unset: as the group's retry_delay says.
  // The reason, of at most 256 B of UTF-8, comes with the next delivery and is in
  // the dead letter.
  static Settle Nack(std::optional<absl::Duration> delay = std::nullopt,
                     std::string reason = {}) {
    Settle settle = {SettleAction::kNack, delay};
    settle.reason = std::move(reason);
    return settle;
  }
  // Give it up: it becomes a dead letter with this reason, or is settled where
  // the namespace has no place for these.
  static Settle Terminate(std::string reason = {}) {
    Settle settle = {SettleAction::kTerminate};
    settle.reason = std::move(reason);
    return settle;
  }
  // Put it back with its value and a fresh time to live, unless the key exists
  // again. `ttl` as in PutOptions; unset: the entry's own, if it had one, else
  // the namespace's.
  static Settle PutBack(std::optional<absl::Duration> ttl = std::nullopt) {
    return {SettleAction::kPutBack, std::nullopt, ttl};
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
  std::optional<absl::Duration> delay = {};  // Of kNack.
  // Of kPutBack, as in PutOptions.
  std::optional<absl::Duration> ttl = {};
  std::optional<absl::Time> expire_at = {};
  bool allow_past = false;
  std::string reason = {};  // Of kNack and kTerminate.
};

// One event, settled.
struct Settlement {
  std::string delivery_token = {};  // From the event.
  Settle how = {};
};

// The outcome of one settlement.
struct SettleResult {
  // NOT_FOUND (EVENT_NOT_UNSETTLED): the event has been settled already, or is
  // a dead letter, or lost. FAILED_PRECONDITION (STALE_ATTEMPT): a kNack,
  // kPutBack or kExtend came too late, the event has been delivered again; or
  // the group that delivered it is gone, also if there is one of the same name.
  // INVALID_ARGUMENT: a field is out of its range. Of kPutBack also the errors
  // of Put; the event stays unsettled.
  absl::Status status = {};
  // Of kPutBack: the entry's new version; 0 if the key existed again and the
  // event was dropped.
  uint64_t version = 0;
};

}  // namespace timecache

#endif  // TIMECACHE_SETTLE_H_
