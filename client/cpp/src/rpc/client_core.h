// The state that a client's copies share. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_

#include <memory>
#include <utility>

#include "client/cpp/src/data/requests.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/endpoints.h"
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
  template <typename DataCall>
  auto Apply(const ClientOptions& options, const DataCall& kind,
             Operation operation, const CallOptions& call) {
    return Send(
        options, kind,
        RequestOf(kind, std::move(operation), options.default_namespace), call);
  }

  Endpoints endpoints;
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_
