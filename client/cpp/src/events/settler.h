// The settlements of a GroupWorker, on their way to the server. Internal to the
// client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "server/common/steady_cond_var.h"
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

// A settlement, and the worker's number of what it settles: an id alone may
// come again, for another event.
struct Owed {
  Settlement settlement;
  uint64_t task = 0;
};

// Sends settlements in batches, in their order, on a thread of its own; again
// while the connection is lost or the server has no room. Each is told to
// exactly one of on_result and on_dropped, unless is_due says no.
//
// Thread-safe. The callbacks come from that thread, one at a time, and may call
// nothing of this. Memory is bounded by pending_max and one batch.
class Settler {
 public:
  struct Callbacks {
    // Before each try. False: it is not sent, and not told of again.
    std::function<bool(const Owed& owed)> is_due;
    // The server's answer. May return another settlement to try in its place.
    std::function<std::optional<Owed>(const Owed& owed,
                                      const absl::Status& status)>
        on_result;
    // It has not reached the server, or nobody knows.
    std::function<void(const Owed& owed)> on_dropped;
    // A call that failed as a whole.
    std::function<void(const absl::Status& why)> on_error;
  };

  // In the client's namespace.
  Settler(const Client& client, SettlerOptions options, Callbacks callbacks);
  // Finishes without patience, if nobody has finished it.
  ~Settler();

  Settler(const Settler&) = delete;
  Settler& operator=(const Settler&) = delete;

  // Waits for room. Not after Finish.
  void Add(const Owed& owed);
  // What has been added need not linger.
  void Hurry();
  // Sends what has been added, and waits for the end; after `timeout`
  // nothing is tried a second time. Returns why settlements were dropped then.
  absl::Status Finish(absl::Duration timeout);

 private:
  void Run();
  std::vector<Owed> Next();
  void Send(std::vector<Owed> batch);
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
  absl::Status given_up_ ABSL_GUARDED_BY(mu_);  // What was the matter.

  std::thread thread_;  // Last: it works with the rest.
};

}  // namespace timecache
