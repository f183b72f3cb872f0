// The types of a consumer group: options, deliveries, settlements.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_GROUP_TYPES_H_
#define TIMECACHED_SERVER_ENGINE_STORE_GROUP_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/clock.h"
#include "server/engine/store/event_batch.h"
#include "server/engine/store/expiry_types.h"
#include "server/engine/store/namespace_options.h"

namespace timecache::server {

inline constexpr int64_t kMinAckTimeoutUs = 10'000;
inline constexpr int64_t kMaxAckTimeoutUs =
    int64_t{7} * 86'400 * kMicrosPerSecond;
inline constexpr int64_t kMaxNackDelayUs =
    int64_t{7} * 86'400 * kMicrosPerSecond;
inline constexpr int kMaxAttempts = 1'000'000;
inline constexpr int kMaxRetryMultiplier = 100;
inline constexpr size_t kMaxReasonBytes = 256;
inline constexpr size_t kMaxGroupPrefixBytes = 256;
inline constexpr size_t kMaxRetryDelays = 32;
// A group's identity is a random number up to this: deliveries name it.
inline constexpr uint64_t kMaxGroupId = (uint64_t{1} << 40) - 1;

// Ranges and meanings are those of GroupOptions in
// proto/timecache/v1/groups.proto.
struct GroupOptions {
  int64_t ack_timeout_us = 30 * kMicrosPerSecond;
  int max_attempts = 5;
  int64_t max_backlog_bytes = int64_t{256} << 20;
  // 0: it stays until it is deleted.
  int64_t unused_ttl_us = 0;
  int64_t retry_delay_us = 0;
  int retry_multiplier = 2;
  int64_t max_retry_delay_us = kMaxNackDelayUs;
  int retry_jitter_percent = 0;
  bool paused = false;
  bool single_active = false;
  // Fixed at creation.
  std::string key_prefix = {};
  // In place of retry_delay_us, retry_multiplier and max_retry_delay_us; empty:
  // there are none.
  std::vector<int64_t> retry_delays_us = {};
};

// How long the event waits after this attempt, by the options alone.
int64_t RetryDelayUs(const GroupOptions& options, uint64_t event_id,
                     int attempt);

// As that of NamespaceOptions, but for key_prefix and retry_delays.
template <typename Options, typename Visit>
requires std::is_same_v<std::remove_const_t<Options>, GroupOptions>
void VisitOptions(Options* o, const Visit& visit) {
  visit("ack_timeout", &o->ack_timeout_us,
        OptionRange{kMinAckTimeoutUs, kMaxAckTimeoutUs, true});
  visit("max_attempts", &o->max_attempts, OptionRange{1, kMaxAttempts});
  visit("max_backlog_bytes", &o->max_backlog_bytes,
        OptionRange{kMinBacklogBytes, kMaxBacklogBytes});
  visit("unused_ttl", &o->unused_ttl_us, UnusedTtlRange(o->unused_ttl_us));
  visit("retry_delay", &o->retry_delay_us,
        OptionRange{0, kMaxNackDelayUs, true});
  visit("retry_multiplier", &o->retry_multiplier,
        OptionRange{1, kMaxRetryMultiplier});
  visit("max_retry_delay", &o->max_retry_delay_us,
        OptionRange{0, kMaxNackDelayUs, true});
  visit("retry_jitter_percent", &o->retry_jitter_percent, OptionRange{0, 100});
  visit("paused", &o->paused, OptionRange{});
  visit("single_active", &o->single_active, OptionRange{});
}

// INVALID_ARGUMENT that names the first field out of its range, and the range.
absl::Status Validate(const GroupOptions& options);

// As GroupStatistics in the proto.
struct GroupStatistics {
  int64_t members = 0;
  // Of the log since the group began, and of its keys.
  uint64_t events = 0;
  int64_t unresponsive_members = 0;
  uint64_t backlog = 0;
  int64_t backlog_bytes = 0;
  uint64_t in_flight = 0;
  int64_t in_flight_bytes = 0;
  // Since when it has no member; kNeverUs if it has one.
  int64_t unused_since_us = kNeverUs;
  // kNeverUs if all is settled.
  int64_t oldest_unsettled_us = kNeverUs;
  uint64_t delivered = 0;
  uint64_t redelivered = 0;
  uint64_t acked = 0;
  uint64_t nacked = 0;
  uint64_t put_back = 0;
  uint64_t timed_out = 0;
  uint64_t dead_lettered = 0;
  uint64_t dead_letter_failures = 0;
  uint64_t dead_letters_denied = 0;
  uint64_t dead_letters_dropped = 0;
  uint64_t lost = 0;
  uint64_t returned = 0;
  uint64_t extended = 0;
  uint64_t suspects = 0;
  uint64_t terminated = 0;
  // Of in_flight.
  uint64_t fetched = 0;
  // Of `events`, those that the group got by being moved.
  uint64_t moved = 0;
  // Events that it gave up so, unsettled.
  uint64_t skipped = 0;
};

// How a member's stream ended: by the server's will, as when it drains, or
// because the client cancelled it or is gone, which may be the doing of an
// event that the client held. Or a fetch, whose answer was sent: its caller
// has the events.
enum class StreamEnd : uint8_t { kByServer, kByClient, kAnswered };

// Who a member of a group is.
struct MemberOrigin {
  std::string principal = {};
  // As gRPC names it.
  std::string peer = {};
  int64_t since_us = 0;
};

// A stream that is a member, as GroupMember in the proto.
struct MemberInfo {
  uint64_t id = 0;
  std::shared_ptr<const MemberOrigin> origin;
  int in_flight = 0;
  int max_in_flight = 0;
  int window = 0;
  bool unresponsive = false;
  bool active = true;
};

// An event that its member's stream did not survive again and again.
struct Suspect {
  std::string key;
  int returns = 0;
  // Times that an event of the group was returned as one.
  uint64_t times = 0;
};

// How many events one turn may take out as dead letters, and most bytes of
// them, but for a single larger one.
struct DeadLetterBudget {
  int events = 0;
  int64_t bytes = INT64_MAX;
  // Nothing is to be taken out before others have been put.
  bool waits = false;
};

// What an unsettled event waits for: see UnsettledState in
// proto/timecache/v1/groups.proto.
enum class UnsettledState : uint8_t {
  kReady,
  kBlockedByKey,
  kInFlight,
  kDelayed,
  kDeadLettering,
};

// An event that a group has not settled, as an operator sees it.
struct UnsettledInfo {
  // Its `attempt` is 0 if it has not been delivered.
  Delivery delivery;
  UnsettledState state = UnsettledState::kReady;
  // In flight: the member that holds it, since when.
  uint64_t member_id = 0;
  int64_t since_us = kNeverUs;
  // In flight, delayed or dead-lettering: the end of that.
  int64_t due_us = kNeverUs;
};

// Which unsettled events are listed: from number `from` of a partition on, with
// keys that begin with `key_prefix`.
struct UnsettledQuery {
  uint64_t from = 0;
  int partition = 0;
  std::string key_prefix = {};
  int most = 100;
  // The page ends at kMaxUnsettledBytes of keys and, if they are wanted, values
  // that are not larger than that.
  bool include_values = false;
};

inline constexpr int64_t kMaxUnsettledBytes = int64_t{1} << 20;

struct UnsettledPage {
  std::vector<UnsettledInfo> events;
  // Where the next page begins; none: there is none.
  std::optional<uint64_t> next;
  int next_partition = 0;
};

// What became of a group that was moved.
struct SeekResult {
  // Events that it has not settled now.
  uint64_t unsettled = 0;
  // Events that were given up.
  uint64_t dropped = 0;
};

// The outcome of a dead letter.
enum class DeadLetterOutcome {
  kPut,
  // A retry may succeed.
  kTryAgain,
  // A retry may succeed: the group's creator may not write there now.
  kDenied,
  // No retry can succeed.
  kNeverFits,
};

enum class SettleAction { kAck, kNack, kPutBack, kExtend, kTerminate };

struct Settlement {
  // Of the delivery, as are `returns` and `group_id`.
  uint64_t event_id = 0;
  int attempt = 0;
  SettleAction action = SettleAction::kAck;
  // Of a NACK; unset: see RetryDelayUs.
  std::optional<int64_t> delay_us = {};
  // Of a PUT_BACK. 0: the own TTL that the entry had, or the namespace's.
  int64_t ttl_us = 0;
  int returns = 0;
  uint64_t group_id = 0;
  uint8_t partition = 0;
  // See Operation.
  std::optional<int64_t> expire_at_us = {};
  bool allow_past = false;
  // Of a NACK or TERMINATE: at most kMaxReasonBytes. Must outlive the call.
  absl::string_view reason = {};
  // By an operator: of no delivery.
  bool by_operator = false;
};

struct SettleResult {
  // NOT_FOUND (EVENT_NOT_UNSETTLED), FAILED_PRECONDITION (STALE_ATTEMPT),
  // INVALID_ARGUMENT, or an error of put: it was not settled.
  absl::Status status;
  // Of a PUT_BACK: the entry's version; 0 if the key existed again.
  uint64_t version = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_GROUP_TYPES_H_
