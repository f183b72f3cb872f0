#include "server/engine/shard/part_index.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/engine/store/gathered_parts.h"

namespace timecache::server {
namespace {

const KeyHash kHash(1);
// Of the parts, behind the expectation.
constexpr size_t kBegin = 3;

// A value that expects `names` and has `parts` of `value_bytes` each.
std::string PartsValue(int parts, size_t value_bytes) {
  Gathering gathering;
  EXPECT_TRUE(gathering.Set("p0", kMaxExpectedParts, {}).ok());
  std::string value(gathering.expectation());
  for (int i = 0; i < parts; ++i) {
    const std::string name = absl::StrCat("p", i);
    AppendPart({name, std::string(value_bytes, static_cast<char>(i))}, &value);
  }
  return value;
}

Record Indexed(absl::string_view value, absl::string_view index) {
  Record record;
  record.value = value;
  record.parts = true;
  record.index = index;
  return record;
}

TEST(PartIndexTest, FindsEachPartAndReadsFewOthers) {
  for (const int parts : {0, 1, 31, 511, 512, 1023, 1024}) {
    const std::string value = PartsValue(parts, 3);
    const std::string index = MakePartIndex(value, kHash);
    const Record record = Indexed(value, index);
    uint64_t read = 0;
    for (int i = 0; i < parts; ++i) {
      const FoundPart found =
          FindPart(record, kBegin, absl::StrCat("p", i), kHash);
      EXPECT_TRUE(found.found);
      EXPECT_EQ(found.value, std::string(3, static_cast<char>(i)));
      EXPECT_EQ(found.parts, parts);
      read += found.parts_read;
    }
    EXPECT_LE(read, 2u * static_cast<uint64_t>(parts));
    read = 0;
    for (int i = 0; i < parts; ++i) {
      const FoundPart found =
          FindPart(record, kBegin, absl::StrCat("q", i), kHash);
      EXPECT_FALSE(found.found);
      EXPECT_EQ(found.parts, parts);
      read += found.parts_read;
    }
    EXPECT_LE(read, 3u * static_cast<uint64_t>(parts));
  }
}

TEST(PartIndexTest, WithoutOneAllPartsAreRead) {
  const std::string value = PartsValue(9, 0);
  const FoundPart found = FindPart(Indexed(value, ""), kBegin, "p3", kHash);
  EXPECT_TRUE(found.found);
  EXPECT_EQ(found.value, "");
  EXPECT_EQ(found.parts, 9);
  EXPECT_EQ(found.parts_read, 9u);
}

TEST(PartIndexTest, TakesRoomByItsPartsAndItsValue) {
  // Small parts: as few slots as keep half of them empty.
  EXPECT_EQ(MakePartIndex(PartsValue(511, 0), kHash).size(), 4u * 1025);
  EXPECT_EQ(MakePartIndex(PartsValue(512, 0), kHash).size(), 4u * 2049);
  // Few large ones: an eighth of the value, up to room for all.
  EXPECT_EQ(MakePartIndex(PartsValue(1, 2'000), kHash).size(), 4u * 33);
  EXPECT_EQ(MakePartIndex(PartsValue(1, 1'000'000), kHash).size(), 4u * 2049);
}

TEST(PartIndexTest, TakesPartsUntilHalfOfItIsTaken) {
  std::string value = PartsValue(15, 0);
  std::string index = MakePartIndex(value, kHash);
  ASSERT_EQ(index.size(), 4u * 33);
  ASSERT_TRUE(HasRoomForPart(index));
  AddToPartIndex("last", value.size(), kHash, index, index.data());
  AppendPart({"last", "x"}, &value);
  EXPECT_EQ(FindPart(Indexed(value, index), kBegin, "last", kHash).value, "x");
  EXPECT_FALSE(HasRoomForPart(index));
}

TEST(PartIndexTest, OnlyRecordsWithRoomForManyPartsNeedOne) {
  const std::string value(kIndexedPartsBytes - 1, 'x');
  Record record = Indexed(value, "");
  EXPECT_FALSE(NeedsPartIndex(record));
  record.capacity = kIndexedPartsBytes;
  EXPECT_TRUE(NeedsPartIndex(record));
  record.parts = false;
  EXPECT_FALSE(NeedsPartIndex(record));
}

}  // namespace
}  // namespace timecache::server
