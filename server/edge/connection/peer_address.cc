#include "server/edge/connection/peer_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace timecache::server {

PeerEndpoint::PeerEndpoint(bool is_ipv4, const void* bytes, uint16_t port)
    : family_(is_ipv4 ? AF_INET : AF_INET6), port_(port) {
  constexpr size_t kMappedAt = sizeof(in6_addr) - sizeof(in_addr);
  std::memcpy(bytes_.data(), bytes, is_ipv4 ? sizeof(in_addr) : bytes_.size());
  in6_addr ipv6;
  std::memcpy(&ipv6, bytes_.data(), sizeof(ipv6));
  if (is_ipv4 || !IN6_IS_ADDR_V4MAPPED(&ipv6)) return;
  family_ = AF_INET;
  bytes_ = {};
  std::memcpy(bytes_.data(), ipv6.s6_addr + kMappedAt, sizeof(in_addr));
}

PeerEndpoint PeerEndpoint::Of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(&address);
    return {true, &ipv4->sin_addr, ntohs(ipv4->sin_port)};
  }
  if (address.ss_family == AF_INET6) {
    const auto* ipv6 = reinterpret_cast<const sockaddr_in6*>(&address);
    return {false, &ipv6->sin6_addr, ntohs(ipv6->sin6_port)};
  }
  return {};
}

PeerEndpoint PeerEndpoint::OfGrpcPeer(absl::string_view peer) {
  const bool is_ipv4 = absl::ConsumePrefix(&peer, "ipv4:");
  if (!is_ipv4 && !absl::ConsumePrefix(&peer, "ipv6:")) return {};
  const size_t colon = peer.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos ||
      !absl::SimpleAtoi(peer.substr(colon + 1), &port) || port > UINT16_MAX) {
    return {};
  }
  peer = peer.substr(0, colon);
  if (!is_ipv4) {
    // gRPC escapes the brackets, as in a URI.
    if (!absl::ConsumePrefix(&peer, "[")) absl::ConsumePrefix(&peer, "%5B");
    if (!absl::ConsumeSuffix(&peer, "]")) absl::ConsumeSuffix(&peer, "%5D");
    // An interface: fe80::1%25eth0.
    peer = peer.substr(0, peer.find('%'));
  }
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (peer.empty() || peer.size() >= text.size()) return {};
  peer.copy(text.data(), peer.size());
  in6_addr bytes;
  if (inet_pton(is_ipv4 ? AF_INET : AF_INET6, text.data(), &bytes) != 1) {
    return {};
  }
  return {is_ipv4, &bytes, static_cast<uint16_t>(port)};
}

PeerAddress PeerEndpoint::address() const {
  PeerAddress address;
  address.family_ = family_;
  std::memcpy(address.bytes_.data(), bytes_.data(), address.bytes_.size());
  return address;
}

std::string PeerEndpoint::ToString() const {
  if (empty()) return "";
  std::array<char, INET6_ADDRSTRLEN> text = {};
  inet_ntop(family_, bytes_.data(), text.data(), text.size());
  return family_ == AF_INET6 ? absl::StrCat("[", text.data(), "]:", port_)
                             : absl::StrCat(text.data(), ":", port_);
}

bool PeerAddress::IsPrivate() const {
  const unsigned first = bytes_[0];
  const unsigned second = bytes_[1];
  if (family_ == AF_INET) {
    return first == 127 || first == 10 || (first == 192 && second == 168) ||
           (first == 172 && second >> 4 == 1) ||
           (first == 169 && second == 254);
  }
  // ::1 is all that a peer can have of its 64 bits.
  return family_ == AF_INET6 &&
         (bytes_ == std::array<uint8_t, 8>() || (first & 0xfe) == 0xfc ||
          (first == 0xfe && (second & 0xc0) == 0x80));
}

std::string PeerAddress::ToString() const {
  if (empty()) return "";
  in6_addr bytes = {};
  std::memcpy(&bytes, bytes_.data(), bytes_.size());
  std::array<char, INET6_ADDRSTRLEN> text = {};
  inet_ntop(family_, &bytes, text.data(), text.size());
  return absl::StrCat(text.data(), family_ == AF_INET6 ? "/64" : "");
}

}  // namespace timecache::server
