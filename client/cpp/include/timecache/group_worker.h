// Working off a consumer group's events.
//
//   timecache::GroupWorker worker(
//       client.In("orders"), {.group = "billing", .threads = 8},
//       [](const timecache::ExpiredEvent& event) {
//         return Charge(event.value) ? timecache::Settle::Ack()
//                                    :
//                                    timecache::Settle::Nack(absl::Minutes(1));
//       });
//   absl::Status end = worker.Wait();
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "timecache/client.h"
#include "timecache/export.h"
#include "timecache/settle.h"
#include "timecache/watch_types.h"

namespace timecache {

struct GroupWorkerOptions {
  // Empty: the client's.
  std::string ns = {};
  // Required. Made with default options if it is not there.
  std::string group = {};
  // Where a group starts that is made by this.
  WatchStart start = WatchStart::kNow;
  bool keys_only = false;  // Leave the values out.
  // Handlers that run at a time. At least 1. With 1, first attempts are handled
  // in order of death.
  int threads = 4;
  // Most events that this worker holds, from their arrival until they are
  // settled: 1 to 65,536. The last of them must be done within the group's
  // ack_timeout: max_in_flight / threads x a handler's time. Default: twice the
  // threads, so that a handler may take half of it; more hides the round trip
  // of handlers that are quick.
  std::optional<uint32_t> max_in_flight = {};
  // As in WatchOptions: a handler may get an event without its value, with
  // omitted_value_bytes.
  std::optional<uint32_t> max_message_bytes = {};
  // Settlements are sent when there are so many (1 to kMaxSettlements), when
  // the first has waited for settle_linger, or when no event is left to handle.
  size_t settle_batch_max = 256;
  absl::Duration settle_linger = absl::Milliseconds(2);
  // Delay of the Nack for a handler that throws, and for a kNack or kPutBack
  // that the server refuses.
  absl::Duration retry_delay = absl::Seconds(1);
  // How long Stop tries to settle, once the last handler has returned. A call
  // that is under way then may take the client's timeout more, at most 5 s.
  absl::Duration stop_timeout = absl::Seconds(10);
  // As in WatchOptions.
  bool wait_for_server = false;
  absl::Duration min_pause = absl::Milliseconds(100);
  absl::Duration max_pause = absl::Seconds(1);
  absl::Duration silence_max = absl::InfiniteDuration();

  // What went wrong and was survived: a break, a handler that threw, a
  // settlement that the server refused or did not get.
  std::function<void(const absl::Status& why)> on_error = {};
  // The group lost so many events, as it held more than its max_backlog_bytes.
  std::function<void(uint64_t lost)> on_loss = {};
};

// What a worker has done since its start.
struct GroupWorkerCounters {
  uint64_t handled = 0;   // Handlers that have returned, or thrown.
  uint64_t thrown = 0;    // Of these, that have thrown.
  uint64_t acked = 0;     // Settled by kAck.
  uint64_t nacked = 0;    // Given back by kNack, or for one that threw.
  uint64_t put_back = 0;  // Settled by kPutBack, put or let go.
  // Settled too late: the event had been given to another member, or was done.
  uint64_t stale = 0;
  // Not settled: refused, or not delivered. The event is given out again.
  uint64_t unsettled = 0;
  uint64_t lost = 0;  // The sum of what on_loss was told.
  // Events that came without a value that did not fit, each attempt counted.
  uint64_t omitted_values = 0;
};

// A member of a consumer group that calls a handler for each event it is given,
// on threads of its own, and settles as the handler says.
//
// At least once. An event comes again, perhaps to another worker, when its
// handler said kNack or threw, when it was not settled within the group's
// ack_timeout, and when the connection broke before it was settled. Events of
// one key come one after the other, the later when the earlier is settled; only
// an event that timed out or whose connection broke can be with two workers at
// once. In one worker an event is never with two handlers at once.
//
// Reconnects by itself, as Watcher does; settlements are sent again until they
// arrive. What ends the worker is what ends a Watcher: no server at the first
// attempt (unless wait_for_server), namespace or group deleted, a request that
// is refused. A server that restarts has forgotten its groups and what was
// unsettled in them: the worker goes on, in the new group, with the oldest
// event that is retained.
//
// Thread-safe. Memory is bounded by max_in_flight. The handler is called by
// several threads at once; on_error and on_loss by any of the worker's threads,
// one at a time. Of the worker's functions they may call RequestStop and
// counters. Has threads + 2 threads.
class TIMECACHED_EXPORT GroupWorker {
 public:
  using Handler = std::function<Settle(const ExpiredEvent& event)>;

  // Begins at once.
  GroupWorker(const Client& client, GroupWorkerOptions options,
              Handler handler);
  // Stops.
  ~GroupWorker();

  GroupWorker(const GroupWorker&) = delete;
  GroupWorker& operator=(const GroupWorker&) = delete;

  // Begins no further event; does not wait. What was given to this worker and
  // not begun goes to others once the running handlers are done and settled.
  void RequestStop();
  // RequestStop and Wait.
  absl::Status Stop();
  // Waits for the end: the running handlers have returned, and what they said
  // has arrived at the server. OK after a stop; else what ended the worker, or
  // why settlements did not arrive within stop_timeout.
  absl::Status Wait();

  GroupWorkerCounters counters() const;

 private:
  class State;

  std::unique_ptr<State> state_;  // Never null.
};

}  // namespace timecache
