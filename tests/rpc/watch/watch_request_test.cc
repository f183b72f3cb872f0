#include "server/rpc/watch/watch_request.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/store/namespace_options.h"
#include "server/rpc/watch/resume_token.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename Request>
Request Proto(const std::string& text) {
  Request request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request))
      << text;
  return request;
}

v1::WatchExpiredRequest Watch(const std::string& text) {
  return Proto<v1::WatchExpiredRequest>(text);
}
v1::ConsumeExpiredRequest Consume(const std::string& text) {
  return Proto<v1::ConsumeExpiredRequest>(text);
}
v1::WatchExpiringRequest Expiring(const std::string& text) {
  return Proto<v1::WatchExpiringRequest>(text);
}

// A request of the namespace a, with `more`.
std::string OfA(const std::string& more) { return "namespaces: 'a' " + more; }

template <typename Request>
void ExpectInvalid(const Request& request, const std::string& field,
                   const std::string& problem) {
  const auto to = ToWatchRequest(request);
  ASSERT_FALSE(to.ok()) << request.ShortDebugString();
  EXPECT_EQ(to.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(to.status()), field) << to.status();
  EXPECT_THAT(std::string(to.status().message()), HasSubstr(problem));
}

// What all requests leave at its default where it is unset.
void ExpectDefaults(const absl::StatusOr<WatchRequest>& request) {
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->namespaces, ElementsAre("a"));
  EXPECT_EQ(request->start, LogStart::kNow);
  EXPECT_EQ(request->key_prefix, "");
  EXPECT_FALSE(request->keys_only);
  EXPECT_EQ(request->heartbeat_us, kMicrosPerSecond);
  EXPECT_THAT(request->resume_points, IsEmpty());
  EXPECT_FALSE(request->fail_on_loss);
  EXPECT_EQ(request->max_in_flight, 1'000);
  EXPECT_EQ(request->max_message_bytes, size_t{4} << 20);
}

TEST(WatchRequest, UnsetFieldsTakeTheirDefaults) {
  const auto request = ToWatchRequest(Watch("namespaces: 'a'"));
  ExpectDefaults(request);
  EXPECT_EQ(request->lead_us, 0);
  EXPECT_EQ(request->group, "");

  const auto consume =
      ToWatchRequest(Consume("namespaces: 'a' group: 'billing'"));
  ExpectDefaults(consume);
  EXPECT_EQ(consume->lead_us, 0);
  EXPECT_EQ(consume->group, "billing");

  const auto expiring =
      ToWatchRequest(Expiring("namespaces: 'a' lead_time { seconds: 5 }"));
  ExpectDefaults(expiring);
  EXPECT_EQ(expiring->lead_us, 5 * kMicrosPerSecond);
  EXPECT_EQ(expiring->group, "");
}

TEST(WatchRequest, EveryFieldArrives) {
  auto from = Watch(
      "namespaces: 'a' namespaces: 'b' start: WATCH_START_EARLIEST "
      "key_prefix: 'k' keys_only: true heartbeat_interval { seconds: 2 } "
      "fail_on_loss: true max_message_bytes: 5000000");
  from.add_resume_tokens(EncodeResumeToken("b", {1, 2, 3}));
  const auto request = ToWatchRequest(from);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->namespaces, ElementsAre("a", "b"));
  EXPECT_EQ(request->start, LogStart::kEarliest);
  EXPECT_EQ(request->key_prefix, "k");
  EXPECT_TRUE(request->keys_only);
  EXPECT_EQ(request->heartbeat_us, 2 * kMicrosPerSecond);
  EXPECT_TRUE(request->fail_on_loss);
  EXPECT_EQ(request->max_message_bytes, 5'000'000u);
  ASSERT_EQ(request->resume_points.size(), 1u);
  EXPECT_EQ(request->resume_points.at("b").next_event, 2u);

  const auto expiring = ToWatchRequest(Expiring(
      "namespaces: 'a' namespaces: 'b' lead_time { seconds: 5 } "
      "key_prefix: 'k' keys_only: true heartbeat_interval { seconds: 2 } "
      "max_message_bytes: 5000000"));
  ASSERT_TRUE(expiring.ok()) << expiring.status();
  EXPECT_THAT(expiring->namespaces, ElementsAre("a", "b"));
  EXPECT_EQ(expiring->lead_us, 5 * kMicrosPerSecond);
  EXPECT_EQ(expiring->key_prefix, "k");
  EXPECT_TRUE(expiring->keys_only);
  EXPECT_EQ(expiring->heartbeat_us, 2 * kMicrosPerSecond);
  EXPECT_EQ(expiring->max_message_bytes, 5'000'000u);

  const auto consume = ToWatchRequest(Consume(
      "namespaces: 'a' namespaces: 'b' group: 'billing' max_in_flight: 65536 "
      "keys_only: true start: WATCH_START_EARLIEST "
      "heartbeat_interval { seconds: 2 } max_message_bytes: 5000000"));
  ASSERT_TRUE(consume.ok()) << consume.status();
  EXPECT_THAT(consume->namespaces, ElementsAre("a", "b"));
  EXPECT_EQ(consume->group, "billing");
  EXPECT_EQ(consume->max_in_flight, 65'536);
  EXPECT_TRUE(consume->keys_only);
  EXPECT_EQ(consume->start, LogStart::kEarliest);
  EXPECT_EQ(consume->heartbeat_us, 2 * kMicrosPerSecond);
  EXPECT_EQ(consume->max_message_bytes, 5'000'000u);
}

// `request` makes one from what all of them have; with it, it is well.
template <typename MakeRequest>
void ExpectTheSameLimits(const MakeRequest& request) {
  ASSERT_TRUE(ToWatchRequest(request("namespaces: 'a'")).ok());
  ExpectInvalid(request(""), "namespaces", "1 to 64");
  ExpectInvalid(request("namespaces: 'a' namespaces: 'a'"), "namespaces",
                "once");
  ExpectInvalid(request(OfA("heartbeat_interval { nanos: 9999000 }")),
                "heartbeat_interval", "10ms");
  ExpectInvalid(request(OfA("heartbeat_interval { seconds: 3601 }")),
                "heartbeat_interval", "1h");
  ExpectInvalid(request(OfA("max_message_bytes: 4194303")), "max_message_bytes",
                "4 MiB");
}

TEST(WatchRequest, AWatchOfChangesHasTheFieldsOfOneOfDeaths) {
  const std::string fields =
      OfA("start: WATCH_START_EARLIEST fail_on_loss: true key_prefix: 'p' "
          "keys_only: true heartbeat_interval { seconds: 2 }");
  const auto changes = ToWatchRequest(Proto<v1::WatchChangesRequest>(fields));
  ASSERT_TRUE(changes.ok()) << changes.status();
  EXPECT_TRUE(changes->changes);
  EXPECT_EQ(changes->start, LogStart::kEarliest);
  EXPECT_TRUE(changes->fail_on_loss);
  EXPECT_EQ(changes->key_prefix, "p");
  EXPECT_TRUE(changes->keys_only);
  EXPECT_EQ(changes->heartbeat_us, 2 * kMicrosPerSecond);
  EXPECT_FALSE(ToWatchRequest(Watch(fields))->changes);
  ExpectInvalid(Proto<v1::WatchChangesRequest>(OfA("resume_tokens: 'x'")),
                "resume_tokens", "damaged");
}

TEST(WatchRequest, NamesTheFieldThatIsOutOfItsRange) {
  ExpectTheSameLimits(Watch);
  ExpectTheSameLimits(
      [](const std::string& text) { return Consume("group: 'g' " + text); });
  ExpectTheSameLimits([](const std::string& text) {
    return Expiring("lead_time { seconds: 1 } " + text);
  });
  ExpectInvalid(Watch("namespaces: 'a' start: 9"), "start", "no value 9");
  ExpectInvalid(Consume("namespaces: 'a' group: 'g' start: 9"), "start",
                "no value 9");
  for (const auto& [lead_time, limit] :
       {std::pair("{ nanos: 999000 }", "1ms"), std::pair("{ }", "1ms"),
        std::pair("{ seconds: 315360001 }", "10 years")}) {
    ExpectInvalid(Expiring(OfA(absl::StrCat("lead_time ", lead_time))),
                  "lead_time", limit);
  }
  ExpectInvalid(Consume(OfA("group: 'A'")), "group", "1 to 63 characters");
  for (const int max : {0, 65537}) {
    ExpectInvalid(Consume(OfA(absl::StrCat("group: 'g' max_in_flight: ", max))),
                  "max_in_flight", "1 to 65536");
  }
  const std::string prefix =
      absl::StrCat("key_prefix: '", std::string(kMaxKeyBytes + 1, 'k'), "'");
  ExpectInvalid(Watch(OfA(prefix)), "key_prefix", "at most 4096");
  ExpectInvalid(Expiring(OfA("lead_time { seconds: 1 } " + prefix)),
                "key_prefix", "at most 4096");
}

TEST(WatchRequest, WhatMakesItAnotherWatchIsRequired) {
  ExpectInvalid(Consume("namespaces: 'a'"), "group", "1 to 63 characters");
  ExpectInvalid(Consume("namespaces: 'a' max_in_flight: 5"), "group",
                "1 to 63 characters");
  ExpectInvalid(Expiring("namespaces: 'a'"), "lead_time", "must be set");
}

TEST(WatchRequest, NamesWhatIsWrongWithAToken) {
  auto damaged = Watch("namespaces: 'a'");
  damaged.add_resume_tokens("nonsense");
  ExpectInvalid(damaged, "resume_tokens", "damaged");
  auto of_another = Watch("namespaces: 'a'");
  of_another.add_resume_tokens(EncodeResumeToken("b", {1, 2, 3}));
  ExpectInvalid(of_another, "resume_tokens", "namespace b");
  auto twice = Watch("namespaces: 'a'");
  twice.add_resume_tokens(EncodeResumeToken("a", {1, 2, 3}));
  twice.add_resume_tokens(EncodeResumeToken("a", {1, 3, 4}));
  ExpectInvalid(twice, "resume_tokens", "two of namespace a");
  auto many = Watch("namespaces: 'a'");
  for (int i = 0; i < 65; ++i) many.add_resume_tokens("x");
  ExpectInvalid(many, "resume_tokens", "at most 64");
}

v1::FetchExpiredRequest FetchOf(const std::string& more) {
  return Proto<v1::FetchExpiredRequest>("namespace: 'a' group: 'g' " + more);
}

TEST(FetchRequestTest, HasDefaults) {
  const auto request = ToFetchRequest(FetchOf(""));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->namespace_name, "a");
  EXPECT_EQ(request->group, "g");
  EXPECT_EQ(request->start, LogStart::kNow);
  EXPECT_EQ(request->max_events, 100);
  EXPECT_EQ(request->wait_us, 0);
  EXPECT_FALSE(request->keys_only);
  EXPECT_EQ(request->max_message_bytes, kDefaultMaxMessageBytes);
}

TEST(FetchRequestTest, TakesTheLimits) {
  const auto request =
      ToFetchRequest(FetchOf("start: WATCH_START_EARLIEST max_events: 8192 "
                             "wait { seconds: 60 } keys_only: true"));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->start, LogStart::kEarliest);
  EXPECT_EQ(request->max_events, 8'192);
  EXPECT_EQ(request->wait_us, 60 * kMicrosPerSecond);
  EXPECT_TRUE(request->keys_only);
}

TEST(FetchRequestTest, RefusesWhatIsBeyondThem) {
  for (const char* const wrong :
       {"max_events: 0", "max_events: 8193", "wait { seconds: 61 }",
        "wait { nanos: -1000 }", "max_message_bytes: 1", "start: 7"}) {
    const absl::Status status = ToFetchRequest(FetchOf(wrong)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
  EXPECT_FALSE(ToFetchRequest(
                   Proto<v1::FetchExpiredRequest>("namespace: 'a' group: 'G'"))
                   .ok());
}

}  // namespace
}  // namespace timecache::server
