// What Put, Get, Touch, Remove, Contains and Size do, over the wire.
#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/net/raw_call.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using Data = v1::TimeCacheService::Stub;
using grpc::StatusCode;

class DataTest : public ::testing::Test {
 protected:
  template <typename Request, typename Response>
  Reply<Response> Do(grpc::Status (Data::*method)(grpc::ClientContext*,
                                                  const Request&, Response*),
                     const std::string& request) {
    return Call(server_.data(), method,
                Proto<Request>("namespace: 'default' " + request));
  }
  v1::PutResponse Put(const std::string& request) {
    return Must(Do(&Data::Put, request));
  }
  bool Contains(const std::string& key) {
    return Must(Do(&Data::Contains, "key: '" + key + "'")).contains();
  }
  v1::SizeResponse Size() { return Must(Do(&Data::Size, "")); }

  TestServer server_;
};

TEST_F(DataTest, PutAnswersTheVersionAndGetTheWholeEntry) {
  const v1::PutResponse put = Put("key: 'a' value: 'one'");
  EXPECT_GT(put.version(), 0u);
  EXPECT_FALSE(put.has_previous());
  const v1::GetResponse got = server_.Get("a");
  ASSERT_TRUE(got.has_entry());
  EXPECT_EQ(got.entry().key(), "a");
  EXPECT_EQ(got.entry().value(), "one");
  EXPECT_EQ(got.entry().version(), put.version());
  EXPECT_EQ(ToUs(got.entry().put_time()), kStartUs);
  EXPECT_EQ(ToUs(got.entry().deadline()), kStartUs + kTtlUs);
}

TEST_F(DataTest, AMissIsOkWithoutAnEntry) {
  EXPECT_FALSE(server_.Get("a").has_entry());
  EXPECT_FALSE(Contains("a"));
  const auto touched = Must(Do(&Data::Touch, "key: 'a'"));
  EXPECT_FALSE(touched.touched());
  EXPECT_EQ(touched.version(), 0u);
  const auto removed = Must(Do(&Data::Remove, "key: 'a' return_previous: 1"));
  EXPECT_FALSE(removed.removed());
  EXPECT_FALSE(removed.has_previous());
}

TEST_F(DataTest, VersionsGrowAndThePreviousEntryComesOnRequest) {
  const uint64_t first = server_.Put("a", "one");
  const v1::PutResponse second =
      Put("key: 'a' value: 'two' return_previous: true");
  EXPECT_GT(second.version(), first);
  EXPECT_EQ(second.previous().value(), "one");
  EXPECT_EQ(second.previous().version(), first);
  EXPECT_FALSE(Put("key: 'a' value: 'three'").has_previous());
  const auto removed = Must(Do(&Data::Remove, "key: 'a' return_previous: 1"));
  EXPECT_TRUE(removed.removed());
  EXPECT_EQ(removed.previous().key(), "a");
  EXPECT_EQ(removed.previous().value(), "three");
  EXPECT_FALSE(Contains("a"));
}

TEST_F(DataTest, KeysAndValuesAreAnyBytes) {
  const std::string key("\0\xff\n key", 7);
  const std::string value("\xc3\x28\0", 3);
  server_.Put(key, value);
  EXPECT_EQ(server_.Get(key).entry().value(), value);
  EXPECT_EQ(server_.Get(key).entry().key(), key);
  server_.Put("empty", "");
  ASSERT_TRUE(server_.Get("empty").has_entry());
  EXPECT_EQ(server_.Get("empty").entry().value(), "");
}

TEST_F(DataTest, TheLargestKeyAndValueAreTaken) {
  const std::string key(4096, 'k');
  const std::string value(1 << 20, 'v');
  server_.Put(key, value);
  EXPECT_EQ(server_.Get(key).entry().value(), value);
  server_.Create("large", "max_value_bytes: 16777216");
  const std::string largest(16 << 20, 'w');
  EXPECT_GT(server_.Put("k", largest, 0, "large"), 0u);
  EXPECT_EQ(Must(Call(server_.data(), &Data::Size,
                      Proto<v1::SizeRequest>("namespace: 'large'")))
                .bytes(),
            largest.size() + 1);
}

TEST_F(DataTest, AnEntryIsThereUntilAMicrosecondBeforeItsDeath) {
  server_.Put("a", "one");
  const int64_t death_us = DeathUs(kStartUs);
  EXPECT_GE(death_us, kStartUs + kTtlUs);
  EXPECT_LT(death_us, kStartUs + kTtlUs + kWidthUs);
  server_.AdvanceTo(death_us - 1);
  EXPECT_TRUE(server_.Get("a").has_entry());
  EXPECT_TRUE(Contains("a"));
  EXPECT_EQ(Size().entries(), 1u);
  EXPECT_EQ(Size().bytes(), 4u);
  server_.AdvanceTo(death_us);
  EXPECT_FALSE(server_.Get("a").has_entry());
  EXPECT_FALSE(Contains("a"));
  EXPECT_EQ(Size().entries(), 0u);
  EXPECT_EQ(Size().bytes(), 0u);
  EXPECT_FALSE(Must(Do(&Data::Touch, "key: 'a'")).touched());
  EXPECT_FALSE(Must(Do(&Data::Remove, "key: 'a'")).removed());
  Put("key: 'a' condition: PUT_CONDITION_IF_ABSENT");
}

TEST_F(DataTest, AnOwnTtlIsRoundedUpToAMicrosecond) {
  const v1::PutResponse put = Put("key: 'a' ttl { seconds: 1 nanos: 1 }");
  EXPECT_GT(put.version(), 0u);
  EXPECT_EQ(ToUs(server_.Get("a").entry().deadline()), kStartUs + 1'000'001);
  server_.AdvanceTo(DeathUs(kStartUs, 1'000'001) - 1);
  EXPECT_TRUE(Contains("a"));
  server_.AdvanceTo(DeathUs(kStartUs, 1'000'001));
  EXPECT_FALSE(Contains("a"));
}

TEST_F(DataTest, TheLeastAndTheLongestOwnTtlAreTaken) {
  Put("key: 'short' ttl { nanos: 1000000 }");
  Put("key: 'long' ttl { seconds: 604800 }");
  server_.AdvanceBy(kTtlUs + kWidthUs);
  EXPECT_FALSE(Contains("short"));
  EXPECT_TRUE(Contains("long"));
}

TEST_F(DataTest, TouchGivesAFreshTtl) {
  const uint64_t version = server_.Put("a", "one");
  server_.AdvanceBy(kTtlUs / 2);
  const int64_t touched_us = server_.now_us();
  const auto touched = Must(Do(&Data::Touch, "key: 'a'"));
  EXPECT_TRUE(touched.touched());
  EXPECT_EQ(touched.version(), version);
  server_.AdvanceTo(DeathUs(touched_us) - 1);
  EXPECT_EQ(server_.Get("a").entry().value(), "one");
  EXPECT_EQ(server_.Get("a").entry().version(), version);
  EXPECT_EQ(ToUs(server_.Get("a").entry().put_time()), touched_us);
  server_.AdvanceTo(DeathUs(touched_us));
  EXPECT_FALSE(Contains("a"));
}

TEST_F(DataTest, TouchKeepsAnOwnTtlAndCanGiveAnother) {
  server_.Put("a", "one", 60 * server::kMicrosPerSecond);
  server_.AdvanceBy(server::kMicrosPerSecond);
  Must(Do(&Data::Touch, "key: 'a'"));
  EXPECT_EQ(ToUs(server_.Get("a").entry().deadline()),
            server_.now_us() + 60 * server::kMicrosPerSecond);
  Must(Do(&Data::Touch, "key: 'a' ttl { seconds: 2 }"));
  EXPECT_EQ(ToUs(server_.Get("a").entry().deadline()),
            server_.now_us() + 2 * server::kMicrosPerSecond);
}

TEST_F(DataTest, GetRenewsOnlyWhenAskedOrSliding) {
  server_.Put("a", "one");
  server_.Create("sliding", "sliding: true");
  server_.Put("b", "two", 0, "sliding");
  server_.AdvanceBy(server::kMicrosPerSecond);
  EXPECT_EQ(ToUs(server_.Get("a").entry().put_time()), kStartUs);
  EXPECT_EQ(ToUs(server_.Get("b", "sliding").entry().put_time()),
            server_.now_us());
  const uint64_t version = server_.Get("a").entry().version();
  const auto got = Must(Do(&Data::Get, "key: 'a' touch: true"));
  EXPECT_EQ(ToUs(got.entry().put_time()), server_.now_us());
  EXPECT_EQ(got.entry().version(), version);
}

TEST_F(DataTest, ConditionsThatDoNotHoldChangeNothing) {
  const uint64_t version = server_.Put("a", "one");
  ExpectError(
      Do(&Data::Put, "key: 'a' value: 'x' condition: PUT_CONDITION_IF_ABSENT")
          .status,
      StatusCode::FAILED_PRECONDITION, v1::KEY_EXISTS);
  ExpectError(
      Do(&Data::Put, "key: 'b' condition: PUT_CONDITION_IF_PRESENT").status,
      StatusCode::FAILED_PRECONDITION, v1::KEY_NOT_FOUND);
  ExpectError(Do(&Data::Put, "key: 'a' value: 'x' if_version: 1").status,
              StatusCode::FAILED_PRECONDITION, v1::VERSION_MISMATCH);
  ExpectError(Do(&Data::Put, "key: 'b' if_version: 1").status,
              StatusCode::FAILED_PRECONDITION, v1::KEY_NOT_FOUND);
  ExpectError(Do(&Data::Remove, "key: 'a' if_version: 1").status,
              StatusCode::FAILED_PRECONDITION, v1::VERSION_MISMATCH);
  ExpectError(Do(&Data::Remove, "key: 'b' if_version: 1").status,
              StatusCode::FAILED_PRECONDITION, v1::KEY_NOT_FOUND);
  server_.AdvanceBy(1);
  ExpectError(Do(&Data::Touch, "key: 'a' if_version: 1").status,
              StatusCode::FAILED_PRECONDITION, v1::VERSION_MISMATCH);
  ExpectError(Do(&Data::Touch, "key: 'b' if_version: 1").status,
              StatusCode::FAILED_PRECONDITION, v1::KEY_NOT_FOUND);
  EXPECT_EQ(server_.Get("a").entry().value(), "one");
  EXPECT_EQ(server_.Get("a").entry().version(), version);
  EXPECT_EQ(ToUs(server_.Get("a").entry().put_time()), kStartUs);
  EXPECT_EQ(Size().entries(), 1u);
}

TEST_F(DataTest, ConditionsThatHoldStore) {
  Put("key: 'a' condition: PUT_CONDITION_IF_ABSENT");
  const uint64_t version =
      Put("key: 'a' value: '2' condition: PUT_CONDITION_IF_PRESENT").version();
  const uint64_t next =
      Put("key: 'a' value: '3' if_version: " + std::to_string(version))
          .version();
  EXPECT_EQ(server_.Get("a").entry().value(), "3");
  EXPECT_TRUE(
      Must(Do(&Data::Touch, "key: 'a' if_version: " + std::to_string(next)))
          .touched());
  EXPECT_TRUE(
      Must(Do(&Data::Remove, "key: 'a' if_version: " + std::to_string(next)))
          .removed());
}

// As protobuf has it: of a oneof's fields the last one on the wire counts.
TEST_F(DataTest, OfTwoConditionsTheLastOneCounts) {
  const uint64_t version = Put("key: 'a' value: 'old'").version();
  const auto wire = [](const std::string& text) {
    return Proto<v1::PutRequest>(text).SerializeAsString();
  };
  const std::string put = wire("namespace: 'default' key: 'a' value: 'new'");
  const std::string if_absent = wire("condition: PUT_CONDITION_IF_ABSENT");
  const std::string unset = wire("condition: PUT_CONDITION_UNSPECIFIED");
  const std::string if_version = wire("if_version: " + std::to_string(version));
  const std::string if_other = wire("if_version: 1");
  const auto send = [&](const std::string& conditions) {
    return RawCall(server_.channel(), "/timecache.v1.TimeCacheService/Put",
                   put + conditions, "");
  };
  ExpectError(send(if_version + if_absent), StatusCode::FAILED_PRECONDITION,
              v1::KEY_EXISTS);
  ExpectError(send(if_absent + if_other), StatusCode::FAILED_PRECONDITION,
              v1::VERSION_MISMATCH);
  ExpectError(send(unset + if_other), StatusCode::FAILED_PRECONDITION,
              v1::VERSION_MISMATCH);
  EXPECT_EQ(server_.Get("a").entry().value(), "old");
  EXPECT_TRUE(send(if_absent + if_version).ok());
  EXPECT_EQ(server_.Get("a").entry().value(), "new");
  EXPECT_TRUE(send(if_other + unset).ok());
  EXPECT_TRUE(send(if_absent + unset).ok());
}

TEST_F(DataTest, AtALimitPutsAreRefusedWithItsName) {
  server_.Create("few", "max_entries: 2");
  server_.Create("small", "max_bytes: 10");
  server_.Put("a", "", 0, "few");
  server_.Put("b", "", 0, "few");
  const auto put = [this](const std::string& request) {
    return Call(server_.data(), &Data::Put, Proto<v1::PutRequest>(request))
        .status;
  };
  ExpectError(put("namespace: 'few' key: 'c'"), StatusCode::RESOURCE_EXHAUSTED,
              v1::MAX_ENTRIES, "max_entries of 2");
  EXPECT_TRUE(put("namespace: 'few' key: 'a' value: 'more'").ok());
  ExpectError(put("namespace: 'small' key: 'c' value: '0123456789'"),
              StatusCode::RESOURCE_EXHAUSTED, v1::MAX_BYTES, "max_bytes of 10");
}

TEST(DataServerLimits, AreSharedByAllNamespaces) {
  TestServerOptions options;
  options.limits.max_entries = 2;
  options.limits.max_bytes = 100;
  TestServer server(options);
  server.Create("other");
  server.Put("a", "1");
  server.Put("a", "1", 0, "other");
  const auto put = [&server](const std::string& request) {
    return Call(server.data(), &Data::Put, Proto<v1::PutRequest>(request))
        .status;
  };
  ExpectError(put("namespace: 'default' key: 'b'"),
              StatusCode::RESOURCE_EXHAUSTED, v1::SERVER_MAX_ENTRIES,
              "limits.max_entries");
  ExpectError(put("namespace: 'default' key: 'a' value: '" +
                  std::string(99, 'x') + "'"),
              StatusCode::RESOURCE_EXHAUSTED, v1::SERVER_MAX_BYTES,
              "limits.max_bytes");
}

}  // namespace
}  // namespace timecache::test
