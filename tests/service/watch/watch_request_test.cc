#include "server/service/watch/watch_request.h"

#include <google/protobuf/text_format.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"
#include "server/engine/map/options.h"
#include "server/service/watch/resume_token.h"

namespace timecache {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::WatchExpiredRequest Request(const std::string& text) {
  v1::WatchExpiredRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request))
      << text;
  return request;
}

void ExpectInvalid(const v1::WatchExpiredRequest& request,
                   const std::string& field, const std::string& problem) {
  const auto to = ToWatchRequest(request);
  ASSERT_FALSE(to.ok()) << request.ShortDebugString();
  EXPECT_EQ(to.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(to.status()), field) << to.status();
  EXPECT_THAT(std::string(to.status().message()), HasSubstr(problem));
}

void ExpectInvalid(const std::string& text, const std::string& field,
                   const std::string& problem) {
  ExpectInvalid(Request("namespaces: 'a' " + text), field, problem);
}

TEST(WatchRequest, UnsetFieldsTakeTheirDefaults) {
  const auto request = ToWatchRequest(Request("namespaces: 'a'"));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->namespaces, ElementsAre("a"));
  EXPECT_EQ(request->start, ExpiryLog::Start::kNow);
  EXPECT_EQ(request->key_prefix, "");
  EXPECT_FALSE(request->keys_only);
  EXPECT_EQ(request->heartbeat_us, kMicrosPerSecond);
  EXPECT_THAT(request->resume_points, IsEmpty());
  EXPECT_FALSE(request->fail_on_loss);
  EXPECT_EQ(request->lead_us, 0);
  EXPECT_EQ(request->group, "");
  EXPECT_EQ(request->max_in_flight, 1'000);
  EXPECT_EQ(request->max_message_bytes, size_t{4} << 20);
}

TEST(WatchRequest, EveryFieldArrives) {
  auto from = Request(
      "namespaces: 'a' namespaces: 'b' start: WATCH_START_EARLIEST "
      "key_prefix: 'k' keys_only: true heartbeat_interval { seconds: 2 } "
      "fail_on_loss: true");
  from.add_resume_tokens(EncodeResumeToken("b", {1, 2, 3}));
  const auto request = ToWatchRequest(from);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->namespaces, ElementsAre("a", "b"));
  EXPECT_EQ(request->start, ExpiryLog::Start::kEarliest);
  EXPECT_EQ(request->key_prefix, "k");
  EXPECT_TRUE(request->keys_only);
  EXPECT_EQ(request->heartbeat_us, 2 * kMicrosPerSecond);
  EXPECT_TRUE(request->fail_on_loss);
  ASSERT_EQ(request->resume_points.size(), 1u);
  EXPECT_EQ(request->resume_points.at("b").next_event, 2u);

  const auto lead = ToWatchRequest(
      Request("namespaces: 'a' lead_time { seconds: 5 } key_prefix: 'k'"));
  ASSERT_TRUE(lead.ok()) << lead.status();
  EXPECT_EQ(lead->lead_us, 5 * kMicrosPerSecond);

  const auto group = ToWatchRequest(Request(
      "namespaces: 'a' group: 'billing' max_in_flight: 65536 keys_only: true "
      "start: WATCH_START_EARLIEST"));
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->group, "billing");
  EXPECT_EQ(group->max_in_flight, 65'536);
}

TEST(WatchRequest, NamesTheFieldThatIsOutOfItsRange) {
  ExpectInvalid(Request(""), "namespaces", "1 to 64");
  ExpectInvalid("namespaces: 'a'", "namespaces", "once");
  ExpectInvalid("start: 9", "start", "no value 9");
  ExpectInvalid("heartbeat_interval { nanos: 9999000 }", "heartbeat_interval",
                "10ms");
  ExpectInvalid("heartbeat_interval { seconds: 3601 }", "heartbeat_interval",
                "1h");
  ExpectInvalid("lead_time { nanos: 999000 }", "lead_time", "1ms");
  ExpectInvalid("lead_time { }", "lead_time", "1ms");
  ExpectInvalid("group: 'A'", "group", "1 to 63 characters");
  ExpectInvalid("group: 'g' max_in_flight: 0", "max_in_flight", "1 to 65536");
  ExpectInvalid("group: 'g' max_in_flight: 65537", "max_in_flight",
                "1 to 65536");
  auto prefix = Request("namespaces: 'a'");
  prefix.set_key_prefix(std::string(kMaxKeyBytes + 1, 'k'));
  ExpectInvalid(prefix, "key_prefix", "at most 4096");
}

TEST(WatchRequest, NamesTheFieldsThatDoNotGoTogether) {
  ExpectInvalid("max_in_flight: 5", "max_in_flight", "group");
  ExpectInvalid("group: 'g' key_prefix: 'k'", "group", "key_prefix");
  ExpectInvalid("group: 'g' fail_on_loss: true", "group", "fail_on_loss");
  ExpectInvalid("group: 'g' lead_time { seconds: 1 }", "lead_time", "group");
  ExpectInvalid("lead_time { seconds: 1 } fail_on_loss: true", "lead_time",
                "fail_on_loss");
  ExpectInvalid("lead_time { seconds: 1 } start: WATCH_START_NOW", "lead_time",
                "start");
  for (const std::string& with :
       {std::string("group: 'g'"), std::string("lead_time { seconds: 1 }")}) {
    auto request = Request("namespaces: 'a' " + with);
    request.add_resume_tokens(EncodeResumeToken("a", {1, 2, 3}));
    ExpectInvalid(request, with[0] == 'g' ? "group" : "lead_time",
                  "resume_tokens");
  }
}

TEST(WatchRequest, NamesWhatIsWrongWithAToken) {
  auto damaged = Request("namespaces: 'a'");
  damaged.add_resume_tokens("nonsense");
  ExpectInvalid(damaged, "resume_tokens", "damaged");
  auto of_another = Request("namespaces: 'a'");
  of_another.add_resume_tokens(EncodeResumeToken("b", {1, 2, 3}));
  ExpectInvalid(of_another, "resume_tokens", "namespace b");
  auto twice = Request("namespaces: 'a'");
  twice.add_resume_tokens(EncodeResumeToken("a", {1, 2, 3}));
  twice.add_resume_tokens(EncodeResumeToken("a", {1, 3, 4}));
  ExpectInvalid(twice, "resume_tokens", "two of namespace a");
  auto many = Request("namespaces: 'a'");
  for (int i = 0; i < 65; ++i) many.add_resume_tokens("x");
  ExpectInvalid(many, "resume_tokens", "at most 64");
}

}  // namespace
}  // namespace timecache
