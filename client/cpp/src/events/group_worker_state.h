// The state and the threads of a GroupWorker. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_EVENTS_GROUP_WORKER_STATE_H_
#define TIMECACHED_CLIENT_CPP_SRC_EVENTS_GROUP_WORKER_STATE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/events/settler.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "server/base/steady_cond_var.h"
#include "timecache/group_worker.h"
#include "timecache/watcher.h"

namespace timecache {

// An event that the worker holds, until the server has its settlement. The
// worker's mutex guards it.
struct HeldEvent {
  // With the attempt, returns and token of the newest delivery; without the
  // value once the handler has it.
  ExpiredEvent event;
  SteadyTime arrived_at = {};
  // Its handler has returned: it is being settled.
  bool settling = false;
  // Settled by a kNack: the next delivery is handled again.
  bool nacked = false;
  // A kExtend is under way.
  bool extending = false;
  // It is extended no longer: the server has refused that, or it was for
  // extend_max.
  bool given_up = false;
};

// A thread reads the stream and fills the queue, which the handlers' threads
// empty; the settler and what extends events have one each. The stream stays open until
// the last event is settled: when it ends the server delivers unsettled events
// again.
class GroupWorker::State {
 public:
  State(const Client& client, GroupWorkerOptions options, Handler handler);
  ~State();

  void RequestStop();
  absl::Status Wait();
  GroupWorkerCounters counters() const;

 private:
  static std::string EventText(const ExpiredEvent& event);
  // `status` with what the worker knows of it before its message.
  static absl::Status About(const absl::Status& status, absl::string_view what);

  // Version and key: an event keeps them in every delivery.
  using EventName = std::pair<uint64_t, std::string>;
  using Held = std::shared_ptr<HeldEvent>;

  WatchOptions MakeWatchOptions();

  // The threads' functions.
  void Read();
  void Handle();
  void Extend();

  void Take(WatchBatch batch);
  void LoseUnbegun(const absl::Status& why);
  Held Begin(ExpiredEvent& event);
  Settle Run(const ExpiredEvent& event);
  void End(const Held& held, const Settle& how);
  void ExtendAll(SteadyTime since);
  void Extended(const Owed& owed, const absl::Status& status);
  std::optional<Owed> Settled(const Owed& owed, const absl::Status& status);
  std::optional<Owed> Refused(const Owed& owed, const absl::Status& status);
  void Dropped(const Owed& owed);
  void ReportUnsettled(const Owed& owed, const absl::Status& status);
  void Report(const absl::Status& why);
  static EventName NameOf(const ExpiredEvent& event) {
    return {event.version, event.key};
  }
  void Forget(const HeldEvent& held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  const GroupWorkerOptions options_;
  const Handler handler_;
  const Client client_;  // Of settlements.

  mutable absl::Mutex mu_;
  // Not started.
  std::deque<Held> queue_ ABSL_GUARDED_BY(mu_);
  // An event that is delivered again meanwhile is not handled twice.
  absl::flat_hash_map<EventName, Held> held_ ABSL_GUARDED_BY(mu_);
  int running_ ABSL_GUARDED_BY(mu_) = 0;  // Handlers.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // No event is this member's any more: the stream has ended for good.
  bool has_left_ ABSL_GUARDED_BY(mu_) = false;
  SteadyCondVar left_;
  int handlers_left_ ABSL_GUARDED_BY(mu_);  // Threads that have not ended.
  int threads_left_ ABSL_GUARDED_BY(mu_);   // Of these and the reader.
  absl::Status end_ ABSL_GUARDED_BY(mu_);
  GroupWorkerCounters counters_ ABSL_GUARDED_BY(mu_);

  absl::Mutex report_mu_ ABSL_ACQUIRED_BEFORE(mu_);  // One callback at a time.

  Watcher watcher_;
  Settler settler_;
  std::stop_source stop_extending_;
  std::vector<std::thread> threads_;
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_EVENTS_GROUP_WORKER_STATE_H_
