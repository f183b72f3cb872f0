// The state and the threads of a GroupWorker. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_EVENTS_GROUP_WORKER_STATE_H_
#define TIMECACHED_CLIENT_CPP_SRC_EVENTS_GROUP_WORKER_STATE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
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
  static std::string EventText(absl::string_view key, uint64_t event_id,
                               uint32_t attempt);
  // `status` with what the worker knows of it before its message.
  static absl::Status About(const absl::Status& status, absl::string_view what);

  // An event that the worker holds, until the server has its settlement.
  struct Task {
    uint64_t number = 0;  // No other task has it.
    uint64_t version = 0;
    std::string key;
    SteadyTime arrived_at = {};
    // The newest delivery.
    uint32_t attempt = 0;
    uint32_t returns = 0;
    // Delivered again since it was last settled.
    bool again = false;
    // Its handler has returned: it is being settled.
    bool settling = false;
    // Settled by a kNack: the next delivery is handled again.
    bool nacked = false;
    // A kExtend is under way.
    bool extending = false;
    // It is extended no longer: the server has refused that, or it was for
    // extend_max.
    bool given_up = false;

    std::string Text(uint64_t event_id) const {
      return EventText(key, event_id, attempt);
    }

    // A new log may assign the ids of the old one to other events.
    bool Is(const ExpiredEvent& event) const {
      return version == event.version && key == event.key;
    }
  };
  struct Begun {
    uint64_t task = 0;
    ExpiredEvent event;
  };

  WatchOptions MakeWatchOptions();

  // The threads' functions.
  void Read();
  void Handle();
  void Extend();

  void Take(WatchBatch batch);
  void LoseUnbegun(const absl::Status& why);
  bool Begin(Begun& begun);
  Settle Run(const ExpiredEvent& event);
  void End(const Begun& begun, const Settle& how);
  void ExtendAll(SteadyTime since);
  void Extended(const Owed& owed, const absl::Status& status);
  bool IsDue(const Owed& owed);
  std::optional<Owed> Settled(const Owed& owed, const absl::Status& status);
  std::optional<Owed> Refused(const Owed& owed, const absl::Status& status);
  void Dropped(const Owed& owed);
  void ReportUnsettled(const Owed& owed, const absl::Status& status);
  void Report(const absl::Status& why);
  Task* Find(uint64_t event_id, uint64_t number)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Forget(uint64_t event_id, uint64_t number)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  const GroupWorkerOptions options_;
  const Handler handler_;
  const Client client_;  // Of settlements.

  mutable absl::Mutex mu_;
  // Not started.
  std::deque<Begun> queue_ ABSL_GUARDED_BY(mu_);
  // By event id. An event that is delivered again meanwhile is not handled
  // twice; if the id is reused for another event, that one takes its place, and
  // no settlement of the former is sent.
  absl::flat_hash_map<uint64_t, Task> tasks_ ABSL_GUARDED_BY(mu_);
  uint64_t last_task_ ABSL_GUARDED_BY(mu_) = 0;
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
