// What clients may cost the server, and how it refuses more.
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/api/access.h"
#include "server/api/proto_time.h"
#include "tests/support/await.h"
#include "tests/support/end_observer.h"
#include "tests/support/group_client.h"
#include "tests/support/net/raw_connection.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kLimitsPatience = absl::Seconds(60);

using Data = v1::TimeCacheService::Stub;

TestServerOptions With(std::function<void(config::v1::ServerLimits*)> change) {
  TestServerOptions options;
  options.change = [change = std::move(change)](server::ServerOptions* to) {
    change(&to->limits);
  };
  return options;
}

// --- Connections.

TEST(ConnectionLimit, OneTooManyIsClosedUntilAnotherGoes) {
  TestServer server(With([](config::v1::ServerLimits* limits) {
    limits->set_max_connections(4);
  }));
  const std::string address = server.server().addresses().at(0);
  // The test server's own is the first.
  std::vector<std::unique_ptr<RawConnection>> open;
  for (int i = 0; i < 3; ++i) {
    open.push_back(std::make_unique<RawConnection>(address));
    EXPECT_TRUE(open.back()->IsServed());
  }
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(RawConnection(address).IsServed());
  EXPECT_EQ(server.server().refused_connections(), 10u);
  EXPECT_EQ(server.server().connections(), 4u);
  // The others are served all the while.
  server.Put("key", "value");
  open.pop_back();
  Await([&] { return RawConnection(address).IsServed(); });
}

// Rules that know nobody: all clients are strangers. (Without rules those of the
// loopback are known, and not paced.)
class NobodyIsKnown final : public server::Access {
 public:
  absl::StatusOr<std::shared_ptr<const server::Caller>> Authenticate(
      const server::Credentials& /*credentials*/) const override {
    return absl::UnauthenticatedError("a stranger");
  }
  std::shared_ptr<const server::Caller> FindPrincipal(
      absl::string_view /*name*/) const override {
    return nullptr;
  }
  uint64_t generation() const override { return 1; }
  void SetListener(std::function<void()> /*on_change*/) override {}
};

TestServerOptions OfStrangers(server::Access* access, uint32_t per_second) {
  TestServerOptions options =
      With([per_second](config::v1::ServerLimits* limits) {
        limits->set_max_new_connections_per_second(per_second);
      });
  options.access = access;
  return options;
}

TEST(ConnectionPace, WhatComesTooFastWaitsForItsTurn) {
  NobodyIsKnown access;
  TestServer server(OfStrangers(&access, 2));
  const std::string address = server.server().addresses().at(0);
  std::vector<std::unique_ptr<RawConnection>> open;
  for (int i = 0; i < 4; ++i) {
    open.push_back(std::make_unique<RawConnection>(address));
  }
  for (const auto& connection : open) EXPECT_TRUE(connection->IsServed());
  EXPECT_GE(server.server().pacer().delayed(), 2u);
  EXPECT_EQ(server.server().pacer().refused(), 0u);
}

TEST(ConnectionPace, KnownClientsDoNotWait) {
  TestServer server(With([](config::v1::ServerLimits* limits) {
    limits->set_max_new_connections_per_second(1);
  }));
  server.Put("key", "value");
  const std::string address = server.server().addresses().at(0);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(RawConnection(address).IsServed());
  }
  EXPECT_EQ(server.server().pacer().delayed(), 0u);
}

TEST(ConnectionPace, WhatIsClosedWhileItWaitsIsDropped) {
  NobodyIsKnown access;
  TestServer server(OfStrangers(&access, 1));
  const std::string address = server.server().addresses().at(0);
  const RawConnection first(address);
  EXPECT_TRUE(first.IsServed());
  for (int i = 0; i < 10; ++i) const RawConnection gone(address);
  const RawConnection last(address);
  EXPECT_TRUE(last.IsServed());
  EXPECT_GE(server.server().pacer().gone(), 8u);
}

TEST(ConnectionPace, AUnixSocketHasNone) {
  const std::string path =
      absl::StrCat("unix:/tmp/timecached_pace_", getpid(), ".socket");
  TestServerOptions options = With([](config::v1::ServerLimits* limits) {
    limits->set_max_new_connections_per_second(1);
  });
  options.change = [path, change = options.change](server::ServerOptions* to) {
    change(to);
    to->addresses.push_back(path);
  };
  TestServer server(options);
  for (int i = 0; i < 20; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    Connected(grpc::CreateCustomChannel(
        path, grpc::InsecureChannelCredentials(), arguments));
  }
  EXPECT_EQ(server.server().pacer().delayed(), 0u);
}

TEST(ConnectionLimit, CallsOfOneConnectionWaitForEachOther) {
  TestServer server(With([](config::v1::ServerLimits* limits) {
    limits->set_max_calls_per_connection(2);
  }));
  const auto data = v1::TimeCacheService::NewStub(server.NewChannel());
  WatchReader first(data.get(), "default");
  WatchReader second(data.get(), "default");
  ASSERT_TRUE(first.Next() && second.Next());
  v1::ContainsRequest request;
  request.set_namespace_("default");
  request.set_key("key");
  v1::ContainsResponse response;
  grpc::ClientContext waits;
  waits.set_deadline(std::chrono::system_clock::now() +
                     std::chrono::milliseconds(100));
  EXPECT_EQ(data->Contains(&waits, request, &response).error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  // Another connection has its own.
  Must(Call(server.data(), &Data::Contains, request));
  first.Cancel();
  Must(Call(data.get(), &Data::Contains, request));
}

// --- Calls.

TEST(CallLimit, AScanWhoseReaderStallsEndsInTime) {
  grpc::StatusCode code = StatusCode::UNKNOWN;
  absl::Notification ended;
  EndObserver observer([&](const server::CallRecord& record) {
    if (record.method.name != "Scan") return;
    code = record.code;
    ended.Notify();
  });
  TestServerOptions options;
  options.change = [&](server::ServerOptions* to) {
    server::SetDuration(server::kMicrosPerSecond / 10,
                        to->limits.mutable_max_call_duration());
    to->call_observers.push_back(&observer);
  };
  TestServer server(options);
  // Much more than is in flight on a connection.
  server.Fill(500, "key", std::string(100'000, 'v'));
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto reader = server.data()->Scan(
      &context, Proto<v1::ScanRequest>("namespace: 'default'"));
  ASSERT_TRUE(ended.WaitForNotificationWithTimeout(kLimitsPatience));
  EXPECT_EQ(code, StatusCode::DEADLINE_EXCEEDED);
  v1::ScanResponse page;
  int entries = 0;
  while (reader->Read(&page)) entries += page.entries_size();
  EXPECT_LT(entries, 500);
  // The status passes what was not read.
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("position of the last page"));
  // The server goes on.
  server.Put("key", "value");
}

TEST(CallLimit, AScanGoesOnForAsLongAsItsReaderReads) {
  TestServerOptions options;
  options.change = [&](server::ServerOptions* to) {
    server::SetDuration(server::kMicrosPerSecond / 2,
                        to->limits.mutable_max_call_duration());
  };
  TestServer server(options);
  server.Fill(300, "key", std::string(100'000, 'v'));
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto reader = server.data()->Scan(
      &context, Proto<v1::ScanRequest>("namespace: 'default'"));
  v1::ScanResponse page;
  int entries = 0;
  const absl::Time begun = absl::Now();
  while (reader->Read(&page)) {
    entries += page.entries_size();
    // The client is busy between pages, for longer than the limit in all.
    const absl::Time read = absl::Now();
    while (absl::Now() - read < absl::Milliseconds(40)) {
      server.Put("other", "value");
    }
  }
  EXPECT_GE(entries, 300);
  EXPECT_GT(absl::Now() - begun, absl::Milliseconds(500));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST(WatcherLimit, AMemberTooManyLeavesNoGroupBehind) {
  TestServerOptions options;
  options.max_watchers = 1;
  TestServer server(options);
  WatchReader watcher(server.data(), "default");
  ASSERT_TRUE(watcher.Next());
  GroupClient group(&server);
  ExpectError(group.Start()->Drain(), StatusCode::RESOURCE_EXHAUSTED,
              v1::MAX_WATCHERS);
  EXPECT_THAT(Must(Call(server.groups(), &v1::GroupService::Stub::ListGroups,
                        Proto<v1::ListGroupsRequest>("namespace: 'default'")))
                  .groups(),
              IsEmpty());
}

}  // namespace
}  // namespace timecache::test
