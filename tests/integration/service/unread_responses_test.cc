// Clients that ask and do not read: what the server holds for them is bounded,
// others are served, and they are ended.
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/blocking_counter.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"
#include "tests/support/net/raw_connection.h"
#include "tests/support/test_server.h"

namespace timecache::test {
namespace {

constexpr int64_t kMaxResponseBytes = 2 << 20;
constexpr size_t kUnreadBytes = 64 << 10;
constexpr int kCalls = 32;

// Frames of HTTP/2, as no library of gRPC would send them.
enum FrameType : uint8_t { kData = 0, kHeaders = 1, kSettings = 4 };
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;
constexpr uint8_t kAck = 1;

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) {
    text.push_back(static_cast<char>(value >> (8 * i)));
  }
  return text;
}

std::string Frame(FrameType type, uint8_t flags, uint32_t stream,
                  const std::string& body) {
  return absl::StrCat(BigEndian(static_cast<uint32_t>(body.size()), 3),
                      BigEndian(type, 1), BigEndian(flags, 1),
                      BigEndian(stream, 4), body);
}

// Neither indexed nor compressed; below 127 bytes.
std::string Literal(absl::string_view name, absl::string_view value) {
  return absl::StrCat(BigEndian(0, 1),
                      BigEndian(static_cast<uint32_t>(name.size()), 1), name,
                      BigEndian(static_cast<uint32_t>(value.size()), 1), value);
}

// Streams have no window to answer into.
std::string GreetingWithoutAck() {
  return absl::StrCat(
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      Frame(kSettings, 0, 0, absl::StrCat(BigEndian(4, 2), BigEndian(0, 4))));
}
std::string Greeting() {
  return absl::StrCat(GreetingWithoutAck(), Frame(kSettings, kAck, 0, ""));
}

constexpr char kService[] = "/timecache.v1.TimeCacheService/";

std::string CallFrames(uint32_t stream, const std::string& method,
                       const std::string& request,
                       const std::string& service = kService) {
  const std::string headers =
      absl::StrCat(Literal(":method", "POST"), Literal(":scheme", "http"),
                   Literal(":path", absl::StrCat(service, method)),
                   Literal(":authority", "test"), Literal("te", "trailers"),
                   Literal("content-type", "application/grpc"));
  const std::string message = absl::StrCat(
      BigEndian(0, 1), BigEndian(static_cast<uint32_t>(request.size()), 4),
      request);
  return absl::StrCat(Frame(kHeaders, kEndHeaders, stream, headers),
                      Frame(kData, kEndStream, stream, message));
}

struct Unread {
  std::string method;
  std::string request;
  std::string service = kService;

  // The name of a test that takes it.
  friend void PrintTo(const Unread& unread, std::ostream* out) {
    *out << unread.method;
  }
};

Unread UnreadGet() {
  v1::GetRequest request;
  request.set_namespace_("default");
  request.set_key("key");
  return {"Get", request.SerializeAsString()};
}
Unread UnreadBatch(const std::string& method) {
  v1::ExecuteRequest request;
  request.set_namespace_("default");
  request.add_operations()->mutable_get()->set_key("key");
  return {method, request.SerializeAsString()};
}
Unread UnreadScan() {
  v1::ScanRequest request;
  request.set_namespace_("default");
  return {"Scan", request.SerializeAsString()};
}

class UnreadResponsesTest : public ::testing::TestWithParam<Unread> {
 protected:
  static TestServerOptions Options(uint64_t max_bytes = kMaxResponseBytes,
                                   int timeout_seconds = 1) {
    TestServerOptions options;
    options.change = [=](server::ServerOptions* to) {
      to->limits.set_max_response_bytes(max_bytes);
      to->limits.mutable_response_timeout()->set_seconds(timeout_seconds);
    };
    return options;
  }

  // Until calls wait for room.
  void AwaitWaiting() {
    Await([&] { return server_.server().responses().waiting > 0; });
  }

  TestServer server_{Options()};
};

TEST_P(UnreadResponsesTest, AreBoundedAndEndTheirConnection) {
  server_.Put("key", std::string(kUnreadBytes, 'v'));
  const RawConnection unread(server_.server().addresses().at(0));
  unread.Send(Greeting());
  for (int i = 0; i < kCalls; ++i) {
    const auto stream = static_cast<uint32_t>(2 * i + 1);
    unread.Send(CallFrames(stream, GetParam().method, GetParam().request));
  }
  // What has no room is not made.
  AwaitWaiting();
  EXPECT_LT(server_.server().responses().bytes, kMaxResponseBytes);
  EXPECT_GT(server_.server().responses().bytes, kMaxResponseBytes / 4);
  // Others have room.
  EXPECT_EQ(server_.Get("key").entry().value().size(), kUnreadBytes);
  unread.ReadToEnd();
  Await([&] {
    const auto now = server_.server().responses();
    return now.waiting == 0 && now.bytes == 0;
  });
  EXPECT_EQ(server_.server().responses().ended_connections, 1u);
  EXPECT_EQ(server_.Get("key").entry().value().size(), kUnreadBytes);
}

INSTANTIATE_TEST_SUITE_P(Methods, UnreadResponsesTest,
                         ::testing::Values(UnreadGet(), UnreadBatch("Execute"),
                                           UnreadBatch("Pipeline"),
                                           UnreadScan()),
                         ::testing::PrintToStringParamName());

Unread UnreadHealth() { return {"Check", "", "/grpc.health.v1.Health/"}; }

// Answers that are too small to be counted by themselves.
class SmallUnreadResponsesTest : public UnreadResponsesTest {};

TEST_P(SmallUnreadResponsesTest, EndTheirConnection) {
  server_.Put("key", "v");
  const RawConnection unread(server_.server().addresses().at(0));
  unread.Send(Greeting());
  unread.Send(
      CallFrames(1, GetParam().method, GetParam().request, GetParam().service));
  Await([&] { return server_.server().responses().bytes > 0; });
  unread.ReadToEnd();
  Await([&] { return server_.server().responses().bytes == 0; });
  EXPECT_EQ(server_.server().responses().ended_connections, 1u);
}

INSTANTIATE_TEST_SUITE_P(Methods, SmallUnreadResponsesTest,
                         ::testing::Values(UnreadGet(), UnreadBatch("Execute"),
                                           UnreadBatch("Pipeline"),
                                           UnreadScan(), UnreadHealth()),
                         ::testing::PrintToStringParamName());

// Of streams, too. gRPC does not hold who has not acknowledged the limit to it.
TEST_F(UnreadResponsesTest, TooManyStreamsEndTheirConnection) {
  TestServerOptions options;
  options.change = [](server::ServerOptions* to) {
    to->limits.set_max_calls_per_connection(10);
    to->limits.mutable_response_timeout()->set_seconds(600);
  };
  TestServer server(options);
  v1::WatchExpiredRequest request;
  request.add_namespaces("default");
  const RawConnection unread(server.server().addresses().at(0));
  unread.Send(GreetingWithoutAck());
  for (uint32_t i = 0; i < 21; ++i) {
    unread.Send(
        CallFrames(2 * i + 1, "WatchExpired", request.SerializeAsString()));
  }
  unread.ReadToEnd();
  EXPECT_EQ(server.server().responses().ended_connections, 1u);
}

// A server that stops does not wait for those who do not read, nor for calls
// that wait for them.
TEST_F(UnreadResponsesTest, DoNotHoldUpADrain) {
  server_.Put("key", std::string(kUnreadBytes, 'v'));
  const RawConnection unread(server_.server().addresses().at(0));
  unread.Send(Greeting());
  for (int i = 0; i < kCalls; ++i) {
    unread.Send(CallFrames(static_cast<uint32_t>(2 * i + 1), "Get",
                           UnreadGet().request));
  }
  AwaitWaiting();
  server_.server().Drain(server::kMicrosPerSecond);
  EXPECT_EQ(server_.server().responses().waiting, 0);
}

// A client that reads asks for more than it has room for at once. Its half of
// the room, and what its calls hold that wait, are below the bound: beyond it,
// a client that has no CPU for a while is taken for one that does not read.
TEST_F(UnreadResponsesTest, WhoReadsIsNotRefused) {
  constexpr int kMany = 500;
  constexpr uint64_t kMax = kMany * kUnreadBytes * 3 / 4;
  TestServer server(Options(kMax, 600));
  server.Put("key", std::string(kUnreadBytes, 'v'));
  v1::GetRequest request;
  request.set_namespace_("default");
  request.set_key("key");
  std::vector<grpc::ClientContext> contexts(kMany);
  std::vector<v1::GetResponse> responses(kMany);
  std::vector<grpc::Status> statuses(kMany);
  absl::BlockingCounter done(kMany);
  for (int i = 0; i < kMany; ++i) {
    SetDeadline(&contexts[i]);
    server.data()->async()->Get(&contexts[i], &request, &responses[i],
                                [&, i](grpc::Status status) {
                                  statuses[i] = std::move(status);
                                  done.DecrementCount();
                                });
  }
  done.Wait();
  EXPECT_GT(server.server().responses().waited, 0u);
  for (int i = 0; i < kMany; ++i) {
    EXPECT_TRUE(statuses[i].ok()) << statuses[i].error_message();
    EXPECT_EQ(responses[i].entry().value().size(), kUnreadBytes);
  }
}

}  // namespace
}  // namespace timecache::test
