// WatchExpiring over the wire: what is going to die, told in time
// to Touch it.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/main/config/config.h"
#include "tests/support/effort.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kLead[] = "namespaces: 'default' lead_time { seconds: 5 } ";

class LeadTimeTest : public ::testing::Test {
 protected:
  // Starts a watch and reads its first message.
  std::unique_ptr<WatchReader> Watch(const std::string& request) {
    auto reader = std::make_unique<WatchReader>(
        server_.data(), Proto<v1::WatchExpiringRequest>(request));
    const auto first = reader->Next();
    EXPECT_TRUE(first.has_value());
    return reader;
  }

  TestServer server_;
};

// Ten lives of everything, and not a single death.
TEST_F(LeadTimeTest, AClientThatTouchesAllItIsToldKeepsEverythingAlive) {
  constexpr int kEntries = Rounds(300);
  WatchReader deaths(server_.data(), "default");
  ASSERT_TRUE(deaths.Next());
  const auto reader = Watch(kLead);
  const int64_t end_us = kStartUs + 10 * kTtlUs;
  int put = 0;
  size_t told = 0;
  while (server_.now_us() < end_us) {
    // All ages, and some with a TTL of their own.
    for (int i = 0; i < 5 && put < kEntries; ++i, ++put) {
      server_.Put(absl::StrCat("key", put), "v",
                  put % 3 == 0 ? (6 + put % 7) * server::kMicrosPerSecond : 0);
    }
    server_.AdvanceBy(700'000);
    for (const auto& event : reader->ReadUpTo(server_.now_us())) {
      ++told;
      v1::TouchRequest touch;
      touch.set_namespace_("default");
      touch.set_key(event.key());
      EXPECT_TRUE(
          Must(Call(server_.data(), &v1::TimeCacheService::Stub::Touch, touch))
              .touched());
    }
  }
  EXPECT_THAT(deaths.ReadUpTo(server_.now_us()), IsEmpty());
  EXPECT_EQ(server_.Describe().statistics().entries(), uint64_t{kEntries});
  EXPECT_GE(told, size_t{kEntries} * 8);
  // Nobody touches them any more.
  server_.AdvanceBy(2 * kTtlUs);
  EXPECT_THAT(deaths.ReadUpTo(server_.now_us()), SizeIs(kEntries));
}

TEST_F(LeadTimeTest, AMassOfThemComesInMessagesThatClientsTake) {
  constexpr int kEntries = 50'000;
  server_.Fill(kEntries, "key", std::string(100, 'v'));
  WatchReader reader(server_.data(),
                     Proto<v1::WatchExpiringRequest>(
                         "namespaces: 'default' lead_time { seconds: 60 }"));
  EXPECT_THAT(reader.ReadUpTo(kStartUs), SizeIs(kEntries));
  EXPECT_LT(reader.largest_message_bytes(), size_t{3} << 20);
}

TEST_F(LeadTimeTest, TheEndOfTheServerIsAGoodEnd) {
  const auto reader = Watch(kLead);
  server_.Put("a", "v", 2 * server::kMicrosPerSecond);
  EXPECT_TRUE(server_.server().Drain(60 * server::kMicrosPerSecond).in_time);
  // The last message looks once more.
  const auto last = reader->Next();
  ASSERT_TRUE(last.has_value());
  EXPECT_THAT(last->events(), SizeIs(1));
  const grpc::Status status = reader->Drain();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// Neither a heartbeat nor the virtual clock comes to its help.
TEST(LeadTimeOnTheSystemClockTest, TheStreamWakesByItselfWhenSomethingIsDue) {
  server::SystemClock clock;
  server::Reaper reaper(&clock);
  server::Registry registry(&clock, &reaper, server::RegistryLimits());
  server::ServerOptions options;
  options.limits = server::DefaultConfig().limits();
  options.addresses = {"127.0.0.1:0"};
  server::LocalStore store(&registry, &clock);
  server::Server server(&store, &clock, options);
  ASSERT_TRUE(server.Start().ok());
  server::NamespaceOptions map_options;
  map_options.ttl_us = 3'600 * server::kMicrosPerSecond;
  map_options.num_buckets = 36'001;
  auto map = registry.Create("default", map_options);
  ASSERT_TRUE(map.ok()) << map.status();
  const auto stub = v1::TimeCacheService::NewStub(Connected(grpc::CreateChannel(
      server.addresses().at(0), grpc::InsecureChannelCredentials())));
  WatchReader reader(stub.get(),
                     Proto<v1::WatchExpiringRequest>(
                         "namespaces: 'default' lead_time { seconds: 3599 } "
                         "heartbeat_interval { seconds: 3600 }"));
  const auto first = reader.Next();
  ASSERT_TRUE(first.has_value());
  EXPECT_THAT(first->events(), IsEmpty());
  v1::PutRequest put;
  put.set_namespace_("default");
  put.set_key("a");
  Must(Call(stub.get(), &v1::TimeCacheService::Stub::Put, put));
  const auto told = reader.Next();
  ASSERT_TRUE(told.has_value());
  ASSERT_THAT(told->events(), SizeIs(1));
  EXPECT_EQ(told->events(0).key(), "a");
  EXPECT_LE(
      ToUs(told->events(0).death_time()) - ToUs(told->events(0).delivered_at()),
      3'599 * server::kMicrosPerSecond);
  reader.Cancel();
  reader.Drain();
  EXPECT_TRUE(server.Drain(60 * server::kMicrosPerSecond).in_time);
}

TEST(LeadTimeLimit, OneWatchMoreThanANamespaceMayHaveIsRefused) {
  TestServer server;
  server.Create("other");
  const auto watch = [&server](const std::string& name) {
    return std::make_unique<WatchReader>(
        server.data(),
        Proto<v1::WatchExpiringRequest>(
            absl::StrCat("namespaces: '", name, "' lead_time { seconds: 5 }")));
  };
  std::vector<std::unique_ptr<WatchReader>> open;
  for (int i = 0; i < 256; ++i) {
    open.push_back(watch("default"));
    ASSERT_TRUE(open.back()->Next());
  }
  ExpectError(watch("default")->Drain(), grpc::StatusCode::RESOURCE_EXHAUSTED,
              v1::MAX_EXPIRING_WATCHERS, "its most streams, 256,");
  EXPECT_TRUE(watch("other")->Next());
  EXPECT_TRUE(WatchReader(server.data(), "default").Next());
}

}  // namespace
}  // namespace timecache::test
