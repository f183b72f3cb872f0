#include "server/api/enum_names.h"

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;

TEST(EnumNamesTest, AreShortAndLowerCase) {
  EXPECT_THAT(EnumNames(*config::v1::LogLevel_descriptor()),
              ElementsAre("debug", "info", "warning", "error"));
  EXPECT_EQ(EnumName(*v1::LimitPolicy_descriptor()->FindValueByNumber(
                v1::LIMIT_POLICY_EVICT_OLDEST)),
            "evict_oldest");
}

TEST(EnumNamesTest, FindTheirValue) {
  const auto& levels = *config::v1::LogLevel_descriptor();
  ASSERT_NE(FindEnumValue(levels, "warning"), nullptr);
  EXPECT_EQ(FindEnumValue(levels, "warning")->number(),
            config::v1::LOG_LEVEL_WARNING);
  for (const char* name :
       {"unspecified", "LOG_LEVEL_INFO", "INFO", "", "inf"}) {
    EXPECT_EQ(FindEnumValue(levels, name), nullptr) << name;
  }
}

TEST(EnumNamesTest, AreWholeWhereNoneIsUnspecified) {
  EXPECT_THAT(
      EnumNames(*google::protobuf::FieldDescriptorProto_Label_descriptor()),
      ElementsAre("label_optional", "label_required", "label_repeated"));
}

}  // namespace
}  // namespace timecache::server
