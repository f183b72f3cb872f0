#include "server/api/proto_time.h"

#include <string>

#include "google/protobuf/util/time_util.h"
#include "gtest/gtest.h"
#include "tests/support/expect_field.h"

namespace timecache::server {
namespace {

using google::protobuf::Duration;
using google::protobuf::Timestamp;
using google::protobuf::util::TimeUtil;

template <typename Message>
Message Of(int64_t seconds, int32_t nanos) {
  Message message;
  message.set_seconds(seconds);
  message.set_nanos(nanos);
  return message;
}

TEST(ConvertDuration, PartsOfAMicrosecondAreRoundedUp) {
  EXPECT_EQ(*ToMicros(Of<Duration>(0, 1), "ttl"), 1);
  EXPECT_EQ(*ToMicros(Of<Duration>(0, 999), "ttl"), 1);
  EXPECT_EQ(*ToMicros(Of<Duration>(0, 1'000), "ttl"), 1);
  EXPECT_EQ(*ToMicros(Of<Duration>(0, 1'001), "ttl"), 2);
  EXPECT_EQ(*ToMicros(Of<Duration>(2, 999'999'001), "ttl"), 3'000'000);
}

TEST(ConvertDuration, NegativeOnesAreRoundedUpToo) {
  EXPECT_EQ(*ToMicros(Of<Duration>(0, -1), "ttl"), 0);
  EXPECT_EQ(*ToMicros(Of<Duration>(0, -1'001), "ttl"), -1);
  EXPECT_EQ(*ToMicros(Of<Duration>(-3, -500'000'000), "ttl"), -3'500'000);
}

TEST(ConvertDuration, ExtremesAreExact) {
  EXPECT_EQ(*ToMicros(Of<Duration>(TimeUtil::kDurationMaxSeconds, 0), "ttl"),
            TimeUtil::kDurationMaxSeconds * kMicrosPerSecond);
  EXPECT_EQ(*ToMicros(Of<Duration>(TimeUtil::kDurationMinSeconds, 0), "ttl"),
            TimeUtil::kDurationMinSeconds * kMicrosPerSecond);
}

TEST(ConvertDuration, MalformedOnesNameTheField) {
  for (const Duration& bad :
       {Of<Duration>(TimeUtil::kDurationMaxSeconds + 1, 0),
        Of<Duration>(TimeUtil::kDurationMinSeconds - 1, 0),
        Of<Duration>(std::numeric_limits<int64_t>::max(), 0),
        Of<Duration>(std::numeric_limits<int64_t>::min(), 0),
        Of<Duration>(0, 1'000'000'000), Of<Duration>(0, -1'000'000'000),
        Of<Duration>(1, -1), Of<Duration>(-1, 1),
        Of<Duration>(0, std::numeric_limits<int32_t>::min())}) {
    test::ExpectField(ToMicros(bad, "max_ttl").status(), "max_ttl");
  }
}

TEST(ConvertTimestamp, PartsOfAMicrosecondAreRoundedUp) {
  EXPECT_EQ(*ToMicros(Of<Timestamp>(1, 1), "to"), 1'000'001);
  EXPECT_EQ(*ToMicros(Of<Timestamp>(-1, 999'999'999), "to"), 0);
}

TEST(ConvertTimestamp, MalformedOnesNameTheField) {
  for (const Timestamp& bad :
       {Of<Timestamp>(TimeUtil::kTimestampMaxSeconds + 1, 0),
        Of<Timestamp>(TimeUtil::kTimestampMinSeconds - 1, 0),
        Of<Timestamp>(0, -1), Of<Timestamp>(0, 1'000'000'000)}) {
    test::ExpectField(ToMicros(bad, "to").status(), "to");
  }
}

TEST(ConvertTimestamp, ComesBackAsItWent) {
  for (const int64_t time_us :
       {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{-1'000'000},
        int64_t{-1'000'001}, int64_t{1'700'000'000'123'456},
        TimeUtil::kTimestampMaxSeconds * kMicrosPerSecond,
        TimeUtil::kTimestampMinSeconds * kMicrosPerSecond}) {
    Timestamp time;
    SetTime(time_us, &time);
    EXPECT_EQ(*ToMicros(time, "to"), time_us);
    Duration duration;
    SetDuration(time_us, &duration);
    EXPECT_EQ(*ToMicros(duration, "by"), time_us);
  }
}

}  // namespace
}  // namespace timecache::server
