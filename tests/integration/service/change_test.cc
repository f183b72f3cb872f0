// What Append, Combine, Gather and keep_deadline do, over the wire.
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

using Data = v1::TimeCacheService::Stub;
using grpc::StatusCode;
using ::testing::ElementsAre;

constexpr char kJoin[] = " expected_names: 'gender' expected_names: 'age'";

// "age=7 gender=f".
std::string Text(const v1::GatheredParts& parts) {
  std::string text;
  for (const v1::GatheredPart& part : parts.parts()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", part.name(), "=",
                    part.value());
  }
  return text;
}

class ChangeTest : public ::testing::Test {
 protected:
  template <typename Request, typename Response>
  Reply<Response> Do(grpc::Status (Data::*method)(grpc::ClientContext*,
                                                  const Request&, Response*),
                     const std::string& request) {
    return Call(server_.data(), method,
                Proto<Request>("namespace: 'default' " + request));
  }
  v1::GatherResponse Gather(const std::string& request) {
    return Must(Do(&Data::Gather, request + kJoin));
  }

  TestServer server_;
};

TEST_F(ChangeTest, AppendAnswersTheNewLengthAndVersion) {
  const auto first = Must(Do(&Data::Append, "key: 'log' value: 'one,'"));
  EXPECT_TRUE(first.created());
  EXPECT_EQ(first.value_bytes(), 4u);
  const auto second = Must(Do(&Data::Append, "key: 'log' value: 'two'"));
  EXPECT_FALSE(second.created());
  EXPECT_EQ(second.value_bytes(), 7u);
  EXPECT_GT(second.version(), first.version());
  const v1::Entry entry = server_.Get("log").entry();
  EXPECT_EQ(entry.value(), "one,two");
  EXPECT_EQ(entry.version(), second.version());
  ExpectError(
      Do(&Data::Append, "key: 'log' condition: PUT_CONDITION_IF_ABSENT").status,
      StatusCode::FAILED_PRECONDITION, v1::KEY_EXISTS);
  ExpectError(Do(&Data::Append, "key: 'log' if_version: 1").status,
              StatusCode::FAILED_PRECONDITION, v1::VERSION_MISMATCH);
}

TEST_F(ChangeTest, WhatGrowsBeyondItsLimitIsRefusedAndStays) {
  server_.Create("small", "max_value_bytes: 10");
  const auto append = [this](const std::string& value) {
    return Call(server_.data(), &Data::Append,
                Proto<v1::AppendRequest>(absl::StrCat(
                    "namespace: 'small' key: 'log' value: '", value, "'")));
  };
  Must(append("12345678"));
  ExpectError(append("901").status, StatusCode::FAILED_PRECONDITION,
              v1::VALUE_TOO_LARGE, "10");
  ExpectInvalid(append("12345678901").status, "value", "10");
  EXPECT_EQ(server_.Get("log", "small").entry().value(), "12345678");
}

TEST_F(ChangeTest, CombineAnswersTheResult) {
  const auto first = Must(Do(&Data::Combine, "key: 'n' add: 5 initial: 100"));
  EXPECT_EQ(first.result(), 105);
  EXPECT_TRUE(first.created());
  const auto second = Must(Do(&Data::Combine, "key: 'n' add: -205"));
  EXPECT_EQ(second.result(), -100);
  EXPECT_FALSE(second.created());
  EXPECT_EQ(server_.Get("n").entry().value(), "-100");
  EXPECT_EQ(server_.Get("n").entry().version(), second.version());
  const auto last =
      Must(Do(&Data::Combine, "key: 'n' xor: -100 remove_if_zero: true"));
  EXPECT_EQ(last.result(), 0);
  EXPECT_TRUE(last.removed());
  EXPECT_EQ(last.version(), 0u);
  EXPECT_FALSE(server_.Get("n").has_entry());
  ExpectInvalid(Do(&Data::Combine, "key: 'n'").status, "operand", "xor");
  server_.Put("text", "ten");
  ExpectError(Do(&Data::Combine, "key: 'text' add: 1").status,
              StatusCode::FAILED_PRECONDITION, v1::NOT_A_NUMBER);
  server_.Put("most", "9223372036854775807");
  ExpectError(Do(&Data::Combine, "key: 'most' add: 1").status,
              StatusCode::FAILED_PRECONDITION, v1::NUMBER_OVERFLOW);
}

TEST_F(ChangeTest, ThePartThatCompletesGetsAll) {
  const auto first = Gather("key: '7' part: 'age' value: '33'");
  EXPECT_FALSE(first.has_parts());
  EXPECT_EQ(first.count(), 1u);
  EXPECT_TRUE(Gather("key: '7' part: 'age' value: '33'").duplicate());
  ExpectError(
      Do(&Data::Gather, std::string("key: '7' part: 'age' value: '34'") + kJoin)
          .status,
      StatusCode::ALREADY_EXISTS, v1::PART_EXISTS);
  ExpectError(
      Do(&Data::Gather, "key: '7' part: 'age' value: '33' expected_parts: 2")
          .status,
      StatusCode::FAILED_PRECONDITION, v1::GATHER_MISMATCH);
  ExpectError(Do(&Data::Append, "key: '7' value: 'x'").status,
              StatusCode::FAILED_PRECONDITION, v1::VALUE_KIND_MISMATCH);
  const auto last = Gather("key: '7' part: 'gender' value: 'f'");
  ASSERT_TRUE(last.has_parts());
  EXPECT_EQ(Text(last.parts()), "age=33 gender=f");
  EXPECT_THAT(last.parts().expected_names(), ElementsAre("age", "gender"));
  EXPECT_EQ(last.count(), 2u);
  EXPECT_EQ(last.version(), 0u);
  EXPECT_FALSE(server_.Get("7").has_entry());
}

TEST_F(ChangeTest, GatherSaysWhichFieldIsWrong) {
  ExpectInvalid(Do(&Data::Gather, "key: '7' expected_parts: 2").status, "part",
                "256");
  ExpectInvalid(Do(&Data::Gather, "key: '7' part: 'a'").status,
                "expected_parts", "1024");
  ExpectInvalid(
      Do(&Data::Gather, std::string("key: '7' part: 'a'") + kJoin).status,
      "part", "expected_names");
  ExpectInvalid(Do(&Data::Gather, std::string("key: '7' part: 'age'") + kJoin +
                                      " expected_names: 'age'")
                    .status,
                "expected_names", "distinct");
}

TEST_F(ChangeTest, KeepDeadlineKeepsTheTimes) {
  server_.Put("a", "1", 5 * server::kMicrosPerSecond);
  server_.AdvanceBy(server::kMicrosPerSecond);
  Must(Do(&Data::Put, "key: 'a' value: '2' keep_deadline: true"));
  const v1::Entry entry = server_.Get("a").entry();
  EXPECT_EQ(entry.value(), "2");
  EXPECT_EQ(ToUs(entry.put_time()), kStartUs);
  EXPECT_EQ(ToUs(entry.deadline()), kStartUs + 5 * server::kMicrosPerSecond);
  ExpectInvalid(
      Do(&Data::Put, "key: 'a' keep_deadline: true ttl { seconds: 1 }").status,
      "keep_deadline", "ttl");
}

TEST_F(ChangeTest, ABatchDoesAllOfThem) {
  const auto response = Must(Do(&Data::Execute, R"(
    operations { append { key: 'log' value: 'ab' } }
    operations { append { key: 'log' value: 'c' touch: true } }
    operations { combine { key: 'n' add: -3 } }
    operations { combine { key: 'n' xor: -3 remove_if_zero: true } }
    operations { gather { key: 'g' part: 'x' value: '1' expected_parts: 2 } }
    operations { gather { key: 'g' part: 'x' value: '1' expected_parts: 2 } }
    operations { get { key: 'g' } }
    operations { gather { key: 'g' part: 'y' value: '2' expected_parts: 2 } }
    operations { gather { key: 'g' part: '' expected_parts: 2 } }
    operations { get { key: 'log' } })"));
  ASSERT_EQ(response.results_size(), 10);
  EXPECT_TRUE(response.results(0).append().created());
  EXPECT_EQ(response.results(1).append().value_bytes(), 3u);
  EXPECT_EQ(response.results(2).combine().result(), -3);
  EXPECT_TRUE(response.results(3).combine().removed());
  EXPECT_EQ(response.results(4).gather().count(), 1u);
  EXPECT_TRUE(response.results(5).gather().duplicate());
  EXPECT_EQ(response.results(6).get().entry().value(), "");
  EXPECT_EQ(Text(response.results(6).get().entry().parts()), "x=1");
  EXPECT_EQ(Text(response.results(7).gather().parts()), "x=1 y=2");
  EXPECT_EQ(response.results(8).error().code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(response.results(9).get().entry().value(), "abc");
  const auto statistics = server_.Describe().statistics();
  EXPECT_EQ(statistics.appends(), 2u);
  EXPECT_EQ(statistics.combines(), 2u);
  EXPECT_EQ(statistics.gathers(), 3u);
}

TEST_F(ChangeTest, PartsAreReadAsParts) {
  Gather("key: '7' part: 'age' value: '33'");
  const v1::Entry entry = server_.Get("7").entry();
  EXPECT_EQ(entry.value(), "");
  EXPECT_EQ(Text(entry.parts()), "age=33");
  EXPECT_THAT(entry.parts().expected_names(), ElementsAre("age", "gender"));
  grpc::ClientContext context;
  SetDeadline(&context);
  auto scan = server_.data()->Scan(
      &context, Proto<v1::ScanRequest>("namespace: 'default'"));
  v1::ScanResponse page;
  ASSERT_TRUE(scan->Read(&page));
  ASSERT_EQ(page.entries_size(), 1);
  EXPECT_EQ(Text(page.entries(0).parts()), "age=33");
  EXPECT_FALSE(scan->Read(&page));
  EXPECT_TRUE(scan->Finish().ok());
  const auto put =
      Must(Do(&Data::Put, "key: '7' value: 'v' return_previous: true"));
  EXPECT_EQ(Text(put.previous().parts()), "age=33");
}

TEST_F(ChangeTest, WhatIsIncompleteIsToldPutBackAndCompleted) {
  GroupClient group(&server_);
  const auto member = group.Join();
  Gather("key: '7' part: 'age' value: '33'");
  server_.AdvanceTo(DeathUs(server_.now_us()));
  const v1::ExpiredEvent event = group.TakeOne(member.get());
  EXPECT_EQ(event.value(), "");
  EXPECT_EQ(Text(event.parts()), "age=33");
  EXPECT_THAT(event.parts().expected_names(), ElementsAre("age", "gender"));
  const v1::SettleResult result = group.Settle(event, "put_back {}");
  EXPECT_FALSE(result.has_error()) << result.error().message();
  EXPECT_EQ(Text(server_.Get("7").entry().parts()), "age=33");
  EXPECT_EQ(Text(Gather("key: '7' part: 'gender' value: 'f'").parts()),
            "age=33 gender=f");
}

TEST_F(ChangeTest, AWatcherIsToldTheParts) {
  WatchReader watch(server_.data(), "default");
  // It stands.
  ASSERT_TRUE(watch.Next().has_value());
  Must(Do(&Data::Gather, "key: '7' part: 'a' value: 'x' expected_parts: 3"));
  Must(Do(&Data::Append, "key: 'log' value: 'one'"));
  Must(Do(&Data::Append, "key: 'log' value: 'two'"));
  server_.AdvanceTo(DeathUs(server_.now_us()));
  std::vector<std::string> texts;
  for (const v1::ExpiredEvent& event : watch.ReadUpTo(server_.now_us())) {
    texts.push_back(absl::StrCat(
        event.key(), " ",
        event.has_parts() ? absl::StrCat(Text(event.parts()), " of ",
                                         event.parts().expected_parts())
                          : event.value()));
  }
  EXPECT_THAT(texts,
              ::testing::UnorderedElementsAre("7 a=x of 3", "log onetwo"));
}

}  // namespace
}  // namespace timecache::test
