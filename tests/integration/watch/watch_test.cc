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
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

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

TEST_F(WatchTest, TheFirstMessageComesAtOnceAndSaysWhereTheWatchStarts) {
  WatchReader reader(server_.data(), "default");
  const auto first = reader.Next();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->namespace_(), "default");
  EXPECT_THAT(first->events(), IsEmpty());
  EXPECT_EQ(ToUs(first->watermark()), kStartUs);
  EXPECT_EQ(first->lost(), 0u);
  EXPECT_EQ(server_.Describe().statistics().watchers(), 1u);
}

TEST_F(WatchTest, AnEventCarriesAllThatIsKnownOfTheEntry) {
  const auto reader = Watch("namespaces: 'default'");
  const uint64_t version = server_.Put("a", "one");
  const int64_t death_us = DeathUs(kStartUs);
  server_.AdvanceTo(death_us - 1);
  EXPECT_THAT(reader->ReadUpTo(death_us - 1), IsEmpty());
  server_.AdvanceTo(death_us + 5);
  const auto events = reader->ReadUpTo(death_us + 5);
  ASSERT_EQ(events.size(), 1u);
  const v1::ExpiredEvent& event = events[0];
  EXPECT_EQ(event.namespace_(), "default");
  EXPECT_EQ(event.key(), "a");
  EXPECT_EQ(event.value(), "one");
  EXPECT_EQ(event.version(), version);
  EXPECT_EQ(ToUs(event.put_time()), kStartUs);
  EXPECT_EQ(ToUs(event.deadline()), kStartUs + kTtlUs);
  EXPECT_EQ(ToUs(event.death_time()), death_us);
  EXPECT_EQ(ToUs(event.delivered_at()), death_us + 5);
  EXPECT_EQ(event.cause(), v1::EXPIRY_CAUSE_EXPIRED);
}

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

TEST_F(WatchTest, EventsComeInOrderOfDeathWhateverTheOrderOfPuts) {
  const auto reader = Watch("namespaces: 'default'");
  server_.Put("third", "", 20 * server::kMicrosPerSecond);
  server_.Put("first", "", 5 * server::kMicrosPerSecond);
  server_.Put("second", "", 10 * server::kMicrosPerSecond);
  server_.AdvanceBy(3600 * server::kMicrosPerSecond);
  EXPECT_THAT(KeysOf(reader->ReadUpTo(server_.now_us())),
              ElementsAre("first", "second", "third"));
}

TEST_F(WatchTest, OverwritesAndRemovesMakeNoEvent) {
  const auto reader = Watch("namespaces: 'default'");
  server_.Put("a", "old");
  const uint64_t version = server_.Put("a", "new");
  server_.Put("b", "gone");
  Must(Call(server_.data(), &v1::TimeCacheService::Stub::Remove,
            Proto<v1::RemoveRequest>("namespace: 'default' key: 'b'")));
  server_.AdvanceBy(2 * kTtlUs);
  const auto events = reader->ReadUpTo(server_.now_us());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].value(), "new");
  EXPECT_EQ(events[0].version(), version);
}

TEST_F(WatchTest, AReputOfADeadKeyLeavesItsEventAlone) {
  const auto reader = Watch("namespaces: 'default'");
  const uint64_t first = server_.Put("a", "one");
  server_.AdvanceTo(DeathUs(kStartUs));
  const uint64_t second = server_.Put("a", "two");
  server_.AdvanceBy(2 * kTtlUs);
  const auto events = reader->ReadUpTo(server_.now_us());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].value(), "one");
  EXPECT_EQ(events[0].version(), first);
  EXPECT_EQ(events[1].value(), "two");
  EXPECT_EQ(events[1].version(), second);
}

TEST_F(WatchTest, TheCauseTellsEvictionAndRotationFromExpiry) {
  server_.Create("full",
                 "max_entries: 1 limit_policy: LIMIT_POLICY_EVICT_OLDEST");
  const auto reader = Watch("namespaces: 'full'");
  server_.Put("a", "1", 0, "full");
  server_.Put("b", "2", 0, "full");
  EXPECT_EQ(server_.Rotate("full"), 1u);
  server_.Put("c", "3", 0, "full");
  server_.AdvanceBy(2 * kTtlUs);
  const auto events = reader->ReadUpTo(server_.now_us(), "full");
  EXPECT_THAT(KeysOf(events), ElementsAre("a", "b", "c"));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].cause(), v1::EXPIRY_CAUSE_EVICTED);
  EXPECT_EQ(events[1].cause(), v1::EXPIRY_CAUSE_ROTATED);
  EXPECT_EQ(events[2].cause(), v1::EXPIRY_CAUSE_EXPIRED);
}

TEST_F(WatchTest, KeysOnlyLeavesTheValuesOut) {
  const auto reader = Watch("namespaces: 'default' keys_only: true");
  server_.Put("a", "one");
  server_.AdvanceBy(2 * kTtlUs);
  const auto events = reader->ReadUpTo(server_.now_us());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].key(), "a");
  EXPECT_EQ(events[0].value(), "");
}

TEST_F(WatchTest, APrefixFiltersOnTheServer) {
  const auto reader = Watch("namespaces: 'default' key_prefix: 'user/'");
  server_.Put("user/1", "1");
  server_.Put("order/1", "2");
  server_.Put("user", "3");
  server_.AdvanceBy(2 * kTtlUs);
  EXPECT_THAT(KeysOf(reader->ReadUpTo(server_.now_us())),
              ElementsAre("user/1"));
  server_.Put("order/2", "4");
  server_.AdvanceBy(2 * kTtlUs);
  EXPECT_THAT(reader->ReadUpTo(server_.now_us()), IsEmpty());
}

TEST_F(WatchTest, OneStreamTellsOfSeveralNamespaces) {
  server_.Create("other", "ttl { seconds: 10 } num_buckets: 2");
  WatchReader reader(server_.data(),
                     Proto<v1::WatchExpiredRequest>(
                         "namespaces: 'default' namespaces: 'other'"));
  EXPECT_THAT((std::vector<std::string>{reader.Next()->namespace_(),
                                        reader.Next()->namespace_()}),
              UnorderedElementsAre("default", "other"));
  server_.Put("a", "1");
  server_.Put("b", "2", 0, "other");
  server_.AdvanceBy(2 * kTtlUs);
  std::vector<std::string> told;
  for (std::set<std::string> complete; complete.size() < 2;) {
    const auto message = reader.Next();
    ASSERT_TRUE(message.has_value());
    for (const auto& event : message->events()) {
      told.push_back(absl::StrCat(message->namespace_(), "/", event.key()));
    }
    if (ToUs(message->watermark()) == server_.now_us()) {
      complete.insert(message->namespace_());
    }
  }
  EXPECT_THAT(told, UnorderedElementsAre("default/a", "other/b"));
}

TEST_F(WatchTest, NowSkipsWhatDiedBeforeAndEarliestTellsIt) {
  server_.Put("a", "1");
  server_.AdvanceBy(2 * kTtlUs);
  const auto now = Watch("namespaces: 'default' start: WATCH_START_NOW");
  WatchReader earliest(
      server_.data(), Proto<v1::WatchExpiredRequest>(
                          "namespaces: 'default' start: WATCH_START_EARLIEST"));
  EXPECT_THAT(KeysOf(earliest.ReadUpTo(server_.now_us())), ElementsAre("a"));
  server_.Put("b", "2");
  server_.AdvanceBy(2 * kTtlUs);
  EXPECT_THAT(KeysOf(now->ReadUpTo(server_.now_us())), ElementsAre("b"));
  EXPECT_THAT(KeysOf(earliest.ReadUpTo(server_.now_us())), ElementsAre("b"));
  EXPECT_EQ(earliest.lost(), 0u);
}

TEST_F(WatchTest, EarliestTellsNoMoreThanIsRetained) {
  server_.Create("brief", "event_retention { seconds: 60 }");
  server_.Put("a", "1", 0, "brief");
  server_.AdvanceTo(DeathUs(kStartUs));
  server_.AdvanceBy(60 * server::kMicrosPerSecond - 1);
  const std::string request = "namespaces: 'brief' start: WATCH_START_EARLIEST";
  {
    WatchReader reader(server_.data(), Proto<v1::WatchExpiredRequest>(request));
    EXPECT_THAT(KeysOf(reader.ReadUpTo(server_.now_us(), "brief")),
                ElementsAre("a"));
  }
  server_.AwaitWatchers(0, "brief");
  server_.AdvanceBy(1);
  WatchReader reader(server_.data(), Proto<v1::WatchExpiredRequest>(request));
  EXPECT_THAT(reader.ReadUpTo(server_.now_us(), "brief"), IsEmpty());
  EXPECT_EQ(server_.Describe("brief").statistics().events_retained(), 0u);
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

TEST_F(WatchTest, ADeletedNamespaceTellsTheRestAndThenEndsTheStream) {
  const auto reader = Watch("namespaces: 'default'");
  server_.Put("a", "1");
  server_.Put("live", "2", 3600 * server::kMicrosPerSecond);
  server_.AdvanceBy(2 * kTtlUs);
  Must(Call(server_.namespaces(), &v1::NamespaceService::Stub::DeleteNamespace,
            Proto<v1::DeleteNamespaceRequest>("name: 'default'")));
  ExpectError(reader->Drain(), StatusCode::NOT_FOUND, v1::NAMESPACE_NOT_FOUND,
              "default was deleted");
  EXPECT_EQ(reader->events(), 1u);
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
