#include "client/examples/session_store.h"

#include <memory>
#include <thread>
#include <vector>

#include "client/examples/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "tests/examples/server_process.h"

namespace timecache::sessionize {
namespace {

using ::testing::HasSubstr;

LogLine Line(const std::string& visitor, int64_t unix_s, uint64_t bytes) {
  return {visitor, absl::FromUnixSeconds(unix_s), bytes};
}

TEST(SessionStore, NamespaceIsMadeAsWishedAndFoundAgain) {
  const FakeService service;
  const Client client = service.MakeClient({.default_namespace = "sessions"});
  auto ns = PrepareNamespace(client, {});
  ASSERT_TRUE(ns.ok()) << ns.status();
  EXPECT_EQ(ns->options.ttl, absl::Minutes(30));
  EXPECT_EQ(ns->options.num_buckets, 101u);
  EXPECT_TRUE(PrepareNamespace(client, {}).ok());
  EXPECT_TRUE(PrepareNamespace(client, {absl::Minutes(30), 101}).ok());
}

TEST(SessionStore, NamespaceThatIsOtherThanWishedIsRefused) {
  const FakeService service;
  const Client client = service.MakeClient({.default_namespace = "sessions"});
  ASSERT_TRUE(PrepareNamespace(client, {absl::Minutes(10), 11}).ok());
  EXPECT_TRUE(PrepareNamespace(client, {}).ok());
  for (const NamespaceWish& wish :
       {NamespaceWish{absl::Minutes(30), {}}, NamespaceWish{{}, 101}}) {
    const absl::Status status = PrepareNamespace(client, wish).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("a ttl of 10m and 11 buckets"));
  }
}

TEST(SessionStore, EntryThatIsNoSessionIsLeftAlone) {
  const FakeService service;
  const Client client = service.MakeClient();
  ASSERT_TRUE(client.Put("v", "something else").ok());
  const absl::Status status = SessionStore(client).Add({Line("v", 1, 1)});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--namespace"));
  EXPECT_EQ((*client.Get("v"))->value, "something else");
}

TEST(SessionStore, ManyRequestsGoIntoTheirVisitorsSessions) {
  const FakeService service;
  const Client client = service.MakeClient();
  SessionStore store(client);
  EXPECT_EQ(store.last_visitor(), "");
  EXPECT_TRUE(store.Add({}).ok());
  ASSERT_TRUE(store.Add({Line("a", 5, 1)}).ok());
  ASSERT_TRUE(store
                  .Add({Line("b", 7, 10), Line("a", 4, 2), Line("b", 6, 20),
                        Line("a", 9, 4), Line("c", 8, 100)})
                  .ok());
  EXPECT_EQ(store.last_visitor(), "c");
  const auto session = [&client](const std::string& visitor) {
    return *DecodeSession((*client.Get(visitor))->value);
  };
  EXPECT_EQ(session("a"), (Session{absl::FromUnixSeconds(4),
                                   absl::FromUnixSeconds(9), 3, 7}));
  EXPECT_EQ(session("b"), (Session{absl::FromUnixSeconds(6),
                                   absl::FromUnixSeconds(7), 2, 30}));
  EXPECT_EQ(session("c"), (Session{absl::FromUnixSeconds(8),
                                   absl::FromUnixSeconds(8), 1, 100}));
}

TEST(SessionStore, ServerThatIsGoneIsAnErrorAndNotAWait) {
  auto service = std::make_unique<FakeService>();
  SessionStore store(service->MakeClient());
  ASSERT_TRUE(store.Add({Line("a", 5, 1)}).ok());
  service.reset();
  EXPECT_FALSE(store.Add({Line("a", 5, 1), Line("b", 5, 1)}).ok());
}

TEST(SessionStore, RequestsOfSeveralAtOnceAllCount) {
  constexpr int kThreads = 4;
  constexpr int kRequests = 200;
  const ServerProcess server({"--virtual-clock"});
  const Client client = server.MakeClient("sessions");
  ASSERT_TRUE(PrepareNamespace(client, {}).ok());
  std::vector<std::thread> threads;
  std::vector<absl::Status> outcomes(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&client, &outcome = outcomes[t], t] {
      SessionStore store(client);
      for (int i = 0; i < kRequests && outcome.ok(); ++i) {
        outcome = store.Add({Line("v", 1000 * t + i, 3)});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& outcome : outcomes) EXPECT_TRUE(outcome.ok());
  const auto entry = client.Get("v");
  ASSERT_TRUE(entry.ok() && *entry);
  EXPECT_EQ(
      *DecodeSession((*entry)->value),
      (Session{absl::FromUnixSeconds(0),
               absl::FromUnixSeconds(1000 * (kThreads - 1) + kRequests - 1),
               kThreads * kRequests, 3 * kThreads * kRequests}));
}

}  // namespace
}  // namespace timecache::sessionize
