// Values that a client's gRPC does not take: streams go on behind them, and say
// so.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/group_client.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

constexpr size_t kLargeBytes = 5 << 20;

// The channel of `server_` has gRPC's default limit of 4 MiB.
class LargeValueTest : public ::testing::Test {
 protected:
  LargeValueTest() {
    server_.Create("large", "max_value_bytes: 16777216");
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(2 * kLargeBytes);
    tolerant_ = v1::TimeCacheService::NewStub(server_.NewChannel(arguments));
  }

  void PutThree() {
    server_.Put("before", "1", 0, "large");
    server_.Put("large", std::string(kLargeBytes, 'v'), 0, "large");
    server_.Put("after", "2", 0, "large");
  }

  // Of an event or an entry that is the large one, or whole.
  template <typename Message>
  static void ExpectOmitted(const Message& message, bool is_omitted) {
    const bool is_large = message.key() == "large";
    EXPECT_EQ(message.omitted_value_bytes(),
              is_large && is_omitted ? kLargeBytes : 0)
        << message.key();
    EXPECT_EQ(message.value().size(), !is_large    ? 1
                                      : is_omitted ? 0
                                                   : kLargeBytes)
        << message.key();
    EXPECT_GT(message.version(), 0u);
  }

  template <typename Messages>
  static void ExpectThree(const Messages& messages, bool is_omitted) {
    EXPECT_EQ(messages.size(), 3);
    for (const auto& message : messages) ExpectOmitted(message, is_omitted);
  }

  std::vector<v1::Entry> Scan(v1::TimeCacheService::Stub* stub,
                              const std::string& more) {
    grpc::ClientContext context;
    SetDeadline(&context);
    auto reader = stub->Scan(
        &context, Proto<v1::ScanRequest>("namespace: 'large' " + more));
    std::vector<v1::Entry> entries;
    for (v1::ScanResponse page; reader->Read(&page);) {
      entries.insert(entries.end(), page.entries().begin(),
                     page.entries().end());
    }
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return entries;
  }

  TestServer server_;
  std::unique_ptr<v1::TimeCacheService::Stub> tolerant_;
};

TEST_F(LargeValueTest, WatchPassesItAndAnotherOneThatTakesMoreGetsIt) {
  WatchReader reader(server_.data(), "large");
  ASSERT_TRUE(reader.Next());
  const std::string begin = reader.token("large");
  PutThree();
  server_.AdvanceBy(2 * kTtlUs);
  ExpectThree(reader.ReadUpTo(server_.now_us(), "large"), true);
  EXPECT_EQ(reader.lost(), 0u);

  v1::WatchExpiredRequest request;
  request.add_namespaces("large");
  request.add_resume_tokens(begin);
  request.set_max_message_bytes(2 * kLargeBytes);
  WatchReader tolerant(tolerant_.get(), request);
  ExpectThree(tolerant.ReadUpTo(server_.now_us(), "large"), false);
}

TEST_F(LargeValueTest, WatchOfWhatIsGoingToDiePassesIt) {
  v1::WatchExpiringRequest request;
  request.add_namespaces("large");
  request.mutable_lead_time()->set_seconds(10);
  WatchReader reader(server_.data(), request);
  ASSERT_TRUE(reader.Next());
  PutThree();
  server_.AdvanceBy(kTtlUs - 5 * server::kMicrosPerSecond);
  std::vector<v1::ExpiredEvent> events;
  while (events.size() < 3) {
    const auto message = reader.Next();
    ASSERT_TRUE(message);
    events.insert(events.end(), message->events().begin(),
                  message->events().end());
  }
  ExpectThree(events, true);
}

TEST_F(LargeValueTest, MemberOfAGroupPassesItAndAnotherOneGetsIt) {
  GroupClient group(&server_);
  auto member = group.Join("", "large");
  PutThree();
  server_.AdvanceBy(2 * kTtlUs);
  const auto events = GroupClient::Take(member.get(), 3);
  ExpectThree(events, true);
  // With the stream's end it is given out again.
  member.reset();
  v1::ConsumeExpiredRequest request;
  request.add_namespaces("large");
  request.set_group("g");
  request.set_max_message_bytes(2 * kLargeBytes);
  WatchReader tolerant(tolerant_.get(), request);
  ExpectThree(GroupClient::Take(&tolerant, 3), false);
}

TEST_F(LargeValueTest, ScanPassesItAndAnotherOneThatTakesMoreGetsIt) {
  PutThree();
  ExpectThree(Scan(server_.data(), ""), true);
  ExpectThree(Scan(tolerant_.get(), "max_message_bytes: 10485760"), false);
}

// Of watches, rpc_test checks it.
TEST_F(LargeValueTest, LimitThatNoClientHasIsRefused) {
  for (const char* bytes : {"0", "4194303", "2147483648"}) {
    SCOPED_TRACE(bytes);
    grpc::ClientContext context;
    SetDeadline(&context);
    auto scan = server_.data()->Scan(
        &context, Proto<v1::ScanRequest>(absl::StrCat(
                      "namespace: 'large' max_message_bytes: ", bytes)));
    v1::ScanResponse page;
    EXPECT_FALSE(scan->Read(&page));
    ExpectInvalid(scan->Finish(), "max_message_bytes", "4 MiB");
  }
}

}  // namespace
}  // namespace timecache::test
