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
#include "client/cpp/src/shared/call_stream.h"
#include "timecache/call_options.h"
#include "timecache/types.h"

namespace timecache {

// Most streams of a client for calls that block, and of those that do not: the
// longest idle is closed for another one.
inline constexpr size_t kSharedStreamsMax = 64;

// Thread-safe. Of calls that do not block a thread runs all callbacks; it starts
// with the first of them.
class SharedCalls {
 public:
  // `endpoints` outlives it.
  explicit SharedCalls(Endpoints& endpoints);
  // No call may be under way.
  ~SharedCalls();

  SharedCalls(const SharedCalls&) = delete;
  SharedCalls& operator=(const SharedCalls&) = delete;

  // Whether the call is to go by a stream; moves into the operation what its
  // metadata says.
  bool Takes(const ClientOptions& client, const CallOptions& call,
             SharedCall& shared) const;

  // All attempts of a call, by streams as far as they go, else by `unary`.
  // `answered`: the answer is the SharedCall's.
  absl::Status Do(const CallPlan& plan, const std::string& ns,
                  SharedCall& shared, UnaryAttempt unary, bool& answered);

  // The stream of the namespace; null if all that there may be are in use.
  std::shared_ptr<CallStream> Find(const std::string& ns, bool is_async);

  // How an attempt ended that a stream has ended. Nothing: the call has to go by
  // its own RPC.
  std::optional<absl::Status> Take(SharedCall& shared, const CallPlan& plan);

 private:
  class Driver;
  using Streams = absl::flat_hash_map<std::string, std::shared_ptr<CallStream>>;

  // Ends the longest idle one. False: all are in use.
  static bool Evict(Streams& streams);

  Endpoints& endpoints_;
  std::atomic<bool> is_off_{false};  // The server or the channel cannot.
  absl::Mutex mu_;
  Streams blocking_ ABSL_GUARDED_BY(mu_);
  Streams driven_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Driver> driver_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_SHARED_SHARED_CALLS_H_
