// A unary call whose request is parsed here, and not by gRPC.

#ifndef TIMECACHED_SERVER_RPC_CALL_UNARY_CALL_H_
#define TIMECACHED_SERVER_RPC_CALL_UNARY_CALL_H_

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/call/call.h"
#include "server/rpc/call/counted_calls.h"
#include "server/rpc/call/request.h"

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

// Created first in a raw handler, instead of a Call: the call, its request and
// its response. It ends with Finish, once, on any thread:
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

  // Parses the request, or returns its error: to identified callers; others get
  // UNAUTHENTICATED.
  absl::Status Read() {
    request_bytes_ = bytes_->Length();
    absl::Status status = call_.BeginRequest(request_bytes_);
    if (!status.ok()) return status;
    status = TakeRequest(*bytes_, &request_, LargeField<Request>());
    if (status.ok()) return status;
    absl::Status known = call_.Identify();
    return known.ok() ? status : known;
  }

  Call& call() { return call_; }
  // The return value of a handler whose call another thread Finishes. gRPC
  // allows it once.
  grpc::ServerUnaryReactor* reactor() const { return reactor_; }
  const Request& request() const { return request_; }
  size_t request_bytes() const { return request_bytes_; }
  Response& response() { return response_; }

  // The account of its connection, until Finish; null if there is none.
  ResponseAccount* account() const { return account_; }
  // As ResponseAccount's: checked by calls with potentially large responses
  // that cannot wait.
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
  size_t request_bytes_ = 0;
  Response response_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_UNARY_CALL_H_
