#include "server/peer/peer_stores.h"

#include <algorithm>

#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "server/peer/peer_call.h"

namespace timecache::server {
namespace {

// A node that hangs is left after these two. Its server permits a ping each 10 s.
constexpr int kKeepaliveMs = 15'000;
constexpr int kKeepaliveTimeoutMs = 10'000;

std::shared_ptr<grpc::Channel> Connect(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  const auto millis = [](std::chrono::milliseconds time) {
    return static_cast<int>(time.count());
  };
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   millis(PeerLink::kMinBackOff));
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   millis(PeerLink::kMaxBackOff));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   millis(PeerLink::kMaxBackOff));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A part of a frame, with what stands around the frames.
  arguments.SetMaxReceiveMessageSize(
      static_cast<int>(2 * kMaxPeerMessageBytes));
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace

Store* PeerStores::At(const std::string& address) {
  absl::MutexLock lock(&mu_);
  return PeerAt(address).store.get();
}

Store* PeerStores::WholeAt(const std::string& address) {
  absl::MutexLock lock(&mu_);
  return PeerAt(address).whole.get();
}

PeerStores::Peer& PeerStores::PeerAt(const std::string& address) {
  Peer& peer = peers_[address];
  if (peer.store == nullptr) {
    peer.link = std::make_shared<PeerLink>(
        PeerLink::Options{.address = address,
                          .make_channel =
                              [address, credentials = options_.credentials] {
                                return Connect(address, credentials);
                              },
                          .call_timeout = options_.call_timeout,
                          .authorization = options_.authorization,
                          .counts = &counts_});
    peer.store = std::make_unique<PeerStore>(peer.link);
    peer.whole =
        std::make_unique<PeerStore>(peer.link, PeerStore::Of::kWholeNamespaces);
    if (stopped_) {
      peer.link->Stop();
    } else {
      BeginTicks();
    }
  }
  return peer;
}

void PeerStores::After(std::chrono::milliseconds delay,
                       absl::AnyInvocable<void()> work) {
  {
    absl::MutexLock lock(&mu_);
    if (!stopped_) {
      later_.push_back(
          {std::chrono::steady_clock::now() + delay, std::move(work)});
      BeginTicks();
      return;
    }
  }
  work();
}

void PeerStores::BeginTicks() {
  if (ticks_ == nullptr) {
    ticks_ = housekeeping_.Every(kTick, [this] { Tick(); });
  }
}

void PeerStores::Tick() {
  std::vector<std::shared_ptr<PeerLink>> links;
  std::vector<Later> due;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [address, peer] : peers_) links.push_back(peer.link);
    const auto now = std::chrono::steady_clock::now();
    const auto rest = std::stable_partition(
        later_.begin(), later_.end(),
        [&](const Later& each) { return each.due > now; });
    std::move(rest, later_.end(), std::back_inserter(due));
    later_.erase(rest, later_.end());
  }
  for (const auto& link : links) link->Look();
  for (Later& each : due) each.work();
}

void PeerStores::Stop() {
  std::unique_ptr<Housekeeping::Task> ticks;
  std::vector<std::shared_ptr<PeerLink>> links;
  std::vector<Later> due;
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    ticks = std::move(ticks_);
    for (const auto& [address, peer] : peers_) links.push_back(peer.link);
  }
  ticks.reset();
  for (const auto& link : links) link->Stop();
  {
    absl::MutexLock lock(&mu_);
    due.swap(later_);
  }
  for (Later& each : due) each.work();
}

}  // namespace timecache::server
