// The state that a client's copies share. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_

#include <memory>
#include <utility>

#include "client/cpp/src/data/requests.h"
#include "client/cpp/src/events/shared_settles.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/endpoints.h"
#include "client/cpp/src/shared/call_stream.h"
#include "client/cpp/src/shared/shared_calls.h"
#include "grpcpp/client_context.h"
#include "timecache/client.h"

namespace timecache {

// Thread-safe.
struct Client::Core {
  template <typename... Arguments>
  explicit Core(Arguments&&... arguments)
      : endpoints(std::forward<Arguments>(arguments)...) {}

  static const std::shared_ptr<Core>& Of(const Client& client) {
    return client.core_;
  }
  // The same client with other options.
  static Client With(const Client& client, ClientOptions options) {
    return Client(client.core_, std::move(options));
  }

  // The result of a call, in the client's terms.
  template <typename DataCall>
  auto Send(const ClientOptions& options, const DataCall& kind,
            typename DataCall::Request request, const CallOptions& call)
      -> absl::StatusOr<
          decltype(TakeAnswer(std::declval<typename DataCall::Response&>()))> {
    const Repeat repeat = MakeRepeatable(kind, options, request);
    auto response = Call(endpoints, &Endpoint::cache, kind.method, request,
                         CallPlan(options, call, repeat));
    if (!response.ok()) return response.status();
    return TakeAnswer(*response);
  }
  // The same of an operation, which goes with others where it can.
  template <typename DataCall>
  auto Apply(const ClientOptions& options, const DataCall& kind,
             Operation operation, const CallOptions& call)
      -> absl::StatusOr<
          decltype(TakeAnswer(std::declval<typename DataCall::Response&>()))> {
    SharedCall shared;
    shared.operation = std::move(operation).proto();
    auto& request = *(shared.operation.get()->*kind.in_operation)();
    const Repeat repeat = MakeRepeatable(kind, options, request);
    const CallPlan plan(options, call, repeat);
    typename DataCall::Response response;
    const auto unary = [&](Endpoint& endpoint, grpc::ClientContext& context) {
      request.set_namespace_(options.default_namespace);
      return (endpoint.cache.*kind.method)(&context, request, &response);
    };
    bool is_shared = shared_calls.Takes(options, call, shared);
    absl::Status status = is_shared
                              ? shared_calls.Do(plan, options.default_namespace,
                                                shared, unary, is_shared)
                              : Attempt(endpoints, plan, unary);
    if (!status.ok()) return status;
    if (!is_shared) return TakeAnswer(response);
    const auto answer = ResponseIn(kind, request, shared.answer);
    if (!answer.ok()) return answer.status();
    return TakeAnswer(**answer);
  }

  Endpoints endpoints;
  SharedCalls shared_calls{endpoints};
  SharedSettles shared_settles;
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_
