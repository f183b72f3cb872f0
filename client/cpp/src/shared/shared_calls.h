// The plain calls of a client that share streams. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_SHARED_SHARED_CALLS_H_
#define TIMECACHED_CLIENT_CPP_SRC_SHARED_SHARED_CALLS_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/endpoints.h"
#include "client/cpp/src/shared/call_driver.h"
#include "client/cpp/src/shared/call_stream.h"
#include "timecache/call_options.h"
#include "timecache/types.h"

namespace timecache {

// Most streams to a server for calls that block, and of those that do not: the
// longest idle is closed for another one.
inline constexpr size_t kSharedStreamsMax = 64;

// Those to one server, or to that of several which is called now. Thread-safe. Of
// calls that do not block the driver's thread runs all callbacks.
class SharedCalls {
 public:
  // Both outlive it, `endpoints` its calls.
  SharedCalls(Endpoints& endpoints, LazyCallDriver& driver)
      : endpoints_(endpoints), driver_(driver) {}
  // No call may be under way.
  ~SharedCalls();

  SharedCalls(const SharedCalls&) = delete;
  SharedCalls& operator=(const SharedCalls&) = delete;

  // Whether the call may go by a stream; moves into the operation what its
  // metadata says.
  static bool Takes(const ClientOptions& client, const CallOptions& call,
                    SharedCall& shared);

  // An attempt of a call that Takes, by a stream, else by `unary`. `is_shared`: it
  // may go by a stream; false once it has to go by its own RPC. After a success
  // the answer is the SharedCall's if it still is true.
  Attempted AttemptOnce(const CallPlan& plan, const std::string& ns,
                        SharedCall& shared, UnaryAttempt unary,
                        bool& is_shared);

  // The stream of the namespace; null if there can be none, or all that there may
  // be are in use.
  std::shared_ptr<CallStream> Find(const std::string& ns, bool is_async);

  // How an attempt ended that a stream has ended. Nothing: the call has to go by
  // its own RPC.
  std::optional<absl::Status> Take(SharedCall& shared, const CallPlan& plan);

 private:
  using Streams = absl::flat_hash_map<std::string, std::shared_ptr<CallStream>>;

  // Ends the longest idle one. False: all are in use.
  static bool Evict(Streams& streams);

  Endpoints& endpoints_;
  LazyCallDriver& driver_;
  std::atomic<bool> is_off_{false};  // The server or the channel cannot.
  absl::Mutex mu_;
  Streams blocking_ ABSL_GUARDED_BY(mu_);
  Streams driven_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_SHARED_SHARED_CALLS_H_
