#include "server/engine/store/traceparent.h"

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

TEST(TraceparentTest, BothFormsAreMadeOfEither) {
  for (const absl::string_view trace : kTraces) {
    ASSERT_TRUE(IsTraceparent(trace));
    std::string packed(kTraceBytes, '\0');
    PackTrace(trace, packed.data());
    std::string again(kTraceBytes, '\0');
    PackTrace(packed, again.data());
    EXPECT_EQ(again, packed);
    std::string text(kTraceTextBytes, '\0');
    FormatTrace(packed, text.data());
    EXPECT_EQ(text, trace);
    FormatTrace(trace, text.data());
    EXPECT_EQ(text, trace);
  }
}

TEST(TraceparentTest, OnlyTheFormOfVersion00IsOne) {
  for (const absl::string_view text : {
           "",
           "00",
           "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01",
           "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
       }) {
    EXPECT_FALSE(IsTraceparent(text)) << text;
  }
  EXPECT_FALSE(IsTraceparent(kNoTrace));
}

// Every Put sets it anew; others only that of an entry which they make.
TEST(TraceparentTest, ItIsOfThePutThatMadeTheValue) {
  MapHarness harness(Tens());
  const auto apply = [&](Operation op, absl::string_view trace) {
    op.SetTrace(trace);
    return harness.Apply(op).status;
  };
  const auto put = [](absl::string_view key) {
    return Operation::Put(key, "1");
  };
  const auto add = [](absl::string_view key) {
    return Operation::Combine(key, Combination::kAdd, 9);
  };
  EXPECT_TRUE(apply(put("kept"), kTraces[0]).ok());
  EXPECT_TRUE(apply(add("kept"), kTraces[1]).ok());
  EXPECT_TRUE(apply(Operation::Append("kept", "0"), kTraces[1]).ok());
  EXPECT_TRUE(harness.Apply(Operation::Touch("kept")).found);
  EXPECT_TRUE(apply(put("set"), kTraces[0]).ok());
  Operation again = put("set");
  again.keep_deadline = true;
  EXPECT_TRUE(apply(again, kTraces[1]).ok());
  EXPECT_TRUE(apply(put("gone"), kTraces[0]).ok());
  EXPECT_TRUE(apply(put("gone"), "").ok());
  EXPECT_TRUE(apply(add("added"), kTraces[0]).ok());
  EXPECT_TRUE(apply(Operation::Append("log", "a"), kTraces[1]).ok());
  EXPECT_EQ(apply(put("none"), kNoTrace).code(),
            absl::StatusCode::kInvalidArgument);
  harness.Pass(100 * kSecond);
  std::map<std::string, std::string> traces;
  for (const DeliveredEvent& event : harness.ReadEvents().events) {
    traces[event.key + "=" + event.value] = event.trace;
  }
  const std::map<std::string, std::string> expected = {
      {"kept=100", std::string(kTraces[0])},
      {"set=1", std::string(kTraces[1])},
      {"gone=1", ""},
      {"added=9", std::string(kTraces[0])},
      {"log=a", std::string(kTraces[1])}};
  EXPECT_EQ(traces, expected);
}

}  // namespace
}  // namespace timecache::server
