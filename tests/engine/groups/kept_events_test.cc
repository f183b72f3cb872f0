#include "server/engine/groups/kept_events.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Death kDeath = {100, 101, Cause::kExpired};

std::string KeyOf(uint64_t number) { return absl::StrCat("key", number); }

// Of the events from `first` to before `end`.
std::shared_ptr<const EventBatch> BatchOf(uint64_t first, uint64_t end) {
  auto batch = std::make_shared<EventBatch>("map", kDeath);
  for (uint64_t number = first; number < end; ++number) {
    const std::string key = KeyOf(number);
    batch->Add({key, "value", number, 1, 2});
  }
  return batch;
}

class KeptEventsTest : public ::testing::Test {
 protected:
  void Append(uint64_t first, uint64_t end, uint64_t from = 0) {
    kept_.Append(first, BatchOf(first, end), from);
  }
  void Insert(uint64_t number, const Death& death = kDeath) {
    const std::string key = KeyOf(number);
    kept_.Insert(number, {key, "value", number, 1, 2}, death);
  }
  std::vector<uint64_t> Numbers(uint64_t first = 0,
                                uint64_t end = UINT64_MAX) const {
    std::vector<uint64_t> numbers;
    kept_.Visit(first, end,
                [&](uint64_t number) { numbers.push_back(number); });
    return numbers;
  }

  KeptEvents kept_{"map"};
};

// Each event stands where its number says.
void CheckBatches(const std::vector<KeptBatch>& batches) {
  uint64_t last = 0;
  for (const KeptBatch& kept : batches) {
    int count = 0;
    for (int i = 0; i < kept.batch->size(); ++i) {
      EXPECT_GT(kept.number(i), last);
      last = kept.number(i);
      EXPECT_EQ(kept.batch->key(i), KeyOf(kept.number(i)));
      EXPECT_EQ(kept.IndexFrom(kept.number(i)), i);
      count += kept.keeps(i) ? 1 : 0;
    }
    EXPECT_EQ(count, kept.kept);
    EXPECT_GT(count, 0);
  }
}

TEST_F(KeptEventsTest, WhatIsNotRemovedIsKept) {
  Append(10, 15);
  Append(15, 20);
  kept_.Remove(13, 17);
  EXPECT_THAT(Numbers(), ElementsAre(10, 11, 12, 17, 18, 19));
  EXPECT_THAT(Numbers(12, 18), ElementsAre(12, 17));
  EXPECT_EQ(kept_.size(), 6u);
  // Once more is no change, and neither is what was never there.
  kept_.Remove(0, 11);
  kept_.Remove(13, 17);
  kept_.Remove(100, 200);
  EXPECT_EQ(kept_.size(), 5u);
  CheckBatches(kept_.Take());
}

TEST_F(KeptEventsTest, EventsBeforeTheFirstOneThatIsHeededAreNotKept) {
  Append(10, 15, 13);
  EXPECT_THAT(Numbers(), ElementsAre(13, 14));
  Append(15, 20, 13);
  // Its numbers are free for what is told by itself.
  Insert(11);
  Insert(12);
  EXPECT_THAT(Numbers(10, 16), ElementsAre(11, 12, 13, 14, 15));
  CheckBatches(kept_.Take());
}

TEST_F(KeptEventsTest, ABatchOfWhichHalfIsSettledTakesHalfTheMemory) {
  Append(0, 1'000);
  for (uint64_t number = 0; number < 1'000; ++number) {
    if (number % 100 != 7) kept_.Remove(number, number + 1);
  }
  EXPECT_THAT(Numbers(0, 300), ElementsAre(7, 107, 207));
  const std::vector<KeptBatch> batches = kept_.Take();
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_LE(batches[0].batch->size(), 20);
  CheckBatches(batches);
}

TEST_F(KeptEventsTest, EventsThatComeOneByOneShareABatch) {
  for (const uint64_t number : {5, 6, 7, 8}) Insert(number);
  for (const uint64_t number : {20, 30, 40}) Insert(number);
  Insert(50, {200, 201, Cause::kRotated});
  // They are there.
  Insert(6);
  Insert(30);
  EXPECT_EQ(kept_.size(), 8u);
  const std::vector<KeptBatch> batches = kept_.Take();
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[1].batch->cause(), Cause::kRotated);
  CheckBatches(batches);
  EXPECT_THAT(Numbers(), IsEmpty());
}

TEST_F(KeptEventsTest, NumbersThatFollowEachOtherTakeNoMemory) {
  for (const uint64_t number : {5, 6, 7, 8}) Insert(number);
  const std::vector<KeptBatch> batches = kept_.Take();
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_TRUE(batches[0].places.empty());
  CheckBatches(batches);
}

TEST_F(KeptEventsTest, EventsComeBetweenBatchesOfTheLog) {
  Append(100, 110);
  Insert(50);
  Insert(60);
  Append(110, 120);
  Insert(70);
  Insert(105);
  EXPECT_EQ(kept_.size(), 23u);
  kept_.Remove(60, 115);
  EXPECT_THAT(Numbers(), ElementsAre(50, 115, 116, 117, 118, 119));
  CheckBatches(kept_.Take());
}

}  // namespace
}  // namespace timecache::server
