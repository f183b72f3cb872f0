// The settlements of a GroupWorker, on their way to the server. Internal to the
// client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_EVENTS_SETTLER_H_
#define TIMECACHED_CLIENT_CPP_SRC_EVENTS_SETTLER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "server/base/steady_cond_var.h"
#include "timecache/client.h"
#include "timecache/settle.h"

namespace timecache {

struct SettlerOptions {
  std::string group;
  size_t batch_max = 1;    // 1 to kMaxSettlements.
  size_t pending_max = 1;  // More wait in Add.
  absl::Duration linger;
  absl::Duration min_pause;  // Between attempts.
  absl::Duration max_pause;
};

struct HeldEvent;

// A settlement, and what the worker knows of its event.
struct Owed {
  Settlement settlement;
  std::shared_ptr<HeldEvent> held;
};

// Sends settlements in batches, in their order, on a thread of its own; retries
// while the connection is lost or the server has no room. Exactly one of
// on_result and on_dropped is called for each.
//
// Thread-safe. The callbacks run on that thread, one at a time, and may not
// call this. Memory is bounded by pending_max and one batch.
class Settler {
 public:
  struct Callbacks {
    // The server's result. May return another settlement to send instead.
    std::function<std::optional<Owed>(const Owed& owed,
                                      const absl::Status& status)>
        on_result;
    // It has not reached the server, or that is unknown.
    std::function<void(const Owed& owed)> on_dropped;
    // A call that failed as a whole.
    std::function<void(const absl::Status& why)> on_error;
  };

  // In the client's namespace.
  Settler(const Client& client, SettlerOptions options, Callbacks callbacks);
  // Finishes without a time-out, unless Finish was called.
  ~Settler();

  Settler(const Settler&) = delete;
  Settler& operator=(const Settler&) = delete;

  // Waits for room. Not after Finish.
  void Add(const Owed& owed);
  // False: there is no room, or it finishes; no callback is called.
  bool TryAdd(const Owed& owed);
  // Sends the added settlements without lingering.
  void Hurry();
  // Sends the added settlements, and waits for the end; after `timeout` there
  // are no retries. Returns why settlements were then dropped.
  absl::Status Finish(absl::Duration timeout);

 private:
  void Append(const Owed& owed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Run();
  std::vector<Owed> Next();
  void Send(const std::vector<Owed>& batch);
  void Report(const std::vector<Owed>& batch,
              const std::vector<SettleResult>& results, bool is_repeated);
  bool Pause(absl::Duration pause);

  // Constant after construction.
  const Client client_;
  const SettlerOptions options_;
  const Callbacks callbacks_;

  absl::Mutex mu_;
  SteadyCondVar changed_;  // Any of what follows.
  std::deque<Owed> pending_ ABSL_GUARDED_BY(mu_);
  SteadyTime due_at_ ABSL_GUARDED_BY(mu_);  // Of the first one.
  bool hurry_ ABSL_GUARDED_BY(mu_) = false;
  bool finishing_ ABSL_GUARDED_BY(mu_) = false;
  bool giving_up_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status given_up_ ABSL_GUARDED_BY(mu_);  // The last error.

  std::thread thread_;  // Last: it works with the rest.
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_EVENTS_SETTLER_H_
