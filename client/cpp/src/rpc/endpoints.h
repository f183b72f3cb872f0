// The servers that a client may call, and the one that it calls now. Internal
// to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_ENDPOINTS_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_ENDPOINTS_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/rpc/connection.h"
#include "grpcpp/channel.h"
#include "timecache/v1/data.grpc.pb.h"
#include "timecache/v1/groups.grpc.pb.h"
#include "timecache/v1/namespaces.grpc.pb.h"
#include "timecache/v1/server.grpc.pb.h"

namespace timecache {

// Pauses of a call, or of a stream's start, that got NOT_OWNER.
inline constexpr absl::Duration kMinNotOwnerPause = absl::Milliseconds(20);
inline constexpr absl::Duration kMaxNotOwnerPause = absl::Milliseconds(100);

// One server. Thread-safe.
struct Endpoint {
  Endpoint(std::string at, std::shared_ptr<grpc::Channel> to, bool has_others)
      : address(std::move(at)),
        channel(std::move(to)),
        connection(channel, has_others),
        cache(channel),
        namespaces(channel),
        groups(channel),
        server(channel) {}

  const std::string address;  // Empty: a channel of the caller's.
  const std::shared_ptr<grpc::Channel> channel;
  Connection connection;
  v1::TimeCacheService::Stub cache;
  v1::NamespaceService::Stub namespaces;
  v1::GroupService::Stub groups;
  v1::ServerService::Stub server;
};

// "a:7171, b:7171" in parts: one address as it is; of several each must be one,
// and they are kMaxAddresses at most. INVALID_ARGUMENT names the one that is
// not.
absl::StatusOr<std::vector<std::string>> SplitAddresses(std::string_view text);

// INVALID_ARGUMENT: gRPC cannot connect to it.
absl::Status CheckAddress(absl::string_view address);

// Whether a call failed because its node is not the owner.
bool IsNotOwner(const absl::Status& status);

// All endpoints of a client. One is current; calls and streams go there.
// Endpoints are made when they are first needed, and live as long as this.
// Thread-safe; current() is one atomic load.
class Endpoints {
 public:
  using ChannelMaker =
      std::function<absl::StatusOr<std::shared_ptr<grpc::Channel>>(
          const std::string& address)>;

  // Most owners that servers named and the caller did not: later ones are not
  // called.
  static constexpr size_t kMaxOthers = 16;

  // One, over a channel of the caller's.
  explicit Endpoints(std::shared_ptr<grpc::Channel> channel);
  // One for each address, of which `first` leads to the first. `error`: what
  // each call is to end with, as the addresses are wrong.
  Endpoints(std::vector<std::string> addresses,
            std::shared_ptr<grpc::Channel> first, ChannelMaker make_channel,
            absl::Status error = absl::OkStatus());

  const absl::Status& error() const { return error_; }
  // Null: there are no channels but the caller's.
  const ChannelMaker& make_channel() const { return make_channel_; }
  // How many addresses the caller gave.
  size_t size() const { return listed_.size(); }
  Endpoint& current() const {
    return *current_.load(std::memory_order_acquire);
  }

  // After a call or stream on `from` has ended with `why`: makes the named
  // owner current, or the next address, if `why` says that another may do
  // better and `from` still is current.
  void MoveOn(const Endpoint& from, const absl::Status& why);

 private:
  struct Listed {
    std::string address;
    std::unique_ptr<Endpoint> endpoint;
  };

  Endpoint* OwnerAt(const std::string& address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Endpoint* At(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Status error_;
  const ChannelMaker make_channel_;

  absl::Mutex mu_;
  std::vector<Listed> listed_;  // Its size is constant.
  std::vector<std::unique_ptr<Endpoint>> others_ ABSL_GUARDED_BY(mu_);
  // Of the listed one that was current last.
  size_t index_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<Endpoint*> current_;
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_ENDPOINTS_H_
