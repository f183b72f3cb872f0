// WatchExpired over the wire: what its messages carry, in which order, and from
// where on.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using grpc::StatusCode;
using ::testing::IsEmpty;

class WatchTest : public ::testing::Test {
 protected:
  // Starts a watch and reads its first message.
  std::unique_ptr<WatchReader> Watch(const std::string& request) {
    auto reader = std::make_unique<WatchReader>(
        server_.data(), Proto<v1::WatchExpiredRequest>(request));
    const auto first = reader->Next();
    EXPECT_TRUE(first.has_value());
    if (first.has_value()) {
      EXPECT_THAT(first->events(), IsEmpty());
    }
    return reader;
  }

  TestServer server_;
};

TEST_F(WatchTest, DeliveredAtIsTheSameForAllWatchersHoweverLateTheyRead) {
  const auto early = Watch("namespaces: 'default'");
  server_.Put("a", "1");
  server_.AdvanceTo(DeathUs(kStartUs) + 5);
  const int64_t published_us = server_.now_us();
  server_.AdvanceBy(kTtlUs);
  const auto late = std::make_unique<WatchReader>(
      server_.data(), Proto<v1::WatchExpiredRequest>(
                          "namespaces: 'default' start: WATCH_START_EARLIEST "
                          "keys_only: true"));
  for (WatchReader* reader : {early.get(), late.get()}) {
    const auto events = reader->ReadUpTo(server_.now_us());
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(ToUs(events[0].delivered_at()), published_us);
  }
}

TEST_F(WatchTest, ARequestThatIsNoneIsRefused) {
  grpc::GenericStub stub(server_.channel());
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(
      &context, "/timecache.v1.TimeCacheService/WatchExpired", &queue);
  int tag = 0;
  const auto await = [&queue] {
    void* got;
    bool ok = false;
    return queue.Next(&got, &ok) && ok;
  };
  call->StartCall(&tag);
  ASSERT_TRUE(await());
  // Field 1, of 100 bytes, and then nothing.
  const grpc::Slice slice("\x0a\x64");
  call->WriteLast(grpc::ByteBuffer(&slice, 1), {}, &tag);
  ASSERT_TRUE(await());
  grpc::Status status;
  call->Finish(&status, &tag);
  ASSERT_TRUE(await());
  ExpectError(status, StatusCode::INVALID_ARGUMENT, v1::MALFORMED_REQUEST,
              "is not a timecache.v1.WatchExpiredRequest");
}

TEST_F(WatchTest, EveryHeartbeatSaysTheServersTime) {
  const auto reader = Watch("namespaces: 'default'");
  for (int i = 0; i < 5; ++i) {
    server_.AdvanceBy(1 + i);
    const auto heartbeat = reader->Next();
    ASSERT_TRUE(heartbeat.has_value());
    EXPECT_THAT(heartbeat->events(), IsEmpty());
    EXPECT_EQ(ToUs(heartbeat->watermark()), server_.now_us());
  }
}

TEST_F(WatchTest, OneDeletedNamespaceOfSeveralEndsTheStream) {
  server_.Create("other");
  WatchReader reader(server_.data(),
                     Proto<v1::WatchExpiredRequest>(
                         "namespaces: 'default' namespaces: 'other'"));
  ASSERT_TRUE(reader.Next() && reader.Next());
  Must(Call(server_.namespaces(), &v1::NamespaceService::Stub::DeleteNamespace,
            Proto<v1::DeleteNamespaceRequest>("name: 'other'")));
  ExpectError(reader.Drain(), StatusCode::NOT_FOUND, v1::NAMESPACE_NOT_FOUND,
              "other was deleted");
}

TEST_F(WatchTest, CancelledWatchersAreForgotten) {
  {
    std::vector<std::unique_ptr<WatchReader>> readers;
    for (int i = 0; i < 20; ++i) {
      readers.push_back(Watch("namespaces: 'default'"));
    }
    server_.AwaitWatchers(20);
    readers[0]->Cancel();
    EXPECT_EQ(readers[0]->Drain().error_code(), StatusCode::CANCELLED);
    server_.AwaitWatchers(19);
  }
  server_.AwaitWatchers(0);
}

TEST(WatchLimit, OneWatcherTooManyIsRefusedUntilAnotherGoes) {
  TestServerOptions options;
  options.max_watchers = 2;
  TestServer server(options);
  WatchReader first(server.data(), "default");
  WatchReader second(server.data(), "default");
  ASSERT_TRUE(first.Next() && second.Next());
  WatchReader third(server.data(), "default");
  ExpectError(third.Drain(), StatusCode::RESOURCE_EXHAUSTED, v1::MAX_WATCHERS,
              "max_watchers of 2");
  first.Cancel();
  EXPECT_EQ(first.Drain().error_code(), StatusCode::CANCELLED);
  // The cancelled one counts until the server has heard of it.
  Await(
      [&] { return WatchReader(server.data(), "default").Next().has_value(); });
}

}  // namespace
}  // namespace timecache::test
