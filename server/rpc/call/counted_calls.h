// Counts unary calls on their connections.

#ifndef TIMECACHED_SERVER_RPC_CALL_COUNTED_CALLS_H_
#define TIMECACHED_SERVER_RPC_CALL_COUNTED_CALLS_H_

#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/message_allocator.h"
#include "server/api/method.h"
#include "server/edge/response/response_account.h"
#include "server/edge/response/response_ledger.h"

namespace timecache::server {

// Request and response of one unary call. gRPC creates it before the handler is
// called, and releases it once the response is being sent or the client is
// gone: the only notification of this without a reactor of the call's own.
class CountedCall final
    : public grpc::MessageHolder<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit CountedCall(ResponseLedger* ledger) : ledger_(ledger) {
    set_request(&request_);
    set_response(&response_);
  }

  // The holder of a call whose service has CountedCalls; otherwise null: gRPC
  // then has a holder of its own.
  static CountedCall* Of(grpc::CallbackServerContext* context) {
    return dynamic_cast<CountedCall*>(context->GetRpcAllocatorState());
  }

  // Starts to count it, and returns its connection's account.
  ResponseAccount* Begin(const grpc::CallbackServerContext& context) {
    account_ = ledger_->Find(context.peer());
    account_->BeginCall();
    return account_.get();
  }
  // The call finishes now. The request is not kept until the client reads the
  // response.
  void Answer() {
    request_.Clear();
    account_->AnswerCall();
    answered_ = true;
  }
  void Release() override {
    if (account_) account_->EndCall(answered_);
    delete this;
  }

 private:
  ResponseLedger* const ledger_;
  ResponseAccountRef account_;
  bool answered_ = false;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
};

// Thread-safe. Costs an allocation for each call, in place of gRPC's own.
class CountedCalls final
    : public grpc::MessageAllocator<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // `ledger` is not owned.
  explicit CountedCalls(ResponseLedger* ledger) : ledger_(ledger) {}

  grpc::MessageHolder<grpc::ByteBuffer, grpc::ByteBuffer>* AllocateMessages()
      override {
    return new CountedCall(ledger_);
  }

 private:
  ResponseLedger* const ledger_;
};

using UnaryHandler =
    grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>;
using WriteHandler =
    grpc::internal::CallbackServerStreamingHandler<grpc::ByteBuffer,
                                                   grpc::ByteBuffer>;
using BidiHandler =
    grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>;

// The number in its service of the method with this full name.
int MethodNumber(const std::string& full_name);

// A service whose methods are raw: their requests are parsed by its handlers,
// so that errors in them can be described. `Base` is the generated one.
template <typename Base>
class RawService : public Base {
 protected:
  using Bytes = grpc::ByteBuffer;
  using Context = grpc::CallbackServerContext;

  // Unary calls are counted by `counted`, which must outlive the server; null:
  // they are not.
  explicit RawService(CountedCalls* counted) : counted_(counted) {}

  // In the constructor: `handle` answers the calls of the method with this full
  // name, as a gRPC Handler of its kind.
  template <typename Handler, typename Function>
  void Serve(const std::string& full_name, Function handle) {
    auto* const handler = new Handler(std::move(handle));
    if constexpr (std::is_same_v<Handler, UnaryHandler>) {
      handler->SetMessageAllocator(counted_);
    }
    this->MarkMethodRawCallback(MethodNumber(full_name), handler);
  }
  template <typename Handler, typename Function>
  void Serve(const Method& method, Function handle) {
    Serve<Handler>(absl::StrCat(method.service, ".", method.name),
                   std::move(handle));
  }

 private:
  CountedCalls* const counted_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_COUNTED_CALLS_H_
