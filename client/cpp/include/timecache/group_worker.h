// Handles a consumer group's events on worker threads.
//
//   timecache::GroupWorker worker(
//       client.In("orders"), {.group = "billing", .threads = 8},
//       [](const timecache::ExpiredEvent& event) {
//         return Charge(event.value) ? timecache::Settle::Ack()
//                                    :
//                                    timecache::Settle::Nack(absl::Minutes(1));
//       });
//   absl::Status end = worker.Wait();

#ifndef TIMECACHE_GROUP_WORKER_H_
#define TIMECACHE_GROUP_WORKER_H_

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
  // Required. Created with default options if it does not exist.
  std::string group = {};
  // Where a group that this worker creates starts.
  WatchStart start = WatchStart::kNow;
  bool keys_only = false;  // Leave the values out.
  // Handlers that run at a time. At least 1. With 1, first attempts are handled
  // in order of death.
  int threads = 4;
  // Most events that this worker holds, from their arrival until they are
  // settled: 1 to 65,536. The last of them must be handled within the group's
  // ack_timeout: max_in_flight / threads x a handler's time. Default: twice the
  // threads, so that a handler may take half the ack_timeout; a larger value
  // hides the round trip of quick handlers.
  std::optional<uint32_t> max_in_flight = {};
  // As in WatchOptions: a handler may get an event without its value, with
  // omitted_value_bytes.
  std::optional<uint32_t> max_message_bytes = {};
  // Settlements are sent when this many wait (1 to kMaxSettlements), when the
  // first has waited for settle_linger, or when no event is left to handle.
  size_t settle_batch_max = 256;
  absl::Duration settle_linger = absl::Milliseconds(2);
  // Delay of the Nack for a handler that throws, and for a kNack or kPutBack
  // that the server refuses.
  absl::Duration retry_delay = absl::Seconds(1);
  // How long Stop tries to settle, once the last handler has returned. A call
  // in progress at that time may take the client's timeout more, at most 5 s.
  absl::Duration stop_timeout = absl::Seconds(10);
  // As in WatchOptions.
  bool wait_for_server = false;
  absl::Duration min_pause = absl::Milliseconds(100);
  absl::Duration max_pause = absl::Seconds(1);
  absl::Duration silence_max = absl::InfiniteDuration();

  // Called on errors that do not end the worker: a broken connection, a handler
  // that threw, a settlement that the server refused or did not receive.
  std::function<void(const absl::Status& why)> on_error = {};
  // Called when the group lost events, because it held more than its
  // max_backlog_bytes, with their number.
  std::function<void(uint64_t lost)> on_loss = {};
};

// What a worker has done since its start.
struct GroupWorkerCounters {
  uint64_t handled = 0;   // Handlers that have returned, or thrown.
  uint64_t thrown = 0;    // Of these, that have thrown.
  uint64_t acked = 0;     // Settled by kAck.
  uint64_t nacked = 0;    // By kNack, or because the handler threw.
  uint64_t put_back = 0;  // Settled by kPutBack, put or dropped.
  // Settled too late: the event had been delivered to another member, or was
  // settled.
  uint64_t stale = 0;
  // Not settled: refused, or not received. The event is delivered again.
  uint64_t unsettled = 0;
  uint64_t lost = 0;  // The sum of the numbers passed to on_loss.
  // Events delivered without their value, which did not fit; each attempt
  // counts.
  uint64_t omitted_values = 0;
};

// A member of a consumer group that calls a handler for each event it receives,
// on threads of its own, and settles the event as the handler returns.
//
// Delivery is at least once. An event is delivered again, perhaps to another
// worker, when its handler returned kNack or threw, when it was not settled
// within the group's ack_timeout, and when the connection broke before it was
// settled. Events of one key are delivered one after the other, the later when
// the earlier is settled; only an event that timed out or whose connection
// broke can be with two workers at once. Within one worker an event is never
// with two handlers at once.
//
// Reconnects by itself, as Watcher does; settlements are sent again until they
// arrive. The same errors end it as end a Watcher: no server at the first
// attempt (unless wait_for_server), a deleted namespace or group, a refused
// request. In a namespace that is not durable, a restart of the server loses
// the groups and their unsettled events: the worker continues, in the new
// group, with the oldest retained event.
//
// Thread-safe. max_in_flight bounds the memory. The handler is called by
// several threads at once; on_error and on_loss by any of the worker's threads,
// one at a time. Of the worker's functions they may call RequestStop and
// counters. Has threads + 2 threads.
class TIMECACHED_EXPORT GroupWorker {
 public:
  using Handler = std::function<Settle(const ExpiredEvent& event)>;

  // Starts at once.
  GroupWorker(const Client& client, GroupWorkerOptions options,
              Handler handler);
  // Stops.
  ~GroupWorker();

  GroupWorker(const GroupWorker&) = delete;
  GroupWorker& operator=(const GroupWorker&) = delete;

  // Starts no further handlers; does not wait. Events that this worker received
  // and has not started go to others once the running handlers have returned
  // and their events are settled.
  void RequestStop();
  // RequestStop and Wait.
  absl::Status Stop();
  // Waits until the running handlers have returned and the server has received
  // their settlements. OK after a stop; otherwise the error that ended the
  // worker, or that prevented settlements within stop_timeout.
  absl::Status Wait();

  GroupWorkerCounters counters() const;

 private:
  class State;

  std::unique_ptr<State> state_;  // Never null.
};

}  // namespace timecache

#endif  // TIMECACHE_GROUP_WORKER_H_
