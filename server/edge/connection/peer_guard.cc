#include "server/edge/connection/peer_guard.h"

#include <chrono>

#include "server/edge/connection/peer_address.h"

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

void PeerGuard::CountKnown(const grpc::ServerContextBase& context,
                           bool has_credentials) {
  const Time until = pacer_->probation_until();
  // Most calls arrive while there is none, and need not read the clock.
  if (unproven_->any() ||
      (until != Time() && std::chrono::steady_clock::now() < until)) {
    CountKnown(context.peer(), has_credentials);
  }
}

void PeerGuard::CountKnown(absl::string_view peer, bool has_credentials) {
  const PeerEndpoint endpoint = PeerEndpoint::OfGrpcPeer(peer);
  unproven_->Prove(endpoint);
  const bool known = has_credentials || endpoint.address().IsPrivate();
  if (pacer_->Prove(endpoint, known)) wake_();
}

bool PeerGuard::IsGone(absl::string_view peer, Time now) {
  const PeerEndpoint endpoint = PeerEndpoint::OfGrpcPeer(peer);
  const PeerAddress from = endpoint.address();
  if (!pacer_->IsBusy(from, now) || !connections_->IsGone(endpoint)) {
    return false;
  }
  pacer_->Charge(from, ConnectionPacer::kCallCost, now);
  dropped_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void PeerGuard::CountAnonymous(absl::string_view peer, Time now) {
  const PeerEndpoint endpoint = PeerEndpoint::OfGrpcPeer(peer);
  unproven_->CountAnswered(endpoint, UnprovenBytes::kCallBytes);
  Count(endpoint, 1, now);
}

void PeerGuard::CountAnonymousBytes(absl::string_view peer, size_t bytes,
                                    Time now) {
  const PeerEndpoint endpoint = PeerEndpoint::OfGrpcPeer(peer);
  const auto answered = static_cast<int64_t>(bytes);
  unproven_->CountAnswered(endpoint, answered);
  if (bytes > kMaxFreeRequestBytes) Count(endpoint, CallsOf(answered), now);
}

void PeerGuard::CutUnproven(const PeerEndpoint& peer, int64_t bytes, Time now) {
  pacer_->CountAnonymousCalls(peer.address(), CallsOf(bytes), now);
  Cut(peer);
}

void PeerGuard::Count(const PeerEndpoint& peer, double calls, Time now) {
  if (!pacer_->CountAnonymousCalls(peer.address(), calls, now)) Cut(peer);
}

void PeerGuard::Cut(const PeerEndpoint& peer) {
  connections_->Cut(peer);
  cut_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace timecache::server
