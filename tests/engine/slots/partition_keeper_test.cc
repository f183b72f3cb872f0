#include "server/engine/partition_keeper.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/engine/map_harness.h"
#include "tests/support/engine/slots_store.h"

namespace timecache::server {
namespace {

constexpr uint32_t kSlots = 3;
// Over kSlots, so that some are in the slot of the first one.
constexpr int kPartitions = 7;

class PartitionKeeperTest : public testing::Test {
 protected:
  PartitionKeeperTest() {
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      keepers_.push_back(std::make_unique<PartitionKeeper>(
          slot, kSlots, &store_.registry(slot), &store_, &clock_));
    }
  }

  static NamespaceOptions Options(int num_partitions = kPartitions) {
    NamespaceOptions options = WithBuckets(10 * kSecond, 11);
    options.num_partitions = num_partitions;
    return options;
  }
  void Make(int partition, const NamespaceOptions& options = Options()) {
    const std::string name = PartitionName("orders", partition);
    ASSERT_TRUE(store_.RegistryOf(name).CreateConfigured(name, options).ok());
  }
  NamespaceOptions OptionsOf(int partition) {
    const std::string name = PartitionName("orders", partition);
    return store_.RegistryOf(name).Find(name).value()->options();
  }
  bool Has(int partition) {
    return store_.Has(PartitionName("orders", partition));
  }
  int Count() {
    int count = 0;
    for (int i = 0; i < kPartitions; ++i) count += Has(i) ? 1 : 0;
    return count;
  }
  void Look() {
    for (const auto& keeper : keepers_) keeper->Look();
  }
  void NextRound() {
    clock_.AdvanceBy(PartitionKeeper::kRoundUs);
    Look();
  }

  ManualClock clock_{kStartUs};
  SlotsStore store_{kSlots, &clock_};
  std::vector<std::unique_ptr<PartitionKeeper>> keepers_;
};

TEST_F(PartitionKeeperTest, MakesWhatIsMissing) {
  Make(0);
  Make(3);
  Look();
  EXPECT_EQ(Count(), kPartitions);
  EXPECT_EQ(OptionsOf(kPartitions - 1), Options());
}

TEST_F(PartitionKeeperTest, SpreadsTheOptionsOfTheFirst) {
  NamespaceOptions old = Options();
  old.max_entries = 5;
  for (int i = kPartitions - 1; i > 0; --i) Make(i, old);
  Make(0);
  Look();
  for (int i = 1; i < kPartitions; ++i) EXPECT_EQ(OptionsOf(i), Options());
}

TEST_F(PartitionKeeperTest, DeletesWhatBelongsToNoNamespaceInTheSecondRound) {
  for (int i = kPartitions - 1; i > 0; --i) Make(i);
  Look();
  EXPECT_EQ(Count(), kPartitions - 1);
  clock_.AdvanceBy(PartitionKeeper::kRoundUs - 1);
  Look();
  EXPECT_EQ(Count(), kPartitions - 1);
  clock_.AdvanceBy(1);
  Look();
  EXPECT_EQ(Count(), 0);
}

TEST_F(PartitionKeeperTest, ACreationThatEndsMeanwhileKeepsItsMaps) {
  for (int i = kPartitions - 1; i > 0; --i) Make(i);
  Look();
  Make(0);
  NextRound();
  ASSERT_TRUE(store_.RegistryOf("orders").Delete("orders").ok());
  NextRound();
  EXPECT_EQ(Count(), kPartitions - 1);
}

TEST_F(PartitionKeeperTest, DeletesThoseOfANamespaceWithAnotherNumber) {
  for (int i = kPartitions - 1; i > 0; --i) Make(i);
  Make(0, Options(2));
  Look();
  EXPECT_EQ(Count(), kPartitions);
  NextRound();
  for (int i = 2; i < kPartitions; ++i) EXPECT_FALSE(Has(i)) << i;
  NextRound();
  EXPECT_EQ(Count(), 2);
  EXPECT_EQ(OptionsOf(1).num_partitions, 2);
}

TEST_F(PartitionKeeperTest, WhatCannotBeAskedChangesNothing) {
  Make(1);
  store_.Fail(absl::UnavailableError("no owner"));
  for (int i = 0; i < 3; ++i) NextRound();
  EXPECT_TRUE(Has(1));
  store_.Fail(absl::OkStatus());
  NextRound();
  EXPECT_TRUE(Has(1));
  NextRound();
  EXPECT_FALSE(Has(1));
}

TEST_F(PartitionKeeperTest, HasOneRoundAtATimeWithFewCalls) {
  NamespaceOptions options = Options(64);
  const std::string name = "many";
  ASSERT_TRUE(store_.RegistryOf(name).CreateConfigured(name, options).ok());
  PartitionKeeper& keeper = *keepers_[store_.SlotOf(name)];
  store_.Hold();
  keeper.Look();
  EXPECT_EQ(store_.waiting(), size_t{PartitionKeeper::kMaxCalls});
  clock_.AdvanceBy(2 * PartitionKeeper::kRoundUs);
  keeper.Look();
  EXPECT_EQ(store_.waiting(), size_t{PartitionKeeper::kMaxCalls});
  store_.Release();
  for (int i = 1; i < 64; ++i) {
    EXPECT_TRUE(store_.Has(PartitionName(name, i))) << i;
  }
}

TEST_F(PartitionKeeperTest, AnAnswerThatComesAfterItDoesNothing) {
  Make(0);
  store_.Hold();
  Look();
  EXPECT_GT(store_.waiting(), 0u);
  const int count = Count();
  keepers_.clear();
  store_.Release();
  EXPECT_EQ(Count(), count);
}

}  // namespace
}  // namespace timecache::server
