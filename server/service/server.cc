#include "server/service/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace timecache {
namespace {

// The largest request: a value, a key and what is around them.
constexpr int kMaxRequestBytes =
    static_cast<int>(kMaxValueBytesLimit) + (64 << 10);

// From a shutdown on gRPC closes a connection as soon as its last call has
// ended, also where the client has not read all of it. What that client then
// sends to a closed socket makes the kernel drop the rest: so clients get this
// long to read what was written to their streams.
constexpr absl::Duration kLinger = absl::Seconds(1);

// The shortest time between two pings of an idle connection that is not
// refused.
constexpr int kMinPingIntervalMs = 10'000;

// Why nobody can listen on this address, as the system says it. gRPC only tells
// its own log.
std::string WhyNotListen(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) return "the path cannot be bound";
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (!host.empty() && host.front() == '[')
    host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.empty() ? nullptr : host.c_str(),
                  address.substr(colon + 1).c_str(), &hints, &found);
  if (error != 0) return gai_strerror(error);
  std::string why = "unknown reason";
  const int fd = socket(found->ai_family, SOCK_STREAM, 0);
  if (fd >= 0) {
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
        listen(fd, 1) != 0) {
      why = std::strerror(errno);
    }
    close(fd);
  }
  freeaddrinfo(found);
  return why;
}

}  // namespace

Server::Server(Registry* registry, Reaper* reaper, const Clock* clock,
               ServerOptions options)
    : options_(std::move(options)),
      store_(registry, clock),
      hub_(clock, options_.max_watchers),
      time_cache_service_(&store_, registry, &hub_, &streams_),
      namespace_service_(registry, clock, options_.observer) {
  if (options_.virtual_clock != nullptr) {
    virtual_clock_service_ = std::make_unique<VirtualClockService>(
        options_.virtual_clock, reaper, &hub_);
  }
}

Server::~Server() {
  if (server_ != nullptr) Drain(0);
}

absl::Status Server::Start() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  // Two servers on one port would each get half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  // A watch may be silent for long, and its client then pings to see whether
  // the connection lives: gRPC takes more than one in 5 min for an attack,
  // unless told.
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      kMinPingIntervalMs);
  builder.RegisterService(&time_cache_service_);
  builder.RegisterService(&namespace_service_);
  if (virtual_clock_service_ != nullptr) {
    builder.RegisterService(virtual_clock_service_.get());
  }
  std::vector<int> ports(options_.addresses.size(), 0);
  for (size_t i = 0; i < ports.size(); ++i) {
    builder.AddListeningPort(options_.addresses[i],
                             grpc::InsecureServerCredentials(), &ports[i]);
  }
  server_ = builder.BuildAndStart();
  for (size_t i = 0; i < ports.size(); ++i) {
    std::string address = options_.addresses[i];
    if (server_ == nullptr) {
      if (ports[i] != 0) continue;
      return absl::UnavailableError(absl::StrCat("cannot listen on ", address,
                                                 ": ", WhyNotListen(address)));
    }
    if (!absl::StartsWith(address, "unix:")) {
      address =
          absl::StrCat(address.substr(0, address.rfind(':')), ":", ports[i]);
    }
    addresses_.push_back(std::move(address));
  }
  if (server_ == nullptr)
    return absl::UnavailableError("cannot start the gRPC server");
  keep_awake_ = std::make_unique<KeepAwake>(server_.get());
  return absl::OkStatus();
}

bool Server::Drain(int64_t grace_us) {
  server_->GetHealthCheckService()->SetServingStatus(false);
  hub_.Drain();
  const size_t streams = streams_.Drain();
  keep_awake_.reset();
  const auto deadline =
      std::chrono::system_clock::now() + std::chrono::microseconds(grace_us);
  if (streams > 0) {
    const absl::Time until = absl::FromChrono(deadline);
    streams_.WaitForNone(until);
    absl::SleepFor(std::min(kLinger, until - absl::Now()));
  }
  server_->Shutdown(deadline);
  const bool in_time = std::chrono::system_clock::now() < deadline;
  server_->Wait();
  server_.reset();
  return in_time;
}

}  // namespace timecache
