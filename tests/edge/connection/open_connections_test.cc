// Connections are counted until their file descriptors are closed by others.
#include "server/edge/connection/open_connections.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/await.h"
#include "tests/support/net/tcp_pair.h"

namespace timecache::server {
namespace {

int Socket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

TEST(OpenConnectionsTest, TakesAsManyAsMayBe) {
  OpenConnections connections(2);
  const std::vector<int> fds = {Socket(), Socket(), Socket()};
  EXPECT_TRUE(connections.Add(fds[0]));
  EXPECT_TRUE(connections.Add(fds[1]));
  EXPECT_FALSE(connections.Add(fds[2]));
  EXPECT_EQ(connections.Count(), 2u);
  EXPECT_EQ(connections.refused(), 1u);
  for (const int fd : fds) close(fd);
}

TEST(OpenConnectionsTest, ANumberThatComesAgainIsAnotherConnection) {
  OpenConnections connections(1);
  const int first = Socket();
  EXPECT_TRUE(connections.Add(first));
  close(first);
  const int second = Socket();
  // The least number that is free.
  ASSERT_EQ(first, second);
  EXPECT_TRUE(connections.Add(second));
  EXPECT_EQ(connections.Count(), 1u);
  close(second);
}

TEST(OpenConnectionsTest, ClosedOnesMakeRoom) {
  OpenConnections connections(2);
  const int first = Socket();
  const int second = Socket();
  const int third = Socket();
  EXPECT_TRUE(connections.Add(first));
  EXPECT_TRUE(connections.Add(second));
  close(first);
  // They are counted again now and then.
  test::Await([&] { return connections.Add(third); });
  close(second);
  test::Await([&] { return connections.Count() <= 1; });
  close(third);
}

class OpenConnectionsOfPeersTest : public ::testing::Test {
 protected:
  OpenConnectionsOfPeersTest() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
    EXPECT_TRUE(connections_.Add(ends_[0], peer_));
  }
  ~OpenConnectionsOfPeersTest() override {
    for (const int fd : ends_) close(fd);
  }

  const PeerEndpoint peer_ = PeerEndpoint::OfGrpcPeer("ipv4:192.0.2.1:1");
  const PeerEndpoint other_ = PeerEndpoint::OfGrpcPeer("ipv4:192.0.2.1:2");
  OpenConnections connections_{10};
  // Ours, and the peer's.
  int ends_[2];
};

TEST_F(OpenConnectionsOfPeersTest, OneThatItsPeerHasClosedIsGone) {
  EXPECT_FALSE(connections_.IsGone(peer_));
  shutdown(ends_[1], SHUT_WR);
  EXPECT_TRUE(connections_.IsGone(peer_));
  EXPECT_FALSE(connections_.IsGone(other_));
}

TEST_F(OpenConnectionsOfPeersTest, OneThatWasClosedHereIsGone) {
  close(ends_[0]);
  EXPECT_TRUE(connections_.IsGone(peer_));
  close(ends_[1]);
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
  EXPECT_TRUE(connections_.IsGone(peer_));
  // Another connection has its number: then it is forgotten.
  EXPECT_TRUE(connections_.Add(ends_[0], other_));
  EXPECT_FALSE(connections_.IsGone(peer_));
  EXPECT_FALSE(connections_.IsGone(other_));
}

TEST_F(OpenConnectionsOfPeersTest, OneThatIsCutEnds) {
  char byte;
  connections_.Cut(other_);
  EXPECT_EQ(recv(ends_[1], &byte, 1, MSG_DONTWAIT), -1);
  connections_.Cut(peer_);
  EXPECT_EQ(recv(ends_[1], &byte, 1, MSG_DONTWAIT), 0);
  EXPECT_TRUE(connections_.IsGone(peer_));
}

// gRPC closes its descriptors whenever it likes, and the next connection gets
// the number.
TEST(OpenConnectionsTest, ACutEndsNoConnectionThatTookTheNumberMeanwhile) {
  OpenConnections connections(10);
  const PeerEndpoint peer = PeerEndpoint::OfGrpcPeer("ipv4:192.0.2.1:1");
  int ours[2];
  int next[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ours), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, next), 0);
  const int number = dup(ours[0]);
  ASSERT_TRUE(connections.Add(number, peer));
  std::atomic<bool> stop{false};
  std::thread takes_turns([&] {
    while (!stop) {
      dup2(next[0], number);
      dup2(ours[0], number);
    }
  });
  for (int i = 0; i < 50'000; ++i) connections.Cut(peer);
  stop = true;
  takes_turns.join();
  char byte;
  EXPECT_EQ(recv(ours[1], &byte, 1, MSG_DONTWAIT), 0);
  EXPECT_EQ(recv(next[1], &byte, 1, MSG_DONTWAIT), -1);
  for (const int fd : {ours[0], ours[1], next[0], next[1], number}) close(fd);
}

// Else gRPC would go on with calls that nobody waits for.
TEST(OpenConnectionsTest, OfOneThatIsCutNothingMoreIsRead) {
  const test::TcpPair tcp;
  OpenConnections connections(10);
  const PeerEndpoint peer = PeerEndpoint::OfGrpcPeer("ipv4:192.0.2.1:1");
  ASSERT_TRUE(connections.Add(tcp.server(), peer));
  ASSERT_EQ(send(tcp.client(), "calls", 5, 0), 5);
  pollfd readable = {tcp.server(), POLLIN, 0};
  ASSERT_EQ(poll(&readable, 1, 10'000), 1);

  connections.Cut(peer);
  char byte;
  EXPECT_LE(recv(tcp.server(), &byte, 1, MSG_DONTWAIT), 0);
  EXPECT_TRUE(connections.IsGone(peer));
  EXPECT_LE(recv(tcp.client(), &byte, 1, 0), 0);
}

TEST(OpenConnectionsTest, TellsWhatPeersHaveSent) {
  test::TcpPair tcp;
  OpenConnections connections(10);
  const PeerEndpoint peer = PeerEndpoint::OfGrpcPeer("ipv4:192.0.2.1:1");
  EXPECT_EQ(connections.BytesReceived(peer), std::nullopt);
  ASSERT_TRUE(connections.Add(tcp.server(), peer));
  EXPECT_EQ(connections.BytesReceived(peer), 0);
  tcp.Send(100'000);
  EXPECT_EQ(connections.BytesReceived(peer), 100'000);
  connections.Cut(peer);
  EXPECT_EQ(connections.BytesReceived(peer), std::nullopt);
}

TEST_F(OpenConnectionsOfPeersTest, OfWhatIsNotTcpNobodyKnowsWhatWasSent) {
  EXPECT_EQ(connections_.BytesReceived(peer_), std::nullopt);
}

}  // namespace
}  // namespace timecache::server
