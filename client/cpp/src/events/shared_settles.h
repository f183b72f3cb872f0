// The plain calls of a client that settle events. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_EVENTS_SHARED_SETTLES_H_
#define TIMECACHED_CLIENT_CPP_SRC_EVENTS_SHARED_SETTLES_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "timecache/call_options.h"
#include "timecache/types.h"
#include "timecache/v1/watch.pb.h"

namespace timecache {

// Collects the calls for a group that are made while a request of the group is
// under way: they go with the next one, as far as kMaxSettlements and
// kSharedCallBytesMax allow. No thread is added: the caller with the latest
// deadline sends for all. Thread-safe.
class SharedSettles {
 public:
  using Response = absl::StatusOr<v1::SettleExpiredResponse>;
  // Sends until the caller's deadline; a response has all results.
  using Send = absl::FunctionRef<Response(const v1::SettleExpiredRequest&)>;

  // Whether the call may go with others. One that can be cancelled may not: it
  // could not send for others.
  static bool Takes(const ClientOptions& client, const CallOptions& call,
                    const v1::SettleExpiredRequest& request);

  // The response to the request, by `send` of this or of another caller.
  Response Do(v1::SettleExpiredRequest request, SteadyTime deadline, Send send);

  // Calls for the group that wait for the next request. For tests.
  size_t Queued(const std::string& ns, const std::string& group) const;

 private:
  struct Waiting;
  using Queue = std::deque<std::shared_ptr<Waiting>>;
  using Group = std::pair<std::string, std::string>;  // And its namespace.

  Response Await(const Group& group, Waiting& own, Send send);
  void Lead(const Group& group, Waiting& own, Send send);
  // After each request of a group.
  void Next(const Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  // Of the groups with a request under way.
  absl::flat_hash_map<Group, Queue> queues_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_EVENTS_SHARED_SETTLES_H_
