// The state that a client's copies share. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_

#include <memory>
#include <utility>

#include "client/cpp/src/data/requests.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/connection.h"
#include "grpcpp/channel.h"
#include "timecache/client.h"
#include "timecache/v1/data.grpc.pb.h"
#include "timecache/v1/groups.grpc.pb.h"
#include "timecache/v1/namespaces.grpc.pb.h"
#include "timecache/v1/server.grpc.pb.h"

namespace timecache {

// Thread-safe.
struct Client::Core {
  explicit Core(std::shared_ptr<grpc::Channel> to)
      : channel(std::move(to)),
        connection(channel),
        cache(channel),
        namespaces(channel),
        groups(channel),
        server(channel) {}

  // The result of a call, in the client's terms.
  template <typename DataCall>
  auto Send(const ClientOptions& options, const DataCall& kind,
            const typename DataCall::Request& request, const CallOptions& call)
      -> absl::StatusOr<
          decltype(TakeAnswer(std::declval<typename DataCall::Response&>()))> {
    auto response = Call(connection, cache, kind.method, request,
                         CallPlan(options, call, kind.repeat));
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

  const std::shared_ptr<grpc::Channel> channel;
  Connection connection;
  v1::TimeCacheService::Stub cache;
  v1::NamespaceService::Stub namespaces;
  v1::GroupService::Stub groups;
  v1::ServerService::Stub server;
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_
