#include "server/engine/shard/record.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/engine/store/namespace_options.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

constexpr RecordBase kBase = {1'000'000, 1'800'000'000'000'000, 30'000'000};

Record Sample() {
  Record record;
  record.key = "key";
  record.value = "value";
  record.version = kBase.version + 5;
  record.SetTimes(kBase.put_us + 7, kBase.life_us, /*own_ttl=*/0);
  return record;
}

absl::string_view TraceOf(const Record& record) {
  return {record.trace, record.trace != nullptr ? kTraceBytes : 0};
}

// Encodes, decodes, and expects the same; returns the size.
size_t RoundTrip(const Record& record, const RecordBase& base) {
  const size_t size = EncodedSize(record, base);
  // One byte more, to see that it is not written.
  std::string bytes(size + 1, '#');
  EncodeRecord(record, base, bytes.data());
  EXPECT_EQ(bytes.back(), '#');
  size_t read = 0;
  const Record back = DecodeRecord(bytes.data(), base, &read);
  EXPECT_EQ(read, size);
  EXPECT_EQ(back.key, record.key);
  EXPECT_EQ(back.value, record.value);
  EXPECT_EQ(back.version, record.version);
  EXPECT_EQ(back.put_us, record.put_us);
  EXPECT_EQ(back.life_us, record.life_us);
  EXPECT_EQ(back.create_us, record.create_us);
  EXPECT_EQ(back.own_ttl_us, record.own_ttl_us);
  EXPECT_EQ(TraceOf(back), TraceOf(record));
  EXPECT_EQ(back.parts, record.parts);
  EXPECT_EQ(back.capacity, record.capacity);
  EXPECT_EQ(back.index, record.index);
  return size;
}

TEST(RecordTest, SmallEntryCostsTenBytes) {
  Record record = Sample();
  const std::string key(16, 'k');
  const std::string value(64, 'v');
  record.key = key;
  record.value = value;
  EXPECT_EQ(RoundTrip(record, kBase), 10u + 16 + 64);
}

TEST(RecordTest, ADeadRecordSaysSoAndKeepsItsSizeAndKey) {
  Record wide = Sample();
  wide.version = kBase.version + (uint64_t{1} << 40);
  Record growable = wide;
  growable.capacity = 50;
  Record renewed = Sample();
  renewed.create_us -= 1'000;
  for (const Record& record : {Sample(), wide, growable, renewed}) {
    std::string bytes(EncodedSize(record, kBase), '#');
    EncodeRecord(record, kBase, bytes.data());
    EXPECT_FALSE(IsRecordDead(bytes.data()));
    MarkRecordDead(bytes.data());
    EXPECT_TRUE(IsRecordDead(bytes.data()));
    size_t read = 0;
    const Record back = DecodeRecord(bytes.data(), kBase, &read);
    EXPECT_EQ(read, bytes.size());
    EXPECT_EQ(back.key, record.key);
    EXPECT_EQ(back.value, record.value);
  }
}

// The version that would read as the mark is written wide.
TEST(RecordTest, NoLiveRecordReadsAsDead) {
  RecordBase base = kBase;
  base.version = uint64_t{1} << 40;
  for (int64_t distance : {int64_t{INT32_MIN}, int64_t{INT32_MIN} + 1,
                           int64_t{INT32_MAX}, int64_t{INT32_MIN} - 1}) {
    Record record = Sample();
    record.version = base.version + static_cast<uint64_t>(distance);
    RoundTrip(record, base);
    std::string bytes(EncodedSize(record, base), '#');
    EncodeRecord(record, base, bytes.data());
    EXPECT_FALSE(IsRecordDead(bytes.data())) << distance;
  }
}

TEST(RecordTest, TimesFarFromTheBaseAreKept) {
  for (int64_t distance : {int64_t{0}, int64_t{INT32_MAX}, int64_t{INT32_MIN},
                           int64_t{INT32_MAX} + 1, int64_t{INT32_MIN} - 1,
                           int64_t{86'400'000'000}}) {
    Record record = Sample();
    record.put_us = kBase.put_us + distance;
    RoundTrip(record, kBase);
  }
}

TEST(RecordTest, CountsOlderAndFarNewerThanTheBaseAreKept) {
  for (uint64_t version :
       {uint64_t{1}, kBase.version - 1, kBase.version + INT32_MAX,
        kBase.version + INT32_MAX + 1, uint64_t{1} << 60, UINT64_MAX}) {
    Record record = Sample();
    record.version = version;
    RoundTrip(record, kBase);
  }
}

TEST(RecordTest, TimesThatDifferCostWhatTheyTake) {
  Record record = Sample();
  const size_t plain = RoundTrip(record, kBase);
  record.own_ttl_us = record.life_us;
  EXPECT_EQ(RoundTrip(record, kBase), plain);
  // A microsecond ago, and nearly nine years.
  for (const int64_t age_us : {int64_t{1}, (int64_t{1} << 48) - 1}) {
    record.create_us = record.put_us - age_us;
    EXPECT_EQ(RoundTrip(record, kBase), plain + 1 + 6);
  }
  record.life_us = kMaxTtlUs;
  EXPECT_EQ(RoundTrip(record, kBase), plain + 1 + 6 + 8 + 4);
  record.own_ttl_us = kMaxTtlUs;
  EXPECT_EQ(RoundTrip(record, kBase), plain + 1 + 6 + 8);
  record.own_ttl_us = 0;
  EXPECT_EQ(RoundTrip(record, kBase), plain + 1 + 6 + 8);
}

TEST(RecordTest, ATraceparentCostsWhatItTakes) {
  Record record = Sample();
  const size_t plain = RoundTrip(record, kBase);
  char trace[kTraceBytes];
  PackTrace(kTraces[1], trace);
  record.trace = trace;
  EXPECT_EQ(RoundTrip(record, kBase), plain + 1 + 1 + 25);
  record.own_ttl_us = record.life_us;
  RoundTrip(record, kBase);
  record.own_ttl_us = INT64_MAX;
  record.life_us = -1;
  record.create_us = INT64_MIN;
  RoundTrip(record, kBase);
  record.parts = true;
  const std::string index(17 * sizeof(uint32_t), 'i');
  record.index = index;
  record.capacity = 100;
  RoundTrip(record, kBase);
}

// A value that gets shorter by as much as the rest gets longer.
TEST(RecordTest, ATraceparentMovesWithinItsRecord) {
  char trace[kTraceBytes];
  PackTrace(kTraces[0], trace);
  Record record = Sample();
  record.trace = trace;
  const std::string value = "10";
  record.value = value;
  std::string bytes(EncodedSize(record, kBase), '#');
  EncodeRecord(record, kBase, bytes.data());
  size_t size;
  Record next = DecodeRecord(bytes.data(), kBase, &size);
  next.key = record.key;
  next.own_ttl_us = 128;
  next.value = absl::string_view(value).substr(1);
  ASSERT_EQ(EncodedSize(next, kBase), size);
  EncodeRecord(next, kBase, bytes.data());
  const Record back = DecodeRecord(bytes.data(), kBase, &size);
  EXPECT_EQ(back.own_ttl_us, 128);
  EXPECT_EQ(back.value, "0");
  EXPECT_EQ(absl::string_view(back.trace, kTraceBytes),
            absl::string_view(trace, kTraceBytes));
}

// All times that a journal may bring.
TEST(RecordTest, AnyTimesAreKept) {
  for (const int64_t put_us : {kBase.put_us, INT64_MIN, INT64_MAX}) {
    for (const int64_t create_us :
         {put_us, int64_t{0}, INT64_MIN, INT64_MAX, kBase.put_us}) {
      for (const int64_t life_us :
           {kBase.life_us, int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
        for (const int64_t own_ttl_us :
             {int64_t{0}, kBase.life_us, INT64_MAX}) {
          Record record = Sample();
          record.put_us = put_us;
          record.create_us = create_us;
          record.life_us = life_us;
          record.own_ttl_us = own_ttl_us;
          RoundTrip(record, kBase);
        }
      }
    }
  }
}

TEST(RecordTest, PartsAndRoomToGrowAreKept) {
  Record record = Sample();
  record.parts = true;
  const size_t parts = RoundTrip(record, kBase);
  record.capacity = 100;
  EXPECT_EQ(RoundTrip(record, kBase), parts - 5 + 100 + 3 + 4);
  // An index of 16 slots, with room to grow and without.
  const std::string index(17 * sizeof(uint32_t), 'i');
  record.index = index;
  EXPECT_EQ(RoundTrip(record, kBase), parts - 5 + 100 + 3 + 4 + 1 + 68);
  record.capacity = 0;
  EXPECT_EQ(RoundTrip(record, kBase), parts + 1 + 68);
  record.parts = false;
  record.index = {};
  RoundTrip(record, kBase);
}

TEST(RecordTest, AValueGrowsWhereItLies) {
  const std::string whole(300, 'x');
  for (const size_t begin : {size_t{0}, size_t{1}, size_t{127}}) {
    Record record = Sample();
    record.value = absl::string_view(whole).substr(0, begin);
    record.capacity = 300;
    std::string bytes(EncodedSize(record, kBase) + 1, '#');
    EncodeRecord(record, kBase, bytes.data());
    size_t size = 0;
    for (size_t had = begin; had < whole.size(); had += 173 - begin) {
      record = DecodeRecord(bytes.data(), kBase, &size);
      EXPECT_EQ(size, bytes.size() - 1);
      ++record.version;
      record.put_us += 5;
      record.create_us += 5;
      const size_t more = std::min(173 - begin, whole.size() - had);
      ExtendRecord(record, kBase, absl::string_view(whole).substr(had, more),
                   bytes.data());
      const Record back = DecodeRecord(bytes.data(), kBase, &size);
      EXPECT_EQ(back.key, "key");
      EXPECT_EQ(back.value, absl::string_view(whole).substr(0, had + more));
      EXPECT_EQ(back.version, record.version);
      EXPECT_EQ(back.put_us, record.put_us);
      EXPECT_EQ(back.create_us, record.create_us);
      EXPECT_EQ(back.capacity, 300u);
      EXPECT_EQ(bytes.back(), '#');
    }
  }
}

TEST(RecordTest, SizesAtTheEdgesOfTheirEncoding) {
  const std::string bytes(kMaxValueBytesLimit, 'x');
  for (size_t key : {1, 31, 32, 4095, static_cast<int>(kMaxKeyBytes)}) {
    for (size_t value : {size_t{0}, size_t{127}, size_t{128}, size_t{16'383},
                         size_t{16'384}, bytes.size()}) {
      Record record = Sample();
      record.key = absl::string_view(bytes.data(), key);
      record.value = absl::string_view(bytes.data(), value);
      RoundTrip(record, kBase);
    }
  }
}

TEST(RecordTest, MayBeRewrittenFromItsOwnBytes) {
  Record record = Sample();
  std::vector<char> bytes(EncodedSize(record, kBase));
  EncodeRecord(record, kBase, bytes.data());
  size_t size;
  Record same = DecodeRecord(bytes.data(), kBase, &size);
  same.version += 100;
  ASSERT_EQ(EncodedSize(same, kBase), bytes.size());
  EncodeRecord(same, kBase, bytes.data());
  const Record back = DecodeRecord(bytes.data(), kBase, &size);
  EXPECT_EQ(back.key, "key");
  EXPECT_EQ(back.value, "value");
  EXPECT_EQ(back.version, kBase.version + 105);
}

TEST(RecordTest, IsOnlyWrittenWhereItFits) {
  Record record;
  record.key = "key";
  record.value = "value";
  record.version = 1;
  const size_t size = EncodedSize(record, RecordBase());
  const std::string empty(size, '#');
  std::string bytes = empty;
  EXPECT_EQ(EncodeRecordWithin(record, {}, size + 1, 2 * size, bytes.data()),
            0u);
  EXPECT_EQ(EncodeRecordWithin(record, {}, 0, size - 1, bytes.data()), 0u);
  EXPECT_EQ(bytes, empty);
  EXPECT_EQ(EncodeRecordWithin(record, {}, size, size, bytes.data()), size);
  std::string other = empty;
  EncodeRecord(record, {}, other.data());
  EXPECT_EQ(bytes, other);
}

}  // namespace
}  // namespace timecache::server
