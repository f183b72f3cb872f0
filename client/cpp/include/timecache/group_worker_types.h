// A GroupWorker's options, and what it counts: plain structs.

#ifndef TIMECACHE_GROUP_WORKER_TYPES_H_
#define TIMECACHE_GROUP_WORKER_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "timecache/watch_types.h"

namespace timecache {

struct GroupWorkerOptions {
  // Empty: the client's.
  std::string ns = {};
  // Required. Created with default options if it does not exist.
  std::string group = {};
  // Where a group that this worker creates starts.
  WatchStart start = WatchStart::kNow;
  bool keys_only = false;  // Leave the values out.
  // Handlers that run at a time. At least 1. With 1, first attempts are handled
  // in order of death.
  int threads = 4;
  // Most events that this worker holds, from their arrival until they are
  // settled: 1 to 65,536. Default: twice the threads; a larger value hides the
  // round trip of quick handlers, and withholds more events from other workers
  // while handlers are slow.
  std::optional<uint32_t> max_in_flight = {};
  // As in WatchOptions: a handler may get an event without its value, with
  // omitted_value_bytes.
  std::optional<uint32_t> max_message_bytes = {};
  // Settlements are sent when this many wait (1 to kMaxSettlements), when the
  // first has waited for settle_linger, or when no event is left to handle.
  size_t settle_batch_max = 256;
  absl::Duration settle_linger = absl::Milliseconds(2);
  // How long after its arrival an event is extended, at most: a handler that
  // hangs then loses its event to another worker. Zero: never; then handlers
  // have to return within the group's ack_timeout, which also runs for events
  // that wait for one: max_in_flight / threads x a handler's time.
  absl::Duration extend_max = absl::Hours(12);
  // Delay of the Nack for a handler that throws, and for what it said if the
  // server refuses that. Unset: as the group's retry_delay says.
  std::optional<absl::Duration> retry_delay = absl::Seconds(1);
  // How long Stop tries to settle, once the last handler has returned. A call
  // in progress at that time may take the client's timeout more, at most 5 s.
  absl::Duration stop_timeout = absl::Seconds(10);
  // As in WatchOptions.
  bool wait_for_server = false;
  absl::Duration min_pause = absl::Milliseconds(100);
  absl::Duration max_pause = absl::Seconds(1);
  absl::Duration silence_max = absl::InfiniteDuration();

  // Called on errors that do not end the worker: a broken connection, a handler
  // that threw or whose event could not be settled as it said (the message has
  // the key and the attempt), an event that is extended no longer. Unset: a
  // line on standard error, with the namespace and the group.
  std::function<void(const absl::Status& why)> on_error = {};
  // Called when the group lost events, because it held more than its
  // max_backlog_bytes, with their number.
  std::function<void(uint64_t lost)> on_loss = {};
};

// What a worker has done since its start.
struct GroupWorkerCounters {
  uint64_t handled = 0;     // Handlers that have returned, or thrown.
  uint64_t thrown = 0;      // Of these, that have thrown.
  uint64_t acked = 0;       // Settled by kAck.
  uint64_t nacked = 0;      // By kNack, or because the handler threw.
  uint64_t put_back = 0;    // Settled by kPutBack, put or dropped.
  uint64_t terminated = 0;  // Given up by kTerminate.
  // Settled too late: the event had been delivered to another member, or was
  // settled. on_error has been called for each.
  uint64_t stale = 0;
  uint64_t extended = 0;  // kExtends of events.
  // kExtends that the server refused: the event had been delivered to another
  // member, or was settled.
  uint64_t not_extended = 0;
  // Not settled: refused, or not received. The event is delivered again.
  uint64_t unsettled = 0;
  uint64_t lost = 0;  // The sum of the numbers passed to on_loss.
  // Events delivered without their value, which did not fit; each attempt
  // counts.
  uint64_t omitted_values = 0;
};

}  // namespace timecache

#endif  // TIMECACHE_GROUP_WORKER_TYPES_H_
