#include "server/engine/store/gathered_parts.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

void ExpectField(const absl::Status& status, absl::string_view field) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(FieldOf(status), std::string(field)) << status;
}

TEST(GatheringTest, RangesAreChecked) {
  Gathering gathering;
  const std::string longest(kMaxPartNameBytes, 'n');
  const std::string longer = longest + "n";
  ExpectField(gathering.Set("", 2, {}), "part");
  ExpectField(gathering.Set(longer, 2, {}), "part");
  EXPECT_TRUE(gathering.Set(longest, 2, {}).ok());
  ExpectField(gathering.Set("a", kMaxExpectedParts + 1, {}), "expected_parts");
  EXPECT_TRUE(gathering.Set("a", kMaxExpectedParts, {}).ok());
  EXPECT_EQ(gathering.expected(), kMaxExpectedParts);
  ExpectField(gathering.Set("a", 1, {"a"}), "expected_parts");
  ExpectField(gathering.Set("a", 0, {"a", ""}), "expected_names");
  ExpectField(gathering.Set("a", 0, {"a", longer}), "expected_names");
  ExpectField(gathering.Set("a", 0, {"b", "a", "b"}), "expected_names");
  ExpectField(gathering.Set("a", 0, {"b", "c"}), "part");
  std::vector<std::string> names;
  for (uint32_t i = 0; i <= kMaxExpectedParts; ++i) {
    names.push_back(absl::StrCat("part", i));
  }
  std::vector<absl::string_view> views(names.begin(), names.end());
  ExpectField(gathering.Set("part0", 0, views), "expected_names");
  views.pop_back();
  EXPECT_TRUE(gathering.Set("part0", 0, views).ok());
}

TEST(GatheringTest, WhatAKeyExpectsIsReadFromItsValue) {
  Gathering gathering;
  ASSERT_TRUE(gathering.Set("a", 0, {}).ok());
  EXPECT_EQ(gathering.expected(), 0u);
  EXPECT_EQ(gathering.expectation(), "");
  ASSERT_TRUE(gathering.Set("a", 0, {"b", "a"}).ok());
  std::string value(gathering.expectation());
  AppendPart({"a", "1"}, &value);
  StoredExpectation stored = ReadExpectation(value, "b");
  EXPECT_EQ(stored.bytes, gathering.expectation().size());
  EXPECT_EQ(stored.parts, 2u);
  EXPECT_TRUE(stored.has_part);
  EXPECT_FALSE(ReadExpectation(value, "c").has_part);
  ASSERT_TRUE(gathering.Set("a", 300, {}).ok());
  value = std::string(gathering.expectation());
  AppendPart({"a", "1"}, &value);
  stored = ReadExpectation(value, "any");
  EXPECT_EQ(stored.bytes, gathering.expectation().size());
  EXPECT_EQ(stored.parts, 300u);
  EXPECT_TRUE(stored.has_part);
}

TEST(GatheringTest, TheOrderOfNamesDoesNotMatter) {
  Gathering one, other;
  ASSERT_TRUE(one.Set("a", 0, {"a", "b", "c"}).ok());
  ASSERT_TRUE(other.Set("c", 0, {"c", "a", "b"}).ok());
  EXPECT_EQ(one.expectation(), other.expectation());
  EXPECT_EQ(one.expected(), 3u);
  // And what was set before is gone.
  ASSERT_TRUE(other.Set("c", 3, {}).ok());
  EXPECT_EQ(other.expectation(), "\x10\x03");
}

TEST(PartsReaderTest, ReadsWhatWasAppended) {
  Gathering gathering;
  ASSERT_TRUE(gathering.Set("a", 0, {"a", "b"}).ok());
  std::string value(gathering.expectation());
  EXPECT_FALSE(ExpectsTheSame(value, gathering));
  const std::string large(100'000, 'v');
  AppendPart({"a", large}, &value);
  AppendPart({"b", ""}, &value);
  EXPECT_TRUE(ExpectsTheSame(value, gathering));
  PartsReader reader(value);
  GatheredPart part;
  ASSERT_TRUE(reader.Next(&part));
  EXPECT_EQ(part.name, "a");
  EXPECT_EQ(part.value, large);
  ASSERT_TRUE(reader.Next(&part));
  EXPECT_EQ(part.name, "b");
  EXPECT_EQ(part.value, "");
  EXPECT_FALSE(reader.Next(&part));
  EXPECT_FALSE(reader.Next(&part));
}

TEST(PartsReaderTest, WhatIsNoSuchValueEnds) {
  std::string value = "\x10\x02";
  AppendPart({"name", "value"}, &value);
  GatheredPart part;
  for (size_t size = 0; size < value.size(); ++size) {
    PartsReader reader(absl::string_view(value).substr(0, size));
    EXPECT_FALSE(reader.Next(&part)) << size;
  }
  for (const absl::string_view bytes :
       {"plain text", "\x0a\xff\xff\xff\xff\xff\xff", "\x0a\x05\x0a\x09zzz",
        "\x1a", "\x10"}) {
    PartsReader reader(bytes);
    EXPECT_FALSE(reader.Next(&part));
  }
}

}  // namespace
}  // namespace timecache::server
