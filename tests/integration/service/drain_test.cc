// Health, reflection, and the end of a server.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/main/config/config.h"
#include "server/rpc/watch/event_codec.h"
#include "tests/support/net/raw_connection.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

constexpr int64_t kDrainGraceUs = 60 * server::kMicrosPerSecond;

TEST(Health, KnowsTheServerAndNoService) {
  TestServer server;
  // HealthCheckRequest{service: "a"}.
  const std::string other =
      "\x0a\x01"
      "a";
  EXPECT_EQ(CallRaw(server.channel(), "/grpc.health.v1.Health/Watch", other),
            "\x08\x03");
  EXPECT_EQ(CallRaw(server.channel(), "/grpc.health.v1.Health/Check", other),
            "");
}

// ServerReflectionRequest{list_services: "*"}.
std::string ListServices(const TestServer& server) {
  return CallRaw(server.channel(),
                 "/grpc.reflection.v1alpha.ServerReflection/"
                 "ServerReflectionInfo",
                 "\x3a\x01*");
}

TEST(Reflection, ListsTheServices) {
  TestServer server;
  const std::string answer = ListServices(server);
  EXPECT_THAT(answer, HasSubstr("timecache.v1.TimeCacheService"));
  EXPECT_THAT(answer, HasSubstr("timecache.v1.NamespaceService"));
  EXPECT_THAT(answer, HasSubstr("timecache.v1.GroupService"));
  EXPECT_THAT(answer, HasSubstr("timecache.v1.ServerService"));
  EXPECT_THAT(answer, HasSubstr("timecache.testing.v1.VirtualClockService"));
  EXPECT_THAT(answer, HasSubstr("grpc.health.v1.Health"));
}

TEST(Reflection, IsNotServedWhereItIsOff) {
  TestServerOptions options;
  options.change = [](server::ServerOptions* to) { to->reflection = false; };
  TestServer server(options);
  EXPECT_EQ(ListServices(server), "");
}

TEST(Drain, ANewCallIsUnavailable) {
  TestServer server;
  server.Put("a", "1");
  EXPECT_TRUE(server.server().Drain(kDrainGraceUs).in_time);
  EXPECT_EQ(HealthOf(server.channel()), -1);
  EXPECT_EQ(Call(server.data(), &v1::TimeCacheService::Stub::Get,
                 Proto<v1::GetRequest>("namespace: 'default' key: 'a'"))
                .status.error_code(),
            StatusCode::UNAVAILABLE);
  WatchReader reader(server.data(), "default");
  EXPECT_EQ(reader.Drain().error_code(), StatusCode::UNAVAILABLE);
}

TEST(Drain, CallsInFlightFinish) {
  TestServer server;
  constexpr int kEntries = 30;
  server.Fill(kEntries, "k", std::string(1 << 20, 'v'));
  grpc::ClientContext context;
  SetDeadline(&context);
  auto reader = server.data()->Scan(
      &context, Proto<v1::ScanRequest>("namespace: 'default'"));
  v1::ScanResponse page;
  ASSERT_TRUE(reader->Read(&page));
  int entries = page.entries_size();
  // The end of a watch says that the drain has begun.
  WatchReader watcher(server.data(), "default");
  ASSERT_TRUE(watcher.Next());
  std::atomic<bool> drained{false};
  std::thread drain([&] {
    EXPECT_TRUE(server.server().Drain(kDrainGraceUs).in_time);
    drained = true;
  });
  EXPECT_TRUE(watcher.Drain().ok());
  EXPECT_FALSE(drained);
  while (reader->Read(&page)) entries += page.entries_size();
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(entries, kEntries);
  drain.join();
}

TEST(Drain, AStalledWatcherHoldsItForTheGracePeriodAndNoLonger) {
  TestServer server;
  WatchReader stalled(server.data(), "default");
  ASSERT_TRUE(stalled.Next());
  server.Fill(40, "k", std::string(1 << 20, 'v'));
  server.AdvanceBy(2 * kTtlUs);
  constexpr int64_t kGraceUs = 300'000;
  const absl::Time start = absl::Now();
  const server::DrainReport report = server.server().Drain(kGraceUs);
  EXPECT_FALSE(report.in_time);
  EXPECT_EQ(report.watchers_cut, 1u);
  const absl::Duration took = absl::Now() - start;
  EXPECT_GE(took, absl::Microseconds(kGraceUs));
  EXPECT_FALSE(stalled.Drain().ok());
}

TEST(Drain, AServerThatWasNeverDrainedEndsByItself) {
  auto server = std::make_unique<TestServer>();
  WatchReader reader(server->data(), "default");
  ASSERT_TRUE(reader.Next());
  server->Put("a", "1");
  // The stub of the reader's call may go before it.
  server.reset();
}

TEST(Drain, HealthWatchersAreToldAndDoNotHoldIt) {
  TestServer server;
  RawStream health(server.channel(), "/grpc.health.v1.Health/Watch", "");
  EXPECT_EQ(health.Next(), std::string("\x08\x01"));
  EXPECT_TRUE(server.server().Drain(kDrainGraceUs).in_time);
  EXPECT_EQ(health.Next(), std::string("\x08\x02"));
  EXPECT_EQ(health.Next(), std::nullopt);
}

// It neither answers PINGs nor closes its connection when it is asked to go.
TEST(Drain, AClientThatIsSilentDoesNotHoldIt) {
  TestServer server;
  const RawConnection silent(server.server().addresses().at(0));
  silent.Send(std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") +
              std::string("\0\0\0\4\0\0\0\0\0", 9));
  EXPECT_TRUE(silent.IsServed());
  EXPECT_TRUE(server.server().Drain(kDrainGraceUs).in_time);
}

}  // namespace
}  // namespace timecache::test
