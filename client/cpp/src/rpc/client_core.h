// The state that a client's copies share. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "client/cpp/src/data/requests.h"
#include "client/cpp/src/events/shared_settles.h"
#include "client/cpp/src/owners/owner_finder.h"
#include "client/cpp/src/owners/route.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/endpoints.h"
#include "client/cpp/src/shared/call_driver.h"
#include "client/cpp/src/shared/call_stream.h"
#include "client/cpp/src/shared/shared_calls.h"
#include "grpcpp/client_context.h"
#include "server/base/key_partition.h"
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
    Route route = RouteTo(options, request.key());
    typename DataCall::Response response;
    const auto unary = [&](Endpoint& endpoint, grpc::ClientContext& context) {
      request.set_namespace_(options.default_namespace);
      return (endpoint.cache.*kind.method)(&context, request, &response);
    };
    bool is_shared = SharedCalls::Takes(options, call, shared);
    absl::Status status = AttemptEach(route, plan, [&](const Destination& to) {
      return to.shared_calls->AttemptOnce(plan, options.default_namespace,
                                          shared, unary, is_shared);
    });
    if (!status.ok()) return status;
    if (!is_shared) return TakeAnswer(response);
    const auto answer = ResponseIn(kind, request, shared.answer);
    if (!answer.ok()) return answer.status();
    return TakeAnswer(**answer);
  }

  Route RouteHome() { return Route({&endpoints, &shared_calls}); }
  bool IsRouted(const ClientOptions& options) const {
    return options.owner_routing && owners.CanRoute();
  }
  // Where calls on the key go. The options outlive it.
  Route RouteTo(const ClientOptions& options, const std::string& key) {
    if (!IsRouted(options)) return RouteHome();
    return RouteToOwner(options, server::PartitionHash(key));
  }
  // `hash`: the key's PartitionHash.
  Route RouteToOwner(const ClientOptions& options, uint32_t hash) {
    return Route({&endpoints, &shared_calls}, owners, options.default_namespace,
                 hash);
  }

  Endpoints endpoints;
  LazyCallDriver call_driver;
  SharedCalls shared_calls{endpoints, call_driver};
  OwnerFinder owners{endpoints, call_driver};
  SharedSettles shared_settles;
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_
