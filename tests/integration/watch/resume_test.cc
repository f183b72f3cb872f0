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

}  // namespace
}  // namespace timecache::test
