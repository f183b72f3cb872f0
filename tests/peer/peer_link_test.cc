// The stream to another node, and what is left of it.

#include "server/peer/peer_link.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "server/base/clock.h"
#include "tests/peer/peer_world.h"

namespace timecache::test {
namespace {

using server::PeerLink;

constexpr int kLinks = 20;
constexpr int64_t kNowUs = 1'000'000;

// gRPC's threads would otherwise be what ends it, perhaps the last one of a process.
TEST(PeerLinkTest, OnceItHasStoppedNobodyHasItsChannel) {
  server::ManualClock clock{kNowUs};
  PeerNode owner(&clock);
  for (int i = 0; i < kLinks; ++i) {
    server::PeerCounts counts;
    std::weak_ptr<grpc::Channel> channel;
    const auto link = std::make_shared<PeerLink>(PeerLink::Options{
        .address = owner.address(),
        .make_channel =
            [&] {
              auto made = grpc::CreateChannel(
                  owner.address(), grpc::InsecureChannelCredentials());
              channel = made;
              return made;
            },
        .authorization = nullptr,
        .counts = &counts});
    // That it is malformed is an answer, too.
    const absl::StatusOr<std::string> answer =
        ResultOf<std::string>([&](PeerLink::Answered answered) {
          link->Start({.body = "", .answered = std::move(answered)});
        });
    EXPECT_FALSE(channel.expired());
    link->Stop();
    EXPECT_TRUE(channel.expired()) << answer.status();
    EXPECT_EQ(counts.open, 0);
  }
}

}  // namespace
}  // namespace timecache::test
