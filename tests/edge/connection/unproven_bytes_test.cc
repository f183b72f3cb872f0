// Strangers may send so much together; then those who sent most are cut.
#include "server/edge/connection/unproven_bytes.h"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/net/tcp_pair.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kFree = UnprovenBytes::kFreeBytes;
constexpr int64_t kMaxBytes = 10 * kFree;

class UnprovenBytesTest : public ::testing::Test {
 protected:
  struct Connection {
    test::TcpPair tcp;
    PeerEndpoint peer;
  };

  // The number of the connection.
  size_t Connect() {
    auto connection = std::make_unique<Connection>();
    connection->peer =
        PeerEndpoint::OfGrpcPeer(absl::StrCat("ipv4:192.0.2.1:", ++last_port_));
    Open(connection.get());
    all_.push_back(std::move(connection));
    return all_.size() - 1;
  }
  void Open(Connection* connection) {
    EXPECT_TRUE(open_.Add(connection->tcp.server(), connection->peer));
    unproven_.Add(connection->tcp.server(), connection->peer, now_);
  }
  void Send(size_t connection, int64_t bytes) {
    all_[connection]->tcp.Send(static_cast<size_t>(bytes));
  }
  const PeerEndpoint& PeerOf(size_t connection) const {
    return all_[connection]->peer;
  }
  bool IsDue() const {
    pollfd polled = {unproven_.fd(), POLLIN, 0};
    return poll(&polled, 1, 0) > 0;
  }
  // Connections that are to be cut; checks what they sent.
  std::vector<size_t> Look() {
    std::vector<size_t> excess;
    for (const auto& [peer, bytes] : unproven_.Look(now_)) {
      for (size_t i = 0; i < all_.size(); ++i) {
        if (all_[i]->peer == peer) excess.push_back(i);
      }
      EXPECT_GT(bytes, kFree);
    }
    return excess;
  }

  int last_port_ = 0;
  std::vector<std::unique_ptr<Connection>> all_;
  OpenConnections open_{100};
  int64_t memory_ = 100 * kMaxBytes;
  UnprovenBytes unproven_{kMaxBytes, &open_, [this] { return memory_; }};
  UnprovenBytes::Time now_{std::chrono::hours(1)};
};

TEST_F(UnprovenBytesTest, ThoseWhoSentMostAreCut) {
  const size_t least = Connect();
  const size_t most = Connect();
  const size_t more = Connect();
  Send(least, 2 * kFree);
  Send(most, 5 * kFree);
  Send(more, 3 * kFree);
  EXPECT_THAT(Look(), IsEmpty());
  Send(least, 1);
  EXPECT_THAT(Look(), ElementsAre(most));
  Send(least, 2 * kFree);
  Send(more, 2 * kFree);
  EXPECT_THAT(Look(), IsEmpty());
  Send(more, kFree);
  EXPECT_THAT(Look(), ElementsAre(more));
}

// gRPC has read it by then: the descriptor is not readable any more.
TEST_F(UnprovenBytesTest, WhatComesMakesALookDue) {
  const size_t one = Connect();
  EXPECT_TRUE(IsDue());
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_FALSE(IsDue());
  Send(one, 1);
  EXPECT_TRUE(IsDue());
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_FALSE(IsDue());
  EXPECT_FALSE(unproven_.NextLook().has_value());
}

TEST_F(UnprovenBytesTest, WhatIsFreeDoesNotCount) {
  for (int i = 0; i < 20; ++i) Send(Connect(), kFree);
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_FALSE(unproven_.any());
  Send(0, 1);
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_TRUE(unproven_.any());
}

TEST_F(UnprovenBytesTest, OneThatIsProvenMaySendWhatItWants) {
  const size_t known = Connect();
  Send(known, 2 * kFree);
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_TRUE(unproven_.any());
  unproven_.Prove(PeerOf(known));
  EXPECT_FALSE(unproven_.any());
  Send(known, 20 * kFree);
  EXPECT_FALSE(IsDue());
  EXPECT_THAT(Look(), IsEmpty());
  unproven_.Prove(PeerOf(known));
}

TEST_F(UnprovenBytesTest, WhatIsAnsweredDoesNotCount) {
  const size_t one = Connect();
  for (int i = 0; i < 10; ++i) {
    Send(one, 9 * kFree);
    EXPECT_THAT(Look(), IsEmpty());
    EXPECT_TRUE(unproven_.any());
    unproven_.CountAnswered(PeerOf(one), 9 * kFree);
    EXPECT_FALSE(unproven_.any());
  }
  Send(one, 10 * kFree + 1);
  EXPECT_THAT(Look(), ElementsAre(one));
  // It is forgotten.
  unproven_.CountAnswered(PeerOf(one), kFree);
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(UnprovenBytesTest, AllThatCountAreCutIfTheMemoryGrows) {
  const size_t few = Connect();
  const size_t more = Connect();
  const size_t most = Connect();
  Send(few, kFree);
  EXPECT_THAT(Look(), IsEmpty());
  memory_ += 2 * kMaxBytes;
  Send(most, 3 * kFree);
  EXPECT_THAT(Look(), IsEmpty());
  Send(more, 2 * kFree);
  memory_ += kMaxBytes;
  EXPECT_THAT(Look(), IsEmpty());
  memory_ += 1;
  EXPECT_THAT(Look(), ElementsAre(most, more));
  // Nothing counts: what it was does not matter.
  EXPECT_THAT(Look(), IsEmpty());
  memory_ += 2 * kMaxBytes;
  Send(few, 1);
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_TRUE(unproven_.any());
}

TEST_F(UnprovenBytesTest, PingsOfALongTimeDoNotCount) {
  const size_t one = Connect();
  constexpr int64_t kLate = kFree / UnprovenBytes::kFreeBytesPerSecond;
  Send(one, 2 * kFree);
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_TRUE(unproven_.any());
  now_ += std::chrono::seconds(kLate);
  EXPECT_EQ(unproven_.NextLook(),
            now_ - std::chrono::seconds(kLate) + std::chrono::seconds(1));
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_FALSE(unproven_.any());
}

TEST_F(UnprovenBytesTest, OneThatIsGoneDoesNotCount) {
  const size_t gone = Connect();
  const size_t one = Connect();
  Send(gone, 9 * kFree);
  EXPECT_THAT(Look(), IsEmpty());
  all_[gone]->tcp.CloseServer();
  Send(one, 8 * kFree);
  EXPECT_THAT(Look(), IsEmpty());
  all_[one]->tcp.CloseServer();
  EXPECT_TRUE(unproven_.any());
  now_ += std::chrono::seconds(1);
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_FALSE(unproven_.any());
}

TEST_F(UnprovenBytesTest, ANumberThatComesAgainIsAnotherConnection) {
  const size_t before = Connect();
  Send(before, 9 * kFree);
  EXPECT_THAT(Look(), IsEmpty());
  test::TcpPair tcp;
  const int number = all_[before]->tcp.server();
  // Closes what had it.
  ASSERT_EQ(dup2(tcp.server(), number), number);
  const PeerEndpoint peer = PeerEndpoint::OfGrpcPeer("ipv4:192.0.2.2:1");
  ASSERT_TRUE(open_.Add(number, peer));
  unproven_.Add(number, peer, now_);
  EXPECT_FALSE(unproven_.any());
  tcp.Send(static_cast<size_t>(9 * kFree));
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_TRUE(unproven_.any());
  unproven_.Prove(peer);
  EXPECT_FALSE(unproven_.any());
}

TEST_F(UnprovenBytesTest, AnAddressThatComesAgainIsAnotherConnection) {
  const size_t before = Connect();
  Send(before, 9 * kFree);
  EXPECT_THAT(Look(), IsEmpty());
  Connection again;
  again.peer = PeerOf(before);
  Open(&again);
  EXPECT_FALSE(unproven_.any());
  again.tcp.Send(static_cast<size_t>(9 * kFree));
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_TRUE(unproven_.any());
}

// Nor is another cut in its place.
TEST_F(UnprovenBytesTest, OneThatIsGoneIsFoundBeforeAnotherIsCut) {
  const size_t gone = Connect();
  const size_t one = Connect();
  Send(gone, 5 * kFree);
  EXPECT_THAT(Look(), IsEmpty());
  all_[gone]->tcp.CloseServer();
  Send(one, 9 * kFree);
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_TRUE(unproven_.any());
}

}  // namespace
}  // namespace timecache::server
