#include "server/api/proto_operation.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/clock.h"
#include "tests/support/expect_field.h"

namespace timecache::server {
namespace {

using ::testing::HasSubstr;

TEST(ConvertPut, CarriesEveryField) {
  v1::PutRequest request;
  request.set_key("k");
  request.set_value("v");
  request.mutable_ttl()->set_seconds(5);
  request.set_condition(v1::PUT_CONDITION_IF_ABSENT);
  request.set_return_previous(true);
  const Operation op = *ToOperation(request);
  EXPECT_EQ(op.kind, OpKind::kPut);
  EXPECT_EQ(op.key, "k");
  EXPECT_EQ(op.value, "v");
  EXPECT_TRUE(op.has_ttl);
  EXPECT_EQ(op.ttl_us, 5 * kMicrosPerSecond);
  EXPECT_EQ(op.condition, Condition::kIfAbsent);
  EXPECT_TRUE(op.return_previous);
  request.set_condition(v1::PUT_CONDITION_IF_PRESENT);
  EXPECT_EQ(ToOperation(request)->condition, Condition::kIfPresent);
  request.clear_condition();
  request.set_if_version(7);
  EXPECT_EQ(ToOperation(request)->condition, Condition::kIfVersion);
  EXPECT_EQ(ToOperation(request)->if_version, 7u);
}

TEST(ConvertGet, TouchIsUnsetTrueOrFalse) {
  v1::GetRequest get;
  const auto renews = [&get](bool sliding) {
    return GetRenews(*ToOperation(get), sliding);
  };
  EXPECT_FALSE(renews(false));
  EXPECT_TRUE(renews(true));
  get.set_touch(true);
  EXPECT_TRUE(renews(false));
  get.set_touch(false);
  EXPECT_FALSE(renews(true));
}

// Of a Put and of a Touch; a part of a microsecond is rounded up.
TEST(ConvertPut, ADueDateIsATime) {
  v1::PutRequest put;
  v1::TouchRequest touch;
  EXPECT_FALSE(ToOperation(put)->has_expire_at);
  put.mutable_expire_at()->set_seconds(5);
  put.mutable_expire_at()->set_nanos(1);
  put.set_allow_past(true);
  *touch.mutable_expire_at() = put.expire_at();
  touch.set_allow_past(true);
  for (const auto& op : {ToOperation(put), ToOperation(touch)}) {
    ASSERT_TRUE(op.ok()) << op.status();
    EXPECT_TRUE(op->has_expire_at);
    EXPECT_EQ(op->expire_at_us, 5 * kMicrosPerSecond + 1);
    EXPECT_TRUE(op->allow_past);
    EXPECT_FALSE(op->has_ttl);
  }
  put.mutable_expire_at()->set_nanos(-1);
  test::ExpectField(ToOperation(put).status(), "expire_at");
}

TEST(ConvertPut, OfTwoConditionsTheLastOneCounts) {
  v1::PutRequest request;
  request.set_key("k");
  request.set_if_version(1);
  request.set_condition(v1::PUT_CONDITION_IF_PRESENT);
  EXPECT_EQ(ToOperation(request)->condition, Condition::kIfPresent);
  EXPECT_EQ(ToOperation(request)->if_version, 0u);
  request.set_if_version(1);
  EXPECT_EQ(ToOperation(request)->condition, Condition::kIfVersion);
  request.set_condition(v1::PUT_CONDITION_UNSPECIFIED);
  EXPECT_EQ(ToOperation(request)->condition, Condition::kNone);
}

TEST(ConvertPut, ConditionsThatThereAreNotAreRefused) {
  v1::PutRequest request;
  request.set_key("k");
  request.set_if_version(0);
  test::ExpectField(ToOperation(request).status(), "if_version");
  request.set_condition(static_cast<v1::PutCondition>(99));
  const absl::Status status = ToOperation(request).status();
  test::ExpectField(status, "condition");
  EXPECT_THAT(std::string(status.message()), HasSubstr("99"));
}

}  // namespace
}  // namespace timecache::server
