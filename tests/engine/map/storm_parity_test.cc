// The promises of the map that this one follows, Storm's TimeCacheMap, in its
// own terms.
//
// Storm keeps a list of B maps. A put goes into the first; a cleaner adds a
// fresh map in front every T / (B - 1) seconds, and drops the last with a
// callback for each of its entries. So an entry lives between T and T x (1 + 1
// / (B - 1)).

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Storm's own default number of buckets, and its message timeout.
constexpr int kStormBuckets = 3;
constexpr int64_t kStormTimeoutUs = 30 * kSecond;

NamespaceOptions Storm() { return WithBuckets(kStormTimeoutUs, kStormBuckets); }

TEST(StormParityTest, StormsNumberOfBucketsCanBeSet) {
  EXPECT_TRUE(Validate(Storm()).ok()) << Validate(Storm());
  EXPECT_EQ(BucketWidthUs(Storm()), 15 * kSecond);
}

TEST(StormParityTest, FewerThanTwoBucketsAreRefused) {
  for (const int num_buckets : {1, 0, -1}) {
    NamespaceOptions options = Storm();
    options.num_buckets = num_buckets;
    const absl::Status status = Validate(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(FieldOf(status), "num_buckets");
  }
}

TEST(StormParityTest, PutJustAfterARotationLivesFortyFiveSeconds) {
  MapHarness harness(Storm());
  harness.Pass(1);
  harness.Put("tuple", "pending");
  harness.GoTo(kStartUs + 45 * kSecond - 1);
  EXPECT_TRUE(harness.Contains("tuple"));
  EXPECT_THAT(harness.ReadEvents().events, IsEmpty());
  harness.GoTo(kStartUs + 45 * kSecond);
  EXPECT_FALSE(harness.Contains("tuple"));
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("tuple=pending"));
}

TEST(StormParityTest, PutJustBeforeARotationLivesThirtySeconds) {
  MapHarness harness(Storm());
  const int64_t put_us = kStartUs + 15 * kSecond;
  harness.GoTo(put_us);
  harness.Put("tuple", "pending");
  harness.GoTo(put_us + 30 * kSecond - 1);
  EXPECT_TRUE(harness.Contains("tuple"));
  EXPECT_THAT(harness.ReadEvents().events, IsEmpty());
  harness.GoTo(put_us + 30 * kSecond);
  EXPECT_FALSE(harness.Contains("tuple"));
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("tuple=pending"));
}

TEST(StormParityTest, ExpiryFallsWithinTheBoundWhateverTheNumberOfBuckets) {
  for (const int num_buckets : {2, 3, 4, 7, 11, 101, 1000}) {
    SCOPED_TRACE(num_buckets);
    const NamespaceOptions options = WithBuckets(kStormTimeoutUs, num_buckets);
    MapHarness harness(options);
    for (int i = 0; i < 300; ++i) {
      harness.Put(absl::StrCat("tuple", i), absl::StrCat(harness.now_us()));
      harness.Pass(137'003);
    }
    harness.Pass(3 * kStormTimeoutUs);
    const Reading reading = harness.ReadEvents();
    ASSERT_EQ(reading.events.size(), 300u);
    for (const DeliveredEvent& told : reading.events) {
      const int64_t lived_us = told.death_us - std::stoll(told.value);
      EXPECT_GE(lived_us, kStormTimeoutUs);
      // lived < T x (1 + 1 / (B - 1)), without a fraction.
      EXPECT_LT((lived_us - kStormTimeoutUs) * (num_buckets - 1),
                kStormTimeoutUs);
    }
  }
}

TEST(StormParityTest, PutMovesTheKeyOutOfOlderBuckets) {
  MapHarness harness(Storm());
  harness.Put("tuple", "first");
  harness.Pass(15 * kSecond);
  harness.Put("tuple", "second");
  EXPECT_EQ(harness.Entries(), 1);
  harness.Pass(15 * kSecond);
  EXPECT_THAT(harness.ReadEvents().events, IsEmpty());
  EXPECT_EQ(harness.Get("tuple"), "second");
  harness.Pass(15 * kSecond);
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("tuple=second"));
}

TEST(StormParityTest, GetFindsAKeyInWhateverBucket) {
  MapHarness harness(Storm());
  for (int bucket = 0; bucket < kStormBuckets; ++bucket) {
    harness.Put(absl::StrCat("tuple", bucket), absl::StrCat(bucket));
    if (bucket + 1 < kStormBuckets) harness.Pass(14 * kSecond);
  }
  for (int bucket = 0; bucket < kStormBuckets; ++bucket) {
    EXPECT_EQ(harness.Get(absl::StrCat("tuple", bucket)), absl::StrCat(bucket));
  }
  EXPECT_EQ(harness.Statistics().live_buckets, kStormBuckets);
}

TEST(StormParityTest, RemoveTakesAKeyOutAndNoCallbackFollows) {
  MapHarness harness(Storm());
  harness.Put("tuple", "pending");
  harness.Pass(20 * kSecond);
  EXPECT_TRUE(harness.Apply(Operation::Remove("tuple")).found);
  EXPECT_FALSE(harness.Apply(Operation::Remove("tuple")).found);
  harness.Pass(kStormTimeoutUs);
  EXPECT_THAT(harness.ReadEvents().events, IsEmpty());
}

TEST(StormParityTest, AWholeDeadBucketArrivesInOneBatch) {
  MapHarness harness(Storm());
  harness.Pass(1);
  for (int i = 0; i < 500; ++i) {
    harness.Put(absl::StrCat("old", i), "v");
    harness.Pass(1'000);
  }
  harness.Pass(15 * kSecond);
  for (int i = 0; i < 300; ++i) harness.Put(absl::StrCat("young", i), "v");
  harness.GoTo(kStartUs + 45 * kSecond);
  EXPECT_THAT(harness.ReadEvents().batch_sizes, ElementsAre(500));
  harness.GoTo(kStartUs + 60 * kSecond);
  EXPECT_THAT(harness.ReadEvents().batch_sizes, ElementsAre(300));
}

TEST(StormParityTest, SizeSumsAllBuckets) {
  MapHarness harness(Storm());
  int64_t put = 0;
  for (int bucket = 0; bucket < kStormBuckets; ++bucket) {
    for (int i = 0; i <= bucket; ++i, ++put) {
      harness.Put(absl::StrCat("tuple", put), "v");
    }
    EXPECT_EQ(harness.Entries(), put);
    if (bucket + 1 < kStormBuckets) harness.Pass(14 * kSecond);
  }
  harness.GoTo(kStartUs + 30 * kSecond);
  EXPECT_EQ(harness.Entries(), put - 1);
}

// RotatingMap.rotate, by hand.
TEST(StormParityTest, RotateDropsTheOldestBucketWithItsEntries) {
  MapHarness harness(Storm());
  harness.Put("old", "v");
  harness.Pass(15 * kSecond);
  harness.Put("young", "v");
  EXPECT_EQ(harness.Rotate(), 1);
  EXPECT_FALSE(harness.Contains("old"));
  EXPECT_TRUE(harness.Contains("young"));
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("old=v"));
}

// Not so in Storm: there the cleaner's callbacks run after the rotation and
// without its lock, so that a fresh value may be seen before the old one's
// callback.
TEST(StormParityTest, ARePutNeverOvertakesTheOldValuesExpiry) {
  MapHarness harness(Storm());
  harness.Put("tuple", "old");
  harness.Pass(30 * kSecond);
  harness.map().Advance(harness.now_us());
  harness.PutFor("tuple", "new", kMinTtlUs);
  harness.Pass(15 * kSecond);
  const Reading reading = harness.ReadEvents();
  EXPECT_THAT(reading.Texts(), ElementsAre("tuple=old", "tuple=new"));
  EXPECT_LT(reading.events[0].version, reading.events[1].version);
}

}  // namespace
}  // namespace timecache::server
