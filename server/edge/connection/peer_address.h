// The source of a connection, as limits see it.

#ifndef TIMECACHED_SERVER_EDGE_CONNECTION_PEER_ADDRESS_H_
#define TIMECACHED_SERVER_EDGE_CONNECTION_PEER_ADDRESS_H_

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace timecache::server {

// An IPv4 address, or the first 64 bits of an IPv6 address: the owner of one
// address there has all with that prefix. A value, 10 bytes.
class PeerAddress {
 public:
  // No address: a unix socket's peer, and what cannot be read.
  PeerAddress() = default;

  bool empty() const { return family_ == 0; }
  // Whether it is of the loopback, or of a private network: 10.0.0.0/8,
  // 172.16.0.0/12, 192.168.0.0/16, fc00::/7; or link-local.
  bool IsPrivate() const;
  // "192.0.2.1", "2001:db8::/64"; empty for none.
  std::string ToString() const;

  bool operator==(const PeerAddress&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const PeerAddress& address) {
    return H::combine(std::move(state), address.family_, address.bytes_);
  }

 private:
  friend class PeerEndpoint;

  // AF_INET or AF_INET6; 0 for none.
  uint16_t family_ = 0;
  // In network order; an IPv4 address has four.
  std::array<uint8_t, 8> bytes_ = {};
};

// A peer's whole address and port: one of its connections. An IPv4 address that
// is written as IPv6 (::ffff:192.0.2.1) is the IPv4 address. A value, 20 bytes.
class PeerEndpoint {
 public:
  // None, as that of PeerAddress.
  PeerEndpoint() = default;

  static PeerEndpoint Of(const sockaddr_storage& address);
  // From gRPC's name of a call's peer: "ipv4:192.0.2.1:50000",
  // "ipv6:%5B2001:db8::1%5D:50000", "unix:..."
  static PeerEndpoint OfGrpcPeer(absl::string_view peer);

  bool empty() const { return family_ == 0; }
  PeerAddress address() const;
  // "192.0.2.1:50000", "[2001:db8::1]:50000"; empty for none.
  std::string ToString() const;

  bool operator==(const PeerEndpoint&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const PeerEndpoint& endpoint) {
    return H::combine(std::move(state), endpoint.family_, endpoint.port_,
                      endpoint.bytes_);
  }

 private:
  PeerEndpoint(bool is_ipv4, const void* bytes, uint16_t port);

  uint16_t family_ = 0;
  uint16_t port_ = 0;
  std::array<uint8_t, 16> bytes_ = {};
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_CONNECTION_PEER_ADDRESS_H_
