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

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "timecache/client.h"
#include "timecache/export.h"
#include "timecache/group_worker_types.h"
#include "timecache/settle.h"
#include "timecache/watch_types.h"

namespace timecache {

// A member of a consumer group that calls a handler for each event it receives,
// on threads of its own, and settles the event as the handler returns.
//
// Delivery is at least once. An event is delivered again, perhaps to another
// worker, when its handler returned kNack or threw, and when the connection
// broke before it was settled. A handler may take longer than the group's
// ack_timeout: until it has returned the worker sends a kExtend each third of
// that time, for events that wait for a handler, too (see extend_max). Events
// of one key are delivered one after the other, the later when the earlier is
// settled; only an event that timed out or whose connection broke can be with
// two workers at once. Within one worker an event is never with two handlers at
// once.
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
// counters. Has threads + 3 threads.
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
