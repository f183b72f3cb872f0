// Which peers count as one.
#include "server/edge/connection/peer_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace timecache::server {
namespace {

PeerAddress OfSocket(const std::string& text) {
  sockaddr_storage storage = {};
  if (text.find(':') == std::string::npos) {
    auto* const to = reinterpret_cast<sockaddr_in*>(&storage);
    to->sin_family = AF_INET;
    EXPECT_EQ(inet_pton(AF_INET, text.c_str(), &to->sin_addr), 1);
  } else {
    auto* const to = reinterpret_cast<sockaddr_in6*>(&storage);
    to->sin6_family = AF_INET6;
    EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), &to->sin6_addr), 1);
  }
  return PeerEndpoint::Of(storage).address();
}

TEST(PeerAddressTest, AnIpv4AddressIsItself) {
  EXPECT_EQ(OfSocket("192.0.2.1"), OfSocket("192.0.2.1"));
  EXPECT_NE(OfSocket("192.0.2.1"), OfSocket("192.0.2.2"));
  EXPECT_EQ(OfSocket("192.0.2.1").ToString(), "192.0.2.1");
  EXPECT_EQ(OfSocket("::ffff:192.0.2.1"), OfSocket("192.0.2.1"));
}

TEST(PeerAddressTest, AnIpv6NetworkOf64BitsIsOne) {
  EXPECT_EQ(OfSocket("2001:db8::1"), OfSocket("2001:db8::ffff:1"));
  EXPECT_NE(OfSocket("2001:db8::1"), OfSocket("2001:db8:0:1::1"));
  EXPECT_EQ(OfSocket("2001:db8::1").ToString(), "2001:db8::/64");
}

TEST(PeerAddressTest, IsReadFromWhatGrpcSaysOfAPeer) {
  EXPECT_EQ(PeerEndpoint::OfGrpcPeer("ipv4:192.0.2.1:50000").address(),
            OfSocket("192.0.2.1"));
  EXPECT_EQ(PeerEndpoint::OfGrpcPeer("ipv6:%5B2001:db8::1%5D:50000").address(),
            OfSocket("2001:db8::1"));
  EXPECT_EQ(PeerEndpoint::OfGrpcPeer("ipv6:[2001:db8::1]:50000").address(),
            OfSocket("2001:db8::1"));
  EXPECT_EQ(
      PeerEndpoint::OfGrpcPeer("ipv6:%5Bfe80::1%25eth0%5D:50000").address(),
      OfSocket("fe80::1"));
}

TEST(PeerAddressTest, AnEndpointIsOneConnections) {
  const auto of = PeerEndpoint::OfGrpcPeer;
  EXPECT_EQ(of("ipv6:[::ffff:192.0.2.1]:1"), of("ipv4:192.0.2.1:1"));
  EXPECT_NE(of("ipv4:192.0.2.1:1"), of("ipv4:192.0.2.1:2"));
  EXPECT_NE(of("ipv6:[2001:db8::1]:1"), of("ipv6:[2001:db8::2]:1"));
  EXPECT_EQ(of("ipv6:[2001:db8::1]:1").address(),
            of("ipv6:[2001:db8::2]:2").address());
  sockaddr_storage storage = {};
  auto* const to = reinterpret_cast<sockaddr_in*>(&storage);
  to->sin_family = AF_INET;
  to->sin_port = htons(50'000);
  to->sin_addr.s_addr = htonl(0xc0000201);
  EXPECT_EQ(PeerEndpoint::Of(storage), of("ipv4:192.0.2.1:50000"));
}

TEST(PeerAddressTest, SomeArePrivate) {
  const auto is_private = [](const char* peer) {
    return PeerEndpoint::OfGrpcPeer(peer).address().IsPrivate();
  };
  for (const char* peer :
       {"ipv4:127.0.0.1:1", "ipv4:10.1.2.3:1", "ipv4:172.16.0.1:1",
        "ipv4:172.31.0.1:1", "ipv4:192.168.1.1:1", "ipv4:169.254.1.1:1",
        "ipv6:%5B::1%5D:1", "ipv6:%5Bfd00::1%5D:1", "ipv6:%5Bfe80::1%5D:1",
        "ipv6:%5B::ffff:10.0.0.1%5D:1"}) {
    EXPECT_TRUE(is_private(peer)) << peer;
  }
  for (const char* peer :
       {"ipv4:192.0.2.1:1", "ipv4:172.32.0.1:1", "ipv4:11.0.0.1:1",
        "ipv4:192.169.1.1:1", "ipv6:%5B2001:db8::1%5D:1",
        "ipv6:%5B::ffff:192.0.2.1%5D:1", "unix:/tmp/s"}) {
    EXPECT_FALSE(is_private(peer)) << peer;
  }
}

TEST(PeerAddressTest, OtherPeersHaveNone) {
  for (const char* peer :
       {"", "unix:", "unix:/run/socket", "ipv4:", "ipv4::1", "ipv4:x:1",
        "ipv6:1", "ipv6:[]:1", "ipv4:192.0.2.1", "ipv4:192.0.2.1:x",
        "ipv4:192.0.2.1:65536", "unknown"}) {
    EXPECT_TRUE(PeerEndpoint::OfGrpcPeer(peer).empty()) << peer;
  }
  sockaddr_storage storage = {};
  storage.ss_family = AF_UNIX;
  EXPECT_TRUE(PeerEndpoint::Of(storage).empty());
  EXPECT_EQ(PeerAddress().ToString(), "");
}

}  // namespace
}  // namespace timecache::server
