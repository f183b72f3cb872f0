#include "client/examples/session_store.h"

#include <thread>
#include <vector>

#include "client/cpp/convert.h"
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
  EXPECT_EQ(FromProto(ns->options().ttl()), absl::Minutes(30));
  EXPECT_EQ(ns->options().num_buckets(), 101u);
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
  const absl::Status status = SessionStore(client).Add(Line("v", 1, 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--namespace"));
  EXPECT_EQ((*client.Get("v"))->value, "something else");
}

TEST(SessionStore, RequestsOfSeveralAtOnceAllCount) {
  constexpr int kThreads = 4;
  constexpr int kRequests = 200;
  const ServerProcess server({"--virtual-clock"});
  const Client client = server.MakeClient("sessions");
  ASSERT_TRUE(PrepareNamespace(client, {}).ok());
  const SessionStore store(client);
  std::vector<std::thread> threads;
  std::vector<absl::Status> outcomes(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&store, &outcome = outcomes[t], t] {
      for (int i = 0; i < kRequests && outcome.ok(); ++i) {
        outcome = store.Add(Line("v", 1000 * t + i, 3));
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
