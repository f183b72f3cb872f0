#include "server/engine/partitioned_maps.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/store/partitions.h"
#include "tests/support/engine/map_harness.h"
#include "tests/support/engine/parts_world.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kPartitions = 3;

class PartitionedMapsTest : public testing::Test {
 protected:
  static NamespaceOptions Options(int num_partitions = kPartitions) {
    NamespaceOptions options = WithBuckets(10 * kSecond, 11);
    options.num_partitions = num_partitions;
    return options;
  }

  void Make(int partition, const NamespaceOptions& options = Options()) {
    ASSERT_TRUE(
        world_.registry()
            .CreateConfigured(PartitionName("orders", partition), options)
            .ok());
  }
  absl::Status Reconcile() { return ReconcilePartitions(&world_.registry()); }

  ManualClock clock_{kStartUs};
  PartsWorld world_{&clock_};
};

TEST_F(PartitionedMapsTest, ACreationThatWasInterruptedIsUndone) {
  for (int last = kPartitions - 1; last >= 1; --last) {
    for (int i = kPartitions - 1; i >= last; --i) Make(i);
    ASSERT_TRUE(Reconcile().ok());
    EXPECT_THAT(world_.MapNames(), IsEmpty());
  }
}

TEST_F(PartitionedMapsTest, ADeletionThatWasInterruptedIsFinished) {
  for (int deleted = 1; deleted < kPartitions; ++deleted) {
    for (int i = kPartitions - 1; i >= 0; --i) Make(i);
    ASSERT_TRUE(world_.registry().Delete("orders").ok());
    for (int i = 1; i < deleted; ++i) {
      ASSERT_TRUE(world_.registry().Delete(PartitionName("orders", i)).ok());
    }
    ASSERT_TRUE(Reconcile().ok());
    EXPECT_THAT(world_.MapNames(), IsEmpty());
  }
}

TEST_F(PartitionedMapsTest, WhatIsMissingIsMade) {
  Make(0);
  Make(2);
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_THAT(world_.MapNames(), ElementsAre("orders", "orders#1", "orders#2"));
  for (int i = 0; i < 20; ++i) {
    const std::string key = "key-" + std::to_string(i);
    EXPECT_TRUE(world_.Execute("orders", Operation::Put(key, "v")).status.ok());
  }
}

TEST_F(PartitionedMapsTest, PartitionsBeyondTheLastAreDeleted) {
  for (int i = kPartitions - 1; i >= 1; --i) Make(i);
  Make(0, Options(2));
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_THAT(world_.MapNames(), ElementsAre("orders", "orders#1"));
}

TEST_F(PartitionedMapsTest, AnUpdateThatWasInterruptedIsFinished) {
  for (int i = kPartitions - 1; i >= 0; --i) Make(i);
  for (const int reached : {0, 1}) {
    for (int i = 0; i <= reached; ++i) {
      ASSERT_TRUE(world_.registry()
                      .Update(PartitionName("orders", i),
                              [&](NamespaceOptions* options) {
                                options->max_entries = 100 + reached;
                                return absl::OkStatus();
                              })
                      .ok());
    }
    ASSERT_TRUE(Reconcile().ok());
    for (const auto& map : world_.registry().List()) {
      EXPECT_EQ(map->options().max_entries, 100 + reached);
    }
  }
}

TEST_F(PartitionedMapsTest, WhatIsWholeStays) {
  ASSERT_TRUE(CreatePartitions("orders", Options(), &world_.registry()).ok());
  ASSERT_TRUE(CreatePartitions("single", Options(1), &world_.registry()).ok());
  ASSERT_TRUE(world_.Execute("orders", Operation::Put("key", "v")).status.ok());
  const auto before = world_.registry().List();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(world_.registry().List(), before);
  EXPECT_TRUE(world_.Execute("orders", Operation::Get("key")).found);
}

TEST_F(PartitionedMapsTest, AConfiguredNamespaceIsMadeWholeOrNotAtAll) {
  ASSERT_TRUE(CreatePartitions("orders", Options(), &world_.registry()).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(
      CreatePartitions("orders", Options(5), &world_.registry())));
  EXPECT_EQ(world_.MapNames().size(), static_cast<size_t>(kPartitions));
  NamespaceOptions invalid = Options();
  invalid.ttl_us = 0;
  EXPECT_EQ(FieldOf(CreatePartitions("other", invalid, &world_.registry())),
            "ttl");
  EXPECT_EQ(world_.MapNames().size(), static_cast<size_t>(kPartitions));
}

TEST_F(PartitionedMapsTest, AConfiguredChangeReachesAllPartitions) {
  ASSERT_TRUE(CreatePartitions("orders", Options(), &world_.registry()).ok());
  ASSERT_TRUE(UpdatePartitions(
                  "orders",
                  [](NamespaceOptions* options) {
                    options->max_bytes = 77;
                    return absl::OkStatus();
                  },
                  &world_.registry())
                  .ok());
  for (const auto& map : world_.registry().List()) {
    EXPECT_EQ(map->options().max_bytes, 77);
  }
  EXPECT_EQ(UpdatePartitions(
                "orders",
                [](NamespaceOptions* options) {
                  options->ttl_us = 0;
                  return absl::OkStatus();
                },
                &world_.registry())
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace timecache::server
