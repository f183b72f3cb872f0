#include "server/service/connection/peer_guard.h"

#include <chrono>

#include "server/service/connection/peer_address.h"

namespace timecache::server {

bool PeerGuard::IsGone(const grpc::ServerContextBase& context) {
  const Time now = std::chrono::steady_clock::now();
  return pacer_->AnyBusy(now) && IsGone(context.peer(), now);
}

void PeerGuard::CountAnonymous(const grpc::ServerContextBase& context) {
  CountAnonymous(context.peer(), std::chrono::steady_clock::now());
}

void PeerGuard::CountAnonymousBytes(const grpc::ServerContextBase& context,
                                    size_t bytes) {
  CountAnonymousBytes(context.peer(), bytes, std::chrono::steady_clock::now());
}

void PeerGuard::CountKnown(const grpc::ServerContextBase& context) {
  const Time until = pacer_->probation_until();
  // Most calls come where none is, and need not look at the clock.
  if (until != Time() && std::chrono::steady_clock::now() < until) {
    CountKnown(context.peer());
  }
}

void PeerGuard::CountKnown(absl::string_view peer) {
  if (pacer_->Prove(PeerEndpoint::OfGrpcPeer(peer))) wake_();
}

bool PeerGuard::IsGone(absl::string_view peer, Time now) {
  const PeerEndpoint endpoint = PeerEndpoint::OfGrpcPeer(peer);
  const PeerAddress from = endpoint.address();
  if (!pacer_->IsBusy(from, now) || !connections_->IsGone(endpoint))
    return false;
  pacer_->Charge(from, kCallCost, now);
  dropped_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void PeerGuard::CountAnonymousBytes(absl::string_view peer, size_t bytes,
                                    Time now) {
  const double connections = static_cast<double>(bytes) / kBytesOfConnection;
  CountAnonymous(peer, connections / kCallCost, now);
}

void PeerGuard::CountAnonymous(absl::string_view peer, double calls, Time now) {
  const PeerEndpoint endpoint = PeerEndpoint::OfGrpcPeer(peer);
  if (pacer_->CountAnonymousCalls(endpoint.address(), calls, kCallCost, now)) {
    return;
  }
  connections_->Cut(endpoint);
  cut_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace timecache::server
