// expire_at of Put, Touch and PUT_BACK, own_ttl and create_time, over the wire:
// in single calls, in batches and pipelines.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/group_client.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using Stub = v1::TimeCacheService::Stub;
using ::testing::ElementsAre;

constexpr int64_t kSecond = server::kMicrosPerSecond;
constexpr char kPast[] = "expire_at { seconds: 7 nanos: 1 }";
constexpr char kPastField[] = "expire_at";

class DueDateTest : public ::testing::Test {
 protected:
  // A time as a field.
  std::string At(int64_t time_us) const {
    return absl::StrCat("expire_at { seconds: ", time_us / kSecond,
                        " nanos: ", time_us % kSecond * 1'000, " } ");
  }
  Reply<v1::PutResponse> Put(const std::string& request) {
    return Call(server_.data(), &Stub::Put,
                Proto<v1::PutRequest>("namespace: 'default' " + request));
  }
  Reply<v1::TouchResponse> Touch(const std::string& request) {
    return Call(server_.data(), &Stub::Touch,
                Proto<v1::TouchRequest>("namespace: 'default' " + request));
  }
  // Of Execute, and of a Pipeline.
  std::vector<v1::ExecuteResponse> Apply(const std::string& operations) {
    const auto request = Proto<v1::ExecuteRequest>(
        absl::StrCat("namespace: 'default' ", operations));
    std::vector<v1::ExecuteResponse> responses = {
        Must(Call(server_.data(), &Stub::Execute, request))};
    grpc::ClientContext context;
    const auto stream = server_.data()->Pipeline(&context);
    EXPECT_TRUE(stream->Write(request));
    stream->WritesDone();
    EXPECT_TRUE(stream->Read(&responses.emplace_back()));
    EXPECT_TRUE(stream->Finish().ok());
    return responses;
  }

  TestServer server_;
};

TEST_F(DueDateTest, IsTheDeadlineAndNoOwnTtl) {
  const int64_t due_us = server_.now_us() + 100 * kSecond + 5;
  Must(Put("key: 'a' value: 'v' " + At(due_us)));
  server_.AdvanceBy(kSecond);
  const v1::Entry entry = server_.Get("a").entry();
  EXPECT_EQ(ToUs(entry.deadline()), due_us);
  EXPECT_FALSE(entry.has_own_ttl());
  EXPECT_EQ(ToUs(entry.create_time()), server_.now_us() - kSecond);
  EXPECT_TRUE(Must(Touch("key: 'a'")).touched());
  EXPECT_EQ(ToUs(server_.Get("a").entry().deadline()),
            server_.now_us() + kTtlUs);
}

TEST_F(DueDateTest, StandsBesideAnOwnTtl) {
  const int64_t due_us = server_.now_us() + 100 * kSecond;
  for (const v1::ExecuteResponse& response : Apply(absl::StrCat(
           "operations { put { key: 'a' ttl { seconds: 7 } ", At(due_us),
           " } } operations { get { key: 'a' } } "
           "operations { touch { key: 'a' ",
           At(due_us - 5),
           " } } operations { get { key: 'a' } } "
           "operations { touch { key: 'a' } } "
           "operations { get { key: 'a' } }"))) {
    ASSERT_EQ(response.results_size(), 6);
    const int64_t deadlines_us[] = {due_us, due_us - 5,
                                    server_.now_us() + 7 * kSecond};
    for (int i = 0; i < 3; ++i) {
      const v1::Entry& entry = response.results(2 * i + 1).get().entry();
      EXPECT_EQ(ToUs(entry.deadline()), deadlines_us[i]);
      EXPECT_EQ(ToUs(entry.own_ttl()), 7 * kSecond);
      EXPECT_EQ(ToUs(entry.create_time()), server_.now_us());
    }
  }
}

TEST_F(DueDateTest, InThePastIsAnErrorThatNamesIt) {
  ExpectInvalid(Put(absl::StrCat("key: 'a' ", kPast)).status, kPastField,
                "allow_past");
  ExpectInvalid(Touch(absl::StrCat("key: 'a' ", kPast)).status, kPastField,
                "allow_past");
  ExpectInvalid(Put("key: 'a' allow_past: true").status, "allow_past",
                "expire_at");
  ExpectInvalid(
      Put("key: 'a' " + At(server_.now_us() + 8 * 86'400 * kSecond)).status,
      kPastField, "max_ttl of 168h");
  EXPECT_FALSE(server_.Get("a").has_entry());
}

TEST_F(DueDateTest, InThePastExpiresAtOnceIfItIsAllowed) {
  WatchReader watch(server_.data(), "default");
  watch.ReadUpTo(server_.now_us());
  Must(Put(absl::StrCat("key: 'put' value: 'v' allow_past: true ", kPast)));
  server_.Put("touched", "v", 9 * kSecond);
  EXPECT_TRUE(
      Must(Touch(absl::StrCat("key: 'touched' allow_past: true ", kPast)))
          .touched());
  Apply(absl::StrCat("operations { put { key: 'batch' allow_past: true ", kPast,
                     " } }"));
  server_.AdvanceBy(1);
  const auto events = watch.ReadUpTo(server_.now_us());
  EXPECT_THAT(KeysOf(events),
              ::testing::UnorderedElementsAre("put", "touched", "batch"));
  for (const v1::ExpiredEvent& event : events) {
    EXPECT_EQ(event.cause(), v1::EXPIRY_CAUSE_EXPIRED);
    EXPECT_EQ(ToUs(event.deadline()), 7 * kSecond + 1);
    EXPECT_EQ(ToUs(event.death_time()), server_.now_us());
    EXPECT_EQ(ToUs(event.create_time()), server_.now_us() - 1);
    EXPECT_EQ(event.has_own_ttl(), event.key() == "touched");
    EXPECT_FALSE(server_.Get(event.key()).has_entry());
  }
}

TEST_F(DueDateTest, OfAScannedEntryAndItsOwnTtlAreThere) {
  server_.Put("own", "v", 50 * kSecond);
  server_.AdvanceBy(kSecond);
  server_.Put("own", "w", 40 * kSecond);
  grpc::ClientContext context;
  const auto stream = server_.data()->Scan(
      &context, Proto<v1::ScanRequest>("namespace: 'default'"));
  v1::ScanResponse page;
  ASSERT_TRUE(stream->Read(&page));
  ASSERT_EQ(page.entries_size(), 1);
  EXPECT_EQ(ToUs(page.entries(0).own_ttl()), 40 * kSecond);
  EXPECT_EQ(ToUs(page.entries(0).create_time()), server_.now_us() - kSecond);
  EXPECT_EQ(ToUs(page.entries(0).put_time()), server_.now_us());
}

TEST_F(DueDateTest, APutBackKeepsTheOwnTtlOfAllKindsOfEntries) {
  GroupClient group(&server_);
  const auto member = group.Join();
  server_.Put("put", "v", 5 * kSecond);
  Apply(
      "operations { append { key: 'log' value: 'v' ttl { seconds: 5 } } } "
      "operations { combine { key: 'count' add: 1 ttl { seconds: 5 } } } "
      "operations { gather { key: 'parts' part: 'a' expected_parts: 3 "
      "ttl { seconds: 5 } } }");
  server_.AdvanceBy(10 * kSecond);
  for (const v1::ExpiredEvent& event : GroupClient::Take(member.get(), 4)) {
    EXPECT_EQ(ToUs(event.own_ttl()), 5 * kSecond);
    EXPECT_FALSE(group.Settle(event, "put_back {}").has_error());
    const v1::Entry entry = server_.Get(event.key()).entry();
    EXPECT_EQ(ToUs(entry.deadline()), server_.now_us() + 5 * kSecond);
    EXPECT_EQ(ToUs(entry.own_ttl()), 5 * kSecond);
    EXPECT_EQ(ToUs(entry.create_time()), server_.now_us());
  }
}

// As no one has asked for it now.
TEST_F(DueDateTest, APutBackKeepsNoMoreThanTheNamespaceAllowsByNow) {
  GroupClient group(&server_);
  const auto member = group.Join();
  server_.Put("a", "v", 50 * kSecond);
  Must(Call(server_.namespaces(), &v1::NamespaceService::Stub::UpdateNamespace,
            Proto<v1::UpdateNamespaceRequest>(
                "namespace { name: 'default' options { max_ttl { seconds: 40 } "
                "} }")));
  server_.AdvanceBy(60 * kSecond);
  const v1::ExpiredEvent event = GroupClient::TakeOne(member.get());
  const v1::SettleResult result = group.Settle(event, "put_back {}");
  EXPECT_FALSE(result.has_error()) << result.error().message();
  EXPECT_EQ(ToUs(server_.Get("a").entry().deadline()),
            server_.now_us() + 40 * kSecond);
}

TEST_F(DueDateTest, OfAPutBackLeavesTheOwnTtl) {
  GroupClient group(&server_);
  const auto member = group.Join();
  server_.Put("a", "v", 5 * kSecond);
  server_.AdvanceBy(10 * kSecond);
  const v1::ExpiredEvent event = GroupClient::TakeOne(member.get());
  ExpectInvalid(
      ErrorOf(group.Settle(event, absl::StrCat("put_back { ", kPast, " }"))),
      "put_back.expire_at", "allow_past");
  const int64_t due_us = server_.now_us() + 77 * kSecond;
  EXPECT_FALSE(
      group.Settle(event, absl::StrCat("put_back { ", At(due_us), " }"))
          .has_error());
  EXPECT_EQ(ToUs(server_.Get("a").entry().deadline()), due_us);
  EXPECT_EQ(ToUs(server_.Get("a").entry().own_ttl()), 5 * kSecond);
}

TEST_F(DueDateTest, OfAPutBackMayBePast) {
  GroupClient group(&server_);
  const auto member = group.Join();
  server_.Put("a", "v", 5 * kSecond);
  server_.AdvanceBy(10 * kSecond);
  const v1::ExpiredEvent event = GroupClient::TakeOne(member.get());
  EXPECT_FALSE(group
                   .Settle(event, absl::StrCat("put_back { allow_past: true ",
                                               kPast, " }"))
                   .has_error());
  server_.AdvanceBy(1);
  EXPECT_EQ(ToUs(GroupClient::TakeOne(member.get()).deadline()),
            7 * kSecond + 1);
}

}  // namespace
}  // namespace timecache::test
