// The state that a client's copies share. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_

#include <memory>
#include <utility>

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

  const std::shared_ptr<grpc::Channel> channel;
  Connection connection;
  v1::TimeCacheService::Stub cache;
  v1::NamespaceService::Stub namespaces;
  v1::GroupService::Stub groups;
  v1::ServerService::Stub server;
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_CLIENT_CORE_H_
