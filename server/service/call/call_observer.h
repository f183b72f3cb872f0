// Who is told of calls: metrics, and the log of slow and denied ones.

#ifndef TIMECACHED_SERVER_SERVICE_CALL_CALL_OBSERVER_H_
#define TIMECACHED_SERVER_SERVICE_CALL_CALL_OBSERVER_H_

#include <grpcpp/support/status.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/service/call/access.h"
#include "server/service/call/method.h"

namespace timecache::server {

// What there is to say of a call to a person. Made only when it is asked for,
// each time anew. Thread-compatible: for whom the call is shown to, while it
// is.
class CallDetails {
 public:
  virtual ~CallDetails() = default;
  // Of the client's metadata x-request-id, or made.
  virtual std::string RequestId() const = 0;
  // The client's W3C traceparent; empty without a valid one.
  virtual std::string TraceParent() const = 0;
  // "ipv4:127.0.0.1:50000"
  virtual std::string Peer() const = 0;
  // "anonymous" where there are no rules; empty for one who is not known.
  virtual std::string Principal() const = 0;
  // The last one that it was about; empty for none. A name that is too long for
  // one is cut.
  virtual absl::string_view Namespace() const = 0;
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

// A right that somebody did not have. The call need not fail: a batch goes on
// with its other operations.
struct CallDenial {
  const Method& method;
  // UNAUTHENTICATED or PERMISSION_DENIED, with a reason (engine/error.h).
  const absl::Status& status;
  // Empty for one who is not known.
  absl::string_view name;
  Verbs verbs;
  const CallDetails& details;
};

// What a limit refused: a call that ended with RESOURCE_EXHAUSTED, or, while it
// goes on, operations of a batch that did; or a watch that ended because its
// resume point was trimmed.
struct CallRefusal {
  const Method& method;
  // With a reason (engine/error.h).
  const absl::Status& status;
  // 1 for the call itself.
  uint64_t operations;
  const CallDetails& details;
};

// Events that a watch was told it had lost; those of groups are not among them.
struct CallLoss {
  const Method& method;
  absl::string_view name;
  uint64_t events;
  const CallDetails& details;
};

// Thread-safe. Called in the calls' own threads: must be quick and must not
// block. What is passed is valid during the call.
class CallObserver {
 public:
  virtual ~CallObserver() = default;

  // A handler has begun, for each OnHandled to come.
  virtual void OnStarted(const Method& method) = 0;
  virtual void OnHandled(const CallRecord& record) = 0;
  virtual void OnDenied(const CallDenial& denial) = 0;
  virtual void OnRefused(const CallRefusal& /*refusal*/) {}
  virtual void OnLost(const CallLoss& /*loss*/) {}

  // A message of a stream, either way. Of unary calls nothing is said: each has
  // received one, and sent one if it ended with OK.
  virtual void OnReceived(const Method& method) = 0;
  virtual void OnSent(const Method& method) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_CALL_CALL_OBSERVER_H_
