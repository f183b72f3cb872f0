// WatchExpired over the wire: what its messages carry, in which order, and from
// where on.
#include <string>
#include <vector>

#include "gmock/gmock.h"
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
