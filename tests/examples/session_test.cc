#include "client/examples/session.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace timecache::sessionize {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

absl::Time AtSecond(int64_t unix_s) { return absl::FromUnixSeconds(unix_s); }

Session MakeSession() {
  return {.first = AtSecond(1431857103),
          .last = AtSecond(1431857143),
          .requests = 3,
          .bytes = 4711};
}

TEST(Session, FirstAndLastAreTheLeastAndGreatestTimes) {
  Session session;
  AddRequest({"v", AtSecond(500), 10}, session);
  EXPECT_EQ(session, (Session{AtSecond(500), AtSecond(500), 1, 10}));
  AddRequest({"v", AtSecond(400), 1}, session);
  AddRequest({"v", AtSecond(600), 2}, session);
  AddRequest({"v", AtSecond(550), 0}, session);
  EXPECT_EQ(session, (Session{AtSecond(400), AtSecond(600), 4, 13}));
}

TEST(Session, BytesStayAtTheLargestNumber) {
  Session session;
  AddRequest({"v", AtSecond(1), kMost - 1}, session);
  AddRequest({"v", AtSecond(1), 1}, session);
  EXPECT_EQ(session.bytes, kMost);
  AddRequest({"v", AtSecond(1), kMost}, session);
  EXPECT_EQ(session.bytes, kMost);
  EXPECT_EQ(session.requests, 3u);
  EXPECT_EQ(*DecodeSession(EncodeSession(session)), session);
}

TEST(Session, ValueIsReadable) {
  EXPECT_EQ(EncodeSession(MakeSession()),
            R"({"first":"2015-05-17T10:05:03Z","last":"2015-05-17T10:05:43Z",)"
            R"("requests":3,"bytes":4711})");
  EXPECT_EQ(*DecodeSession(EncodeSession(MakeSession())), MakeSession());
}

TEST(Session, ValueOfAnythingElseIsRefused) {
  for (const char* value :
       {"", "hello", "{", "{}", "[]", "null", "3", "\xff\xfe",
        R"({"first":"2015-05-17T10:05:03Z","last":"2015-05-17T10:05:43Z"})",
        R"({"first":"x","last":"2015-05-17T10:05:43Z","requests":3,"bytes":4})",
        R"({"first":1,"last":2,"requests":3,"bytes":4})",
        R"({"first":"2015-05-17T10:05:03Z","last":"2015-05-17T10:05:43Z",)"
        R"("requests":-3,"bytes":4})",
        R"({"first":"2015-05-17T10:05:03Z","last":"2015-05-17T10:05:43Z",)"
        R"("requests":3,"bytes":"4"})"}) {
    EXPECT_EQ(DecodeSession(value).status().code(),
              absl::StatusCode::kInvalidArgument)
        << value;
  }
}

TEST(Session, EndAsJson) {
  const EndedSession ended = {"2001:db8::7", MakeSession(),
                              AtSecond(1431858906)};
  EXPECT_EQ(ToJson(ended),
            R"({"visitor":"2001:db8::7","first":"2015-05-17T10:05:03Z",)"
            R"("last":"2015-05-17T10:05:43Z","requests":3,"bytes":4711,)"
            R"("ended_at":"2015-05-17T10:35:06Z"})");
}

TEST(Session, EndWithinASecondHasMicroseconds) {
  const EndedSession ended = {"v", MakeSession(),
                              AtSecond(1431858906) + absl::Microseconds(30)};
  EXPECT_NE(ToJson(ended).find("\"2015-05-17T10:35:06.000030Z\""),
            std::string::npos)
      << ToJson(ended);
}

TEST(Session, VisitorThatIsNotTextStaysOnItsLine) {
  const EndedSession ended = {"a\"\n\xff", MakeSession(), AtSecond(1)};
  EXPECT_EQ(ToJson(ended).find("{\"visitor\":\"a\\\"\\n\xef\xbf\xbd\","), 0u)
      << ToJson(ended);
}

TEST(Session, TextHasAColumnForEachHeading) {
  const EndedSession ended = {"192.0.2.1", MakeSession(), AtSecond(1431858906)};
  EXPECT_EQ(TextHeading(),
            "ENDED                        FIRST                 LAST           "
            "       "
            "REQUESTS         BYTES  VISITOR");
  EXPECT_EQ(ToText(ended),
            "2015-05-17T10:35:06Z         2015-05-17T10:05:03Z  "
            "2015-05-17T10:05:43Z  "
            "       3          4711  192.0.2.1");
}

}  // namespace
}  // namespace timecache::sessionize
