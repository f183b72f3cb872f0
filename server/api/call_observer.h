// Observers of calls: metrics, and the log of slow and denied ones.

#ifndef TIMECACHED_SERVER_API_CALL_OBSERVER_H_
#define TIMECACHED_SERVER_API_CALL_OBSERVER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"
#include "server/api/access.h"
#include "server/api/method.h"

namespace timecache::server {

// Details of a call for people. Computed on each request. Thread-compatible:
// for the observer, during its call.
class CallDetails {
 public:
  virtual ~CallDetails() = default;
  // From the client's metadata x-request-id, or generated.
  virtual std::string RequestId() const = 0;
  // The client's W3C traceparent; empty without a valid one.
  virtual std::string TraceParent() const = 0;
  // "ipv4:127.0.0.1:50000"
  virtual std::string Peer() const = 0;
  // "anonymous" without rules; empty for an unknown caller.
  virtual std::string Principal() const = 0;
  // The last namespace of the call; empty for none. A name that is too long is
  // cut.
  virtual absl::string_view Namespace() const = 0;
  // Operations on keys in it; 0: it is about something else.
  virtual uint64_t Operations() const { return 0; }
};

// A call that has ended.
struct CallRecord {
  const Method& method;
  grpc::StatusCode code;
  // Its status' message.
  absl::string_view message;
  // Since the handler began. A stream's is its whole life.
  int64_t took_us;
  const CallDetails& details;
};

// A permission that the caller lacked. The call need not fail: a batch
// continues with its other operations.
struct CallDenial {
  const Method& method;
  // UNAUTHENTICATED or PERMISSION_DENIED, with a reason (engine/error.h).
  const absl::Status& status;
  // Empty for an unknown caller.
  absl::string_view name;
  Verbs verbs;
  const CallDetails& details;
};

// A refusal by a limit: a call that ended with RESOURCE_EXHAUSTED, or
// operations of a batch that did; or a watch that ended because its resume
// point was trimmed.
struct CallRefusal {
  const Method& method;
  // With a reason (engine/error.h).
  const absl::Status& status;
  // 1 for the call itself.
  uint64_t operations;
  const CallDetails& details;
};

// Events that a watch lost; those of groups are not included.
struct CallLoss {
  const Method& method;
  absl::string_view name;
  uint64_t events;
  const CallDetails& details;
};

// Thread-safe. Called on the calls' own threads: must be quick and must not
// block. Arguments are valid during the call.
class CallObserver {
 public:
  virtual ~CallObserver() = default;

  // A handler has started; one for each OnHandled.
  virtual void OnStarted(const Method& method) = 0;
  virtual void OnHandled(const CallRecord& record) = 0;
  // So many plain calls, alike, came in one request of a stream and have ended.
  // There is neither an OnStarted nor an OnHandled for them.
  virtual void OnCalls(const CallRecord& /*record*/, uint64_t /*calls*/) {}
  virtual void OnDenied(const CallDenial& denial) = 0;
  virtual void OnRefused(const CallRefusal& /*refusal*/) {}
  virtual void OnLost(const CallLoss& /*loss*/) {}

  // A message of a stream, either way. Not called for unary calls: each has
  // received one, and sent one if it ended with OK.
  virtual void OnReceived(const Method& method) = 0;
  virtual void OnSent(const Method& method) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_API_CALL_OBSERVER_H_
