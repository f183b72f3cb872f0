// Watches that go on where another one stood.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ResumeTest : public ::testing::Test {
 protected:
  std::unique_ptr<WatchReader> Watch(const std::vector<std::string>& tokens,
                                     const std::string& more = "") {
    auto request = Proto<v1::WatchExpiredRequest>(absl::StrCat(
        more.find("namespaces") == std::string::npos ? "namespaces: 'default' "
                                                     : "",
        more));
    for (const std::string& token : tokens) request.add_resume_tokens(token);
    return std::make_unique<WatchReader>(server_.data(), request);
  }
  // A watch that has come up to now; its token. It is gone, and holds no event
  // any more.
  std::string TokenOfNow(const std::string& name = "default") {
    std::string token;
    {
      WatchReader reader(server_.data(), name);
      reader.ReadUpTo(server_.now_us(), name);
      token = reader.token(name);
    }
    server_.AwaitWatchers(0, name);
    return token;
  }
  // One entry dies.
  void Kill(const std::string& key, const std::string& name = "default") {
    server_.Put(key, "value", 0, name);
    server_.AdvanceBy(2 * kTtlUs);
  }

  TestServer server_;
};

TEST_F(ResumeTest, WhatDiedMeanwhileComesOnceAndNothingElse) {
  Kill("before");
  const std::string token = TokenOfNow();
  Kill("meanwhile");
  Kill("meanwhile too");
  const auto reader = Watch({token});
  EXPECT_THAT(KeysOf(reader->ReadUpTo(server_.now_us())),
              ElementsAre("meanwhile", "meanwhile too"));
  Kill("after");
  EXPECT_THAT(KeysOf(reader->ReadUpTo(server_.now_us())), ElementsAre("after"));
  EXPECT_EQ(reader->lost(), 0u);
}

TEST_F(ResumeTest, EveryMessageHasATokenThatLeadsBehindIt) {
  server_.Fill(5'000, "k", std::string(1'000, 'v'));
  auto watch = Watch({});
  ASSERT_TRUE(watch->Next());
  server_.AdvanceBy(2 * kTtlUs);
  size_t events = 0;
  int streams = 0;
  // One message of each stream, whatever there is in it.
  for (; events < 5'000; ++streams) {
    const std::string token = watch->token();
    ASSERT_NE(token, "");
    watch = Watch({token});
    const auto message = watch->Next();
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(message->lost(), 0u);
    events += static_cast<size_t>(message->events_size());
  }
  EXPECT_EQ(events, 5'000u);
  EXPECT_GE(streams, 5);
}

TEST_F(ResumeTest, TheWatermarkGoesOnFromTheTokens) {
  const std::string token = TokenOfNow();
  const int64_t watermark_us = server_.now_us();
  server_.Put("a", "1");
  server_.AdvanceBy(2 * kTtlUs);
  const auto reader = Watch({token});
  const auto message = reader->Next();
  ASSERT_TRUE(message.has_value());
  EXPECT_GE(ToUs(message->watermark()), watermark_us);
  for (const auto& event : message->events()) {
    EXPECT_GT(ToUs(event.death_time()), watermark_us);
  }
}

TEST_F(ResumeTest, ATokenLongerAgoThanIsRetainedTellsHowManyAreLost) {
  server_.Create("brief", "event_retention { seconds: 60 }");
  const std::string token = TokenOfNow("brief");
  for (int i = 0; i < 3; ++i) Kill(absl::StrCat("lost", i), "brief");
  server_.AdvanceBy(60 * server::kMicrosPerSecond);
  Kill("kept", "brief");
  const auto reader = Watch({token}, "namespaces: 'brief'");
  const auto first = reader->Next();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->lost(), 3u);
  std::vector<v1::ExpiredEvent> events(first->events().begin(),
                                       first->events().end());
  if (ToUs(first->watermark()) < server_.now_us()) {
    for (auto& event : reader->ReadUpTo(server_.now_us(), "brief")) {
      events.push_back(event);
    }
  }
  EXPECT_THAT(KeysOf(events), ElementsAre("kept"));
  EXPECT_EQ(reader->lost(), 3u);
}

TEST_F(ResumeTest, FailOnLossEndsTheCallAndSaysHowMany) {
  server_.Create("brief", "event_retention { seconds: 60 }");
  const std::string token = TokenOfNow("brief");
  Kill("lost", "brief");
  Kill("lost too", "brief");
  server_.AdvanceBy(60 * server::kMicrosPerSecond);
  const auto reader = Watch({token}, "namespaces: 'brief' fail_on_loss: true");
  const grpc::Status status = reader->Drain();
  ExpectError(status, StatusCode::OUT_OF_RANGE, v1::RESUME_POINT_TRIMMED,
              "2 events");
  EXPECT_EQ(PartsOf(status).metadata.at("lost"), "2");
  EXPECT_EQ(PartsOf(status).metadata.at("namespace"), "brief");
  EXPECT_EQ(reader->events(), 0u);
}

TEST_F(ResumeTest, ALossOfOtherKeysIsNoneOfAPrefix) {
  server_.Create("brief", "event_retention { seconds: 60 }");
  const std::string token = TokenOfNow("brief");
  Kill("b-1", "brief");
  Kill("d-1", "brief");
  server_.AdvanceBy(60 * server::kMicrosPerSecond);
  for (const char* prefix : {"a-", "c", "d-2"}) {
    const auto reader =
        Watch({token}, absl::StrCat("namespaces: 'brief' fail_on_loss: true "
                                    "key_prefix: '",
                                    prefix, "'"));
    reader->ReadUpTo(server_.now_us(), "brief");
    EXPECT_EQ(reader->lost(), 0u);
  }
  const auto reader =
      Watch({token}, "namespaces: 'brief' fail_on_loss: true key_prefix: 'd'");
  ExpectError(reader->Drain(), StatusCode::OUT_OF_RANGE,
              v1::RESUME_POINT_TRIMMED, "1 events");
}

TEST_F(ResumeTest, FailOnLossIsSilentWhereNothingIsLost) {
  const std::string token = TokenOfNow();
  Kill("a");
  const auto reader = Watch({token}, "fail_on_loss: true");
  EXPECT_THAT(KeysOf(reader->ReadUpTo(server_.now_us())), ElementsAre("a"));
}

TEST_F(ResumeTest, ATokenOfANamespaceThatWasMadeAnewIsOfAnotherLog) {
  server_.Create("again");
  const std::string token = TokenOfNow("again");
  Must(Call(server_.namespaces(), &v1::NamespaceService::Stub::DeleteNamespace,
            Proto<v1::DeleteNamespaceRequest>("name: 'again'")));
  server_.Create("again");
  const grpc::Status status = Watch({token}, "namespaces: 'again'")->Drain();
  ExpectError(status, StatusCode::FAILED_PRECONDITION, v1::LOG_CHANGED,
              "another log");
  EXPECT_EQ(PartsOf(status).metadata.at("namespace"), "again");
  EXPECT_EQ(server_.Describe("again").statistics().watchers(), 0u);
}

TEST_F(ResumeTest, ATokenOfAnotherServerIsOfAnotherLog) {
  const std::string token = TokenOfNow();
  TestServer other;
  auto request = Proto<v1::WatchExpiredRequest>("namespaces: 'default'");
  request.add_resume_tokens(token);
  ExpectError(WatchReader(other.data(), request).Drain(),
              StatusCode::FAILED_PRECONDITION, v1::LOG_CHANGED);
}

TEST_F(ResumeTest, EachNamespaceGoesOnFromItsOwnToken) {
  server_.Create("one");
  server_.Create("two");
  server_.Create("new");
  const std::string one = TokenOfNow("one");
  Kill("a", "one");
  Kill("b", "two");
  const std::string two = TokenOfNow("two");
  Kill("c", "two");
  Kill("d", "new");
  const auto reader = Watch(
      {two, one}, "namespaces: 'one' namespaces: 'two' namespaces: 'new'");
  EXPECT_THAT(KeysOf(reader->ReadUpTo(server_.now_us(), "one")),
              ElementsAre("a"));
  EXPECT_EQ(reader->lost(), 0u);
  // `two` resumed behind b, and `new` began now.
  const auto again = Watch({two}, "namespaces: 'two' namespaces: 'new'");
  EXPECT_THAT(KeysOf(again->ReadUpTo(server_.now_us(), "two")),
              ElementsAre("c"));
  EXPECT_EQ(again->events(), 1u);
}

TEST_F(ResumeTest, WithoutRetentionEvenAShortAbsenceIsCounted) {
  server_.Create("none", "event_retention { }");
  const std::string token = TokenOfNow("none");
  Kill("a", "none");
  Kill("b", "none");
  const auto reader = Watch({token}, "namespaces: 'none'");
  EXPECT_THAT(reader->ReadUpTo(server_.now_us(), "none"), IsEmpty());
  EXPECT_EQ(reader->lost(), 2u);
}

TEST_F(ResumeTest, AFilterDoesNotChangeThePlace) {
  auto filtered = Watch({}, "key_prefix: 'x'");
  ASSERT_TRUE(filtered->Next());
  Kill("a");
  Kill("x");
  EXPECT_THAT(KeysOf(filtered->ReadUpTo(server_.now_us())), ElementsAre("x"));
  const std::string token = filtered->token();
  Kill("b");
  // The same place, and another filter.
  EXPECT_THAT(KeysOf(Watch({token})->ReadUpTo(server_.now_us())),
              ElementsAre("b"));
}

TEST_F(ResumeTest, ADamagedTokenIsRefused) {
  std::string token = TokenOfNow();
  token.back() = static_cast<char>(token.back() ^ 1);
  ExpectInvalid(Watch({token})->Drain(), "resume_tokens", "damaged");
}

}  // namespace
}  // namespace timecache::test
