// The engine's reasons beside those that errors.proto promises.
#include "server/base/reason.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "timecache/v1/errors.pb.h"

namespace timecache::server {
namespace {

// All that a Reason can be.
constexpr int kMaxNumber = std::numeric_limits<uint8_t>::max();

TEST(ReasonTest, EveryOneOfTheProtoIsOneOfTheEngine) {
  const auto* const reasons = v1::ErrorReason_descriptor();
  EXPECT_GT(reasons->value_count(), 30);
  for (int i = 0; i < reasons->value_count(); ++i) {
    const int number = reasons->value(i)->number();
    const std::string& name = reasons->value(i)->name();
    SCOPED_TRACE(name);
    ASSERT_LE(number, kMaxNumber);
    const auto reason = static_cast<Reason>(number);
    if (number == v1::ERROR_REASON_UNSPECIFIED) {
      EXPECT_EQ(ReasonName(reason), "");
      EXPECT_EQ(ReasonOfName(name), std::nullopt);
      continue;
    }
    EXPECT_EQ(ReasonName(reason), name);
    EXPECT_EQ(ReasonOfName(name), reason);
  }
}

TEST(ReasonTest, EveryOneOfTheEngineIsOneOfTheProto) {
  int found = 0;
  for (int number = 0; number <= kMaxNumber; ++number) {
    SCOPED_TRACE(number);
    const std::string name(ReasonName(static_cast<Reason>(number)));
    EXPECT_EQ(!name.empty(), number != 0 && v1::ErrorReason_IsValid(number));
    if (name.empty()) continue;
    ++found;
    v1::ErrorReason reason = v1::ERROR_REASON_UNSPECIFIED;
    EXPECT_TRUE(v1::ErrorReason_Parse(name, &reason)) << name;
    EXPECT_EQ(reason, number) << name;
  }
  EXPECT_EQ(found, v1::ErrorReason_descriptor()->value_count() - 1);
}

TEST(ReasonTest, AStatusKeepsIt) {
  for (int number = 1; number <= kMaxNumber; ++number) {
    const auto reason = static_cast<Reason>(number);
    if (ReasonName(reason).empty()) continue;
    const absl::Status status =
        ErrorWithReason(absl::StatusCode::kAborted, reason, "why");
    EXPECT_EQ(ReasonOf(status), reason) << number;
    EXPECT_EQ(ReasonNameOf(status), ReasonName(reason));
  }
  EXPECT_EQ(ReasonOf(absl::AbortedError("why")), std::nullopt);
  EXPECT_EQ(ReasonNameOf(absl::AbortedError("why")), "");
  EXPECT_EQ(ReasonOfName("NOTHING"), std::nullopt);
  EXPECT_EQ(ReasonOfName(""), std::nullopt);
}

}  // namespace
}  // namespace timecache::server
