// A unary call whose request is read here, and not by gRPC.

#ifndef TIMECACHED_SERVER_SERVICE_CALL_UNARY_CALL_H_
#define TIMECACHED_SERVER_SERVICE_CALL_UNARY_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "absl/status/status.h"
#include "server/service/call/call.h"
#include "server/service/call/counted_calls.h"
#include "server/service/call/request.h"

namespace timecache::server {

// The field that can make such a request too large; "": none can by itself.
template <typename Request>
constexpr absl::string_view LargeField() {
  if constexpr (requires(Request request) { request.value(); }) return "value";
  if constexpr (requires(Request request) { request.settlements(); }) {
    return "settlements";
  }
  return "";
}

// What a raw handler makes first thing, instead of a Call: the call, its
// request and its answer. It ends with Finish, once, on any thread:
//
//   UnaryCall<v1::SizeRequest, v1::SizeResponse> unary(
//       gate, methods::kSize, context, request, response);
//   absl::Status status = unary.Read();
//   if (status.ok()) status = unary.call().Authorize(...);
//   if (status.ok()) ...
//   return unary.Finish(status);
template <typename Request, typename Response>
class UnaryCall {
 public:
  // Nothing is owned; all must outlive Finish. `field_path` as Call::End's.
  UnaryCall(const CallGate& gate, const Method& method,
            grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
            grpc::ByteBuffer* answer, Call::FieldPath field_path = nullptr)
      : bytes_(bytes),
        answer_(answer),
        reactor_(context->DefaultReactor()),
        counted_(CountedCall::Of(context)),
        account_(counted_ == nullptr ? nullptr : counted_->Begin(*context)),
        field_path_(field_path),
        call_(gate, method, context, account_) {}

  // Makes the request good, or says what is wrong: to who is known, others are
  // told that they are not.
  absl::Status Read() {
    absl::Status status = call_.BeginRequest(bytes_->Length());
    if (!status.ok()) return status;
    status = ParseRequest(*bytes_, &request_, LargeField<Request>());
    if (status.ok()) return status;
    absl::Status known = call_.Identify();
    return known.ok() ? status : known;
  }

  Call& call() { return call_; }
  // What a handler returns that lets another thread Finish. gRPC gives it once.
  grpc::ServerUnaryReactor* reactor() const { return reactor_; }
  const Request& request() const { return request_; }
  // What it holds: as it came, and as it was read.
  size_t request_bytes() const { return 2 * bytes_->Length(); }
  Response& response() { return response_; }

  // The account of its connection, until Finish; null where none is kept.
  ResponseAccount* account() const { return account_; }
  // As ResponseAccount's: asked by calls that may answer with much, and that
  // cannot wait.
  absl::Status CheckShare() const {
    return account_ == nullptr ? absl::OkStatus() : account_->CheckShare();
  }

  // Returns what the handler returns.
  grpc::ServerUnaryReactor* Finish(const absl::Status& status) {
    if (status.ok()) *answer_ = ToBytes(response_, account_);
    if (counted_ != nullptr) counted_->Answer();
    grpc::ServerUnaryReactor* const reactor = reactor_;
    // From here on this may be gone.
    reactor->Finish(call_.End(status, field_path_));
    return reactor;
  }

 private:
  const grpc::ByteBuffer* const bytes_;
  grpc::ByteBuffer* const answer_;
  grpc::ServerUnaryReactor* const reactor_;
  CountedCall* const counted_;
  ResponseAccount* const account_;
  const Call::FieldPath field_path_;
  Call call_;
  Request request_;
  Response response_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_CALL_UNARY_CALL_H_
