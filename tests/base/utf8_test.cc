#include "server/base/utf8.h"

#include "gtest/gtest.h"

namespace timecache {
namespace {

constexpr size_t kValid = absl::string_view::npos;

TEST(Utf8Test, WellFormedTextIsValid) {
  EXPECT_EQ(FindInvalidUtf8(""), kValid);
  EXPECT_EQ(FindInvalidUtf8(absl::string_view("a\0b\x7f", 4)), kValid);
  EXPECT_EQ(FindInvalidUtf8("\xc2\x80 \xdf\xbf"), kValid);  // 2 bytes
  EXPECT_EQ(FindInvalidUtf8("\xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80"),
            kValid);                                                        // 3
  EXPECT_EQ(FindInvalidUtf8("\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf"), kValid);  // 4
}

TEST(Utf8Test, TheFirstInvalidByteIsFound) {
  EXPECT_EQ(FindInvalidUtf8("ab\xff"), 2u);
  EXPECT_EQ(FindInvalidUtf8("\xc3\xa9\x80"), 2u);      // a rest without a lead
  EXPECT_EQ(FindInvalidUtf8("a\xc3"), 1u);             // cut short
  EXPECT_EQ(FindInvalidUtf8("a\xe2\x82."), 1u);        // broken off
  EXPECT_EQ(FindInvalidUtf8("\xc0\xaf"), 0u);          // overlong, 2 bytes
  EXPECT_EQ(FindInvalidUtf8("\xe0\x9f\xbf"), 0u);      // overlong, 3
  EXPECT_EQ(FindInvalidUtf8("\xf0\x8f\xbf\xbf"), 0u);  // overlong, 4
  EXPECT_EQ(FindInvalidUtf8("\xed\xa0\x80"), 0u);      // a surrogate
  EXPECT_EQ(FindInvalidUtf8("\xf4\x90\x80\x80"), 0u);  // beyond U+10FFFF
  EXPECT_EQ(FindInvalidUtf8("\xf8\x88\x80\x80\x80"), 0u);  // five bytes
}

}  // namespace
}  // namespace timecache
