// The stream to another node, and what is left of it.

#include "server/peer/peer_link.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "server/base/clock.h"
#include "server/peer/peer_call.h"
#include "tests/peer/peer_world.h"
#include "tests/support/await.h"
#include "timecache/peer/v1/peer.grpc.pb.h"

namespace timecache::test {
namespace {

using server::PeerLink;

constexpr int kLinks = 20;
constexpr int64_t kNowUs = 1'000'000;

// A node that reads and answers as the test says.
class ToldPeer final : public peer::v1::PeerService::Service {
 public:
  using Stream = grpc::ServerReaderWriter<peer::v1::ExchangeResponse,
                                          peer::v1::ExchangeRequest>;

  ToldPeer() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~ToldPeer() override {
    end_.Notify();
    server_->Shutdown();
  }

  const std::string& address() const { return address_; }
  // Waits for it.
  Stream* stream() {
    open_.WaitForNotification();
    return stream_;
  }

 private:
  grpc::Status Exchange(grpc::ServerContext* /*context*/,
                        Stream* stream) override {
    stream->SendInitialMetadata();
    stream_ = stream;
    open_.Notify();
    end_.WaitForNotification();
    return grpc::Status::OK;
  }

  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  Stream* stream_ = nullptr;
  absl::Notification open_;
  absl::Notification end_;
};

std::shared_ptr<PeerLink> LinkTo(const ToldPeer& owner,
                                 server::PeerCounts* counts,
                                 PeerLink::Duration gather) {
  return std::make_shared<PeerLink>(
      PeerLink::Options{.address = owner.address(),
                        .make_channel =
                            [address = owner.address()] {
                              return grpc::CreateChannel(
                                  address, grpc::InsecureChannelCredentials());
                            },
                        .authorization = nullptr,
                        .gather = gather,
                        .counts = counts});
}

TEST(PeerLinkTest, WhatComesUntilTheOtherNodeHasReadIsOneMessage) {
  ToldPeer owner;
  server::PeerCounts counts;
  const auto link = LinkTo(owner, &counts, std::chrono::hours(1));
  absl::BlockingCounter answered(8);
  const auto call = [&](size_t bytes) {
    link->Start({.body = std::string(bytes, 'x'),
                 .answered = [&](absl::StatusOr<std::string> answer) {
                   EXPECT_TRUE(answer.ok()) << answer.status();
                   answered.DecrementCount();
                 }});
  };
  call(1);
  ToldPeer::Stream* const stream = owner.stream();
  peer::v1::ExchangeRequest request;
  ASSERT_TRUE(stream->Read(&request));
  EXPECT_EQ(request.frames_size(), 1);
  call(1);
  call(2);
  call(3);
  EXPECT_EQ(counts.messages_sent, 1u);
  peer::v1::ExchangeResponse response;
  response.set_messages_read(1);
  ASSERT_TRUE(stream->Write(response));
  ASSERT_TRUE(stream->Read(&request));
  EXPECT_EQ(request.frames_size(), 3);
  // What is worth a message does not wait.
  call(1);
  call(server::kFullPeerMessageBytes);
  ASSERT_TRUE(stream->Read(&request));
  EXPECT_EQ(request.frames_size(), 2);
  response.set_messages_read(3);
  ASSERT_TRUE(stream->Write(response));
  ASSERT_TRUE(Await([&] { return counts.messages_received == 2; }));
  {
    const PeerLink::Together together;
    const PeerLink::Together of_a_callee;
    call(1);
    call(1);
  }
  ASSERT_TRUE(stream->Read(&request));
  EXPECT_EQ(request.frames_size(), 2);
  for (uint64_t id = 1; id <= 8; ++id) {
    peer::v1::Frame* const frame = response.add_frames();
    frame->set_id(id);
    frame->set_kind(peer::v1::FRAME_KIND_ANSWER);
  }
  response.set_messages_read(4);
  ASSERT_TRUE(stream->Write(response));
  answered.Wait();
  EXPECT_EQ(counts.messages_sent, 4u);
  link->Stop();
}

// Else the other node would take it for a new one, whenever it goes on.
TEST(PeerLinkTest, WhatWaitsForANodeThatDoesNotReadIsSentAllTheSame) {
  ToldPeer owner;
  server::PeerCounts counts;
  const auto link = LinkTo(owner, &counts, std::chrono::milliseconds(1));
  const auto call = [&] {
    link->Start({.body = "", .answered = [](const auto& /*answer*/) {}});
  };
  call();
  peer::v1::ExchangeRequest request;
  ASSERT_TRUE(owner.stream()->Read(&request));
  call();
  ASSERT_TRUE(Await([&] {
    link->Look();
    return counts.messages_sent == 2;
  }));
  link->Stop();
}

TEST(PeerLinkTest, WhatAMessageAsksIsAnsweredInOne) {
  server::ManualClock clock{kNowUs};
  PeerNode owner(&clock);
  const auto stub = peer::v1::PeerService::NewStub(
      grpc::CreateChannel(owner.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto stream = stub->Exchange(&context);
  peer::v1::ExchangeRequest request;
  for (uint64_t id = 1; id <= 3; ++id) {
    peer::v1::Frame* const frame = request.add_frames();
    frame->set_id(id);
    frame->set_kind(peer::v1::FRAME_KIND_CALL);
  }
  ASSERT_TRUE(stream->Write(request));
  peer::v1::ExchangeResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.frames_size(), 3);
  EXPECT_EQ(response.messages_read(), 1u);
  // Of one that asks nothing it says that it was read.
  ASSERT_TRUE(stream->Write(peer::v1::ExchangeRequest()));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.frames_size(), 0);
  EXPECT_EQ(response.messages_read(), 2u);
  context.TryCancel();
}

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
