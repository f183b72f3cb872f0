// Times the kExtends of a GroupWorker. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_EVENTS_EXTENDER_H_
#define TIMECACHED_CLIENT_CPP_SRC_EVENTS_EXTENDER_H_

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "server/base/steady_cond_var.h"
#include "timecache/client.h"

namespace timecache {

// Calls back each third of the group's ack_timeout while the worker holds
// events, on a thread of its own. Reads the group's options as often, at most once a
// second, so that a change of the ack_timeout takes effect after a third of the
// former one. While they cannot be read it calls back each second.
//
// Thread-safe. An idle worker costs nothing.
class Extender {
 public:
  // Extends what the worker has held since `since` or longer. False: it holds
  // nothing.
  using Extend = std::function<bool(SteadyTime since)>;

  // In the client's namespace. Begins with the first Wake.
  Extender(const Client& client, std::string group, Extend extend);
  // Stops.
  ~Extender();

  Extender(const Extender&) = delete;
  Extender& operator=(const Extender&) = delete;

  // The worker holds something.
  void Wake();
  // From now on `extend` is not called, but a call may be under way. Does not
  // wait.
  void Stop();

 private:
  void Run();
  bool AwaitWake();
  // How long to wait now.
  absl::Duration Interval();
  // False: stopped.
  bool Sleep(absl::Duration duration);

  // Constant after construction.
  const Client client_;
  const std::string group_;
  const Extend extend_;

  // Touched by the thread alone.
  absl::Duration interval_;
  SteadyTime read_at_ = SteadyTime::min();

  std::stop_source stop_;
  absl::Mutex mu_;
  SteadyCondVar changed_;  // Either of what follows.
  bool woken_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;  // Last: it works with the rest.
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_EVENTS_EXTENDER_H_
