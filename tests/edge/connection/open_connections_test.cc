// Connections are counted until their file descriptors are closed by others.
#include "server/edge/connection/open_connections.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
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

TEST_F(OpenConnectionsOfPeersTest, AreListedByTheirAge) {
  int more[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, more), 0);
  EXPECT_TRUE(connections_.Add(more[0]));
  auto listed = connections_.List(0, 10);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].peer, "192.0.2.1:1");
  EXPECT_EQ(listed[1].peer, absl::StrCat("unix:pid=", getpid()));
  EXPECT_GT(listed[0].id, 0u);
  EXPECT_GT(listed[1].id, listed[0].id);
  EXPECT_EQ(connections_.List(0, 1).size(), 1u);
  EXPECT_EQ(connections_.List(listed[0].id, 10)[0].id, listed[1].id);
  // Its calls count where it is listed.
  EXPECT_EQ(connections_.UseOf(other_), nullptr);
  const auto use = connections_.UseOf(peer_);
  EXPECT_EQ(use.get(), listed[0].use.get());
  // A number that another connection has is no connection of ours.
  close(more[0]);
  EXPECT_EQ(connections_.List(0, 10).size(), 1u);
  close(more[1]);
}

TEST_F(OpenConnectionsOfPeersTest, OneThatIsClosedEndsOnce) {
  const uint64_t id = connections_.List(0, 10)[0].id;
  EXPECT_FALSE(connections_.Close(id + 1));
  char byte;
  EXPECT_EQ(recv(ends_[1], &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_TRUE(connections_.Close(id));
  EXPECT_EQ(recv(ends_[1], &byte, 1, MSG_DONTWAIT), 0);
  EXPECT_FALSE(connections_.Close(id));
  EXPECT_TRUE(connections_.List(0, 10).empty());
}

TEST_F(OpenConnectionsOfPeersTest, AnIdIsNotThatOfWhoHasTheNumberNow) {
  const uint64_t id = connections_.List(0, 10)[0].id;
  close(ends_[0]);
  close(ends_[1]);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
  EXPECT_FALSE(connections_.Close(id));
  char byte;
  EXPECT_EQ(recv(ends_[1], &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_TRUE(connections_.Add(ends_[0], peer_));
  EXPECT_GT(connections_.List(0, 10)[0].id, id);
}

TEST(ConnectionUseTest, CountsAndNotesAFewTimesASecond) {
  ConnectionUse use;
  const ConnectionUse::SteadyTime start(std::chrono::seconds(1));
  use.Look(start);
  EXPECT_FALSE(use.used_at().has_value());
  EXPECT_TRUE(use.wants_caller());
  EXPECT_EQ(use.BeginCall(), 0);
  EXPECT_EQ(use.BeginCall(), 1);
  use.Note({"reader", "grpc"});
  EXPECT_FALSE(use.wants_caller());
  use.EndCall();
  EXPECT_EQ(use.open_calls(), 1);
  EXPECT_EQ(use.calls(), 2u);
  const auto later = start + std::chrono::seconds(1);
  use.Look(later);
  EXPECT_EQ(use.used_at(), later);
  EXPECT_TRUE(use.wants_caller());
  use.Look(later + std::chrono::seconds(1));
  EXPECT_EQ(use.used_at(), later);
  EXPECT_EQ(use.caller().principal, "reader");
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
