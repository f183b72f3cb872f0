// Who calls, from where, and what took long.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/ops/call_log.h"
#include "tests/integration/security/access_fixture.h"
#include "tests/support/await.h"

namespace timecache::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Info = v1::ServerService::Stub;

std::vector<v1::Connection> Connections(Info* stub) {
  const auto response =
      Must(Call(stub, &Info::ListConnections, v1::ListConnectionsRequest()));
  return {response.connections().begin(), response.connections().end()};
}

TEST(OperatorTest, WithoutRulesACallerIsAnonymous) {
  TestServer server;
  const auto me =
      Must(Call(server.about(), &Info::WhoAmI, v1::WhoAmIRequest()));
  EXPECT_EQ(me.principal(), "anonymous");
  EXPECT_THAT(me.peer(), HasSubstr("127.0.0.1:"));
  EXPECT_FALSE(me.access_rules());
  EXPECT_THAT(me.permissions(), IsEmpty());
}

TEST(OperatorTest, AConnectionHasItsCallsAndItsCaller) {
  TestServer server;
  server.Put("a", "1");
  server.Get("a");
  const auto me =
      Must(Call(server.about(), &Info::WhoAmI, v1::WhoAmIRequest()));
  const auto all = Connections(server.about());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_GT(all[0].id(), 0u);
  EXPECT_EQ(absl::StrCat("ipv4:", all[0].peer()), me.peer());
  EXPECT_EQ(all[0].principal(), "anonymous");
  EXPECT_THAT(all[0].user_agent(), HasSubstr("grpc-c++/"));
  // This one is open.
  EXPECT_EQ(all[0].open_calls(), 1u);
  EXPECT_GE(all[0].calls(), 4u);
  EXPECT_TRUE(all[0].has_idle());
  EXPECT_LE(all[0].since().seconds(), server.now_us() / 1'000'000);
}

TEST(OperatorTest, ConnectionsAreListedInPagesByTheirAge) {
  TestServer server;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 3; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt("grpc.use_local_subchannel_pool", 1);
    channels.push_back(Connected(server.NewChannel(arguments)));
  }
  std::vector<uint64_t> ids;
  v1::ListConnectionsRequest request;
  request.set_page_size(2);
  do {
    const auto page =
        Must(Call(server.about(), &Info::ListConnections, request));
    EXPECT_LE(page.connections_size(), 2);
    for (const auto& each : page.connections()) ids.push_back(each.id());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_GE(ids.size(), 3u);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_EQ(std::set<uint64_t>(ids.begin(), ids.end()).size(), ids.size());
  ExpectInvalid(Call(server.about(), &Info::ListConnections,
                     Proto<v1::ListConnectionsRequest>("page_token: 'x'"))
                    .status,
                "page_token", "previous page");
  ExpectInvalid(Call(server.about(), &Info::ListConnections,
                     Proto<v1::ListConnectionsRequest>("page_size: -1"))
                    .status,
                "page_size", "negative");
}

TEST(OperatorTest, AClosedConnectionEndsItsCallsAndNoOthers) {
  TestServer server;
  grpc::ChannelArguments arguments;
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);
  arguments.SetInt("grpc.enable_retries", 0);
  const auto channel = Connected(server.NewChannel(arguments));
  Info other(channel);
  const auto peer =
      Must(Call(&other, &Info::WhoAmI, v1::WhoAmIRequest())).peer();
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto watch = v1::TimeCacheService::Stub(channel).WatchExpired(
      &context, Proto<v1::WatchExpiredRequest>("namespaces: 'default'"));
  v1::WatchExpiredResponse message;
  ASSERT_TRUE(watch->Read(&message));
  uint64_t id = 0;
  for (const auto& each : Connections(server.about())) {
    if (peer == absl::StrCat("ipv4:", each.peer())) id = each.id();
  }
  ASSERT_GT(id, 0u);
  v1::CloseConnectionRequest close;
  close.set_id(id);
  Must(Call(server.about(), &Info::CloseConnection, close));
  while (watch->Read(&message)) {
  }
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  ExpectError(Call(server.about(), &Info::CloseConnection, close).status,
              grpc::StatusCode::NOT_FOUND, v1::CONNECTION_NOT_FOUND);
  for (const auto& each : Connections(server.about())) EXPECT_NE(each.id(), id);
  ExpectInvalid(
      Call(server.about(), &Info::CloseConnection, v1::CloseConnectionRequest())
          .status,
      "id", "required");
}

TEST(OperatorTest, AConnectionThatEndsIsListedNoMore) {
  TestServer server;
  const size_t before = Connections(server.about()).size();
  {
    grpc::ChannelArguments arguments;
    arguments.SetInt("grpc.use_local_subchannel_pool", 1);
    const auto channel = Connected(server.NewChannel(arguments));
    EXPECT_EQ(Connections(server.about()).size(), before + 1);
  }
  Await([&] { return Connections(server.about()).size() == before; });
}

TEST(OperatorTest, SlowCallsAreThoseOfTheLog) {
  server::ManualClock clock(kStartUs);
  server::CallLog log(
      1, &clock, [](server::LogLevel, std::string_view, server::LogFields) {});
  TestServerOptions options;
  options.change = [&log](server::ServerOptions* to) {
    to->call_observers = {&log};
  };
  TestServer server(options);
  server.Put("a", "1");
  Must(Call(server.data(), &v1::TimeCacheService::Stub::Execute,
            Proto<v1::ExecuteRequest>(
                "namespace: 'default' operations { get { key: 'a' } } "
                "operations { put { } } operations { get { key: 'b' } }")));
  const auto calls = log.slow_calls().List();
  ASSERT_GE(calls.size(), 2u);
  EXPECT_EQ(calls[0].method, "timecache.v1.TimeCacheService/Execute");
  EXPECT_EQ(calls[0].operations, 3u);
  EXPECT_EQ(calls[0].name, "default");
  EXPECT_EQ(calls[0].principal, "anonymous");
  EXPECT_EQ(calls[1].method, "timecache.v1.TimeCacheService/Put");
  EXPECT_EQ(calls[1].operations, 1u);
  // Where nothing describes them there are none.
  const auto none = Must(
      Call(server.about(), &Info::ListSlowCalls, v1::ListSlowCallsRequest()));
  EXPECT_FALSE(none.has_threshold());
}

using OperatorAccessTest = AccessTest;

TEST_F(OperatorAccessTest, ACallerLearnsWhatItMayDo) {
  const auto reader = Must(As("reader", &Info::WhoAmI, ""));
  EXPECT_EQ(reader.principal(), "reader");
  EXPECT_TRUE(reader.access_rules());
  ASSERT_EQ(reader.permissions_size(), 1);
  EXPECT_EQ(reader.permissions(0).pattern(), "default");
  EXPECT_THAT(reader.permissions(0).verbs(), ElementsAre("READ"));
  const auto admin = Must(As("admin", &Info::WhoAmI, ""));
  ASSERT_EQ(admin.permissions_size(), 1);
  EXPECT_EQ(admin.permissions(0).pattern(), "*");
  EXPECT_THAT(admin.permissions(0).verbs(),
              ElementsAre("READ", "WRITE", "WATCH", "SETTLE", "ADMIN"));
  EXPECT_THAT(Must(As("nobody", &Info::WhoAmI, "")).permissions(), IsEmpty());
  ExpectUnknown(As("", &Info::WhoAmI, "").status, v1::NO_CREDENTIALS);
}

TEST_F(OperatorAccessTest, OnlyAdministratorsSeeWhoIsThere) {
  ExpectDenied(As("reader", &Info::ListConnections, "").status, "admin", "*");
  ExpectDenied(As("reader", &Info::CloseConnection, "id: 1").status, "admin",
               "*");
  ExpectDenied(As("reader", &Info::ListSlowCalls, "").status, "admin", "*");
  const auto all = Must(As("admin", &Info::ListConnections, ""));
  ASSERT_GE(all.connections_size(), 1);
  EXPECT_GE(all.connections(0).calls(), 1u);
}

}  // namespace
}  // namespace timecache::test
