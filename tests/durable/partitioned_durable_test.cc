// Namespaces of several partitions on a journal.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/durable/map_record.h"
#include "server/engine/store/partitions.h"
#include "tests/durable/durable_store_fixture.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;

constexpr int kNumPartitions = 3;
constexpr int kPutKeys = 40;

NamespaceOptions Partitioned() {
  NamespaceOptions options = DurableOptions();
  options.num_partitions = kNumPartitions;
  return options;
}

class PartitionedDurableTest : public DurableStoreTest {
 protected:
  void SetUp() override {
    DurableStoreTest::SetUp();
    ASSERT_TRUE(store_.Create("parts", Partitioned()).ok());
  }

  std::vector<std::string> MapNames() {
    std::vector<std::string> names;
    for (const auto& map : store_.registry().List()) {
      names.push_back(map->name());
    }
    return names;
  }
  static std::string Key(int i) { return absl::StrCat("key-", i); }
  void PutAll(const std::string& value) {
    for (int i = 0; i < kPutKeys; ++i) {
      ASSERT_TRUE(store_.Put("parts", Key(i), value).status.ok());
    }
  }
};

TEST_F(PartitionedDurableTest, AllPartitionsOutliveAPowerLoss) {
  PutAll("first");
  for (const char* value : {"second", "third"}) {
    LosePower();
    Reopen();
    EXPECT_THAT(MapNames(), ElementsAre("a", "parts", "parts#1", "parts#2"));
    EXPECT_EQ(store_.report().namespaces, 2u);
    for (int i = 0; i < kPutKeys; ++i) {
      EXPECT_NE(store_.Get("parts", Key(i)), "(none)");
    }
    PutAll(value);
  }
  for (const auto& map : store_.registry().List()) {
    EXPECT_EQ(map->options().num_partitions, map->name() == "a" ? 1 : 3);
  }
}

// Operations on all partitions wait for the journal together.
TEST_F(PartitionedDurableTest, ABatchIsStoredWhenItIsAnswered) {
  std::vector<std::string> keys;
  std::vector<Operation> operations;
  for (int i = 0; i < kPutKeys; ++i) keys.push_back(Key(i));
  for (const std::string& key : keys) {
    operations.push_back(Operation::Put(key, key));
  }
  std::vector<Result> results(operations.size());
  BatchProgress progress;
  bool applied = false;
  progress.on_applied = [&applied] { applied = true; };
  absl::Notification done;
  store_.store().Execute("parts", operations, absl::MakeSpan(results),
                         &progress, [&](const absl::Status& status) {
                           EXPECT_TRUE(status.ok()) << status;
                           done.Notify();
                         });
  done.WaitForNotification();
  EXPECT_TRUE(progress.done);
  for (const Result& result : results) EXPECT_TRUE(result.status.ok());
  LosePower();
  Reopen();
  for (const std::string& key : keys) EXPECT_EQ(store_.Get("parts", key), key);
}

TEST_F(PartitionedDurableTest, ADeletedNamespaceStaysDeleted) {
  PutAll("v");
  Delete("parts");
  LosePower();
  Reopen();
  EXPECT_THAT(MapNames(), ElementsAre("a"));
  ASSERT_TRUE(store_.Create("parts", Partitioned()).ok());
  EXPECT_EQ(store_.Get("parts", Key(1)), "(none)");
}

TEST_F(PartitionedDurableTest, WhatACrashInterruptedIsFinishedAtStart) {
  PutAll("v");
  // A deletion that has come as far as the first partition.
  ASSERT_TRUE(store_.registry().Delete("parts").ok());
  Reopen();
  EXPECT_THAT(MapNames(), ElementsAre("a"));
  // A creation that has not come to it.
  ASSERT_TRUE(store_.registry().Create("parts#2", Partitioned()).ok());
  Reopen();
  EXPECT_THAT(MapNames(), ElementsAre("a"));
  // And it is so after the next one.
  Reopen();
  EXPECT_THAT(MapNames(), ElementsAre("a"));
}

TEST_F(PartitionedDurableTest, AnUpdateOutlivesARestart) {
  Update("parts", [](NamespaceOptions* options) {
    options->max_entries = 600;
    return absl::OkStatus();
  });
  Reopen();
  for (int i = 0; i < kNumPartitions; ++i) {
    EXPECT_EQ(store_.map(PartitionName("parts", i))->options().max_entries,
              600);
  }
}

// Versions before partitions read what has none.
TEST(PartitionedRecordTest, OnlyPartitionsChangeADescription) {
  MapDescription map;
  map.name = "parts";
  map.options = DurableOptions();
  const std::string single = EncodeMap(MapRecordKind::kCreated, map);
  map.name = "parts#2";
  map.options.num_partitions = 3;
  const std::string partition = EncodeMap(MapRecordKind::kCreated, map);
  EXPECT_EQ(partition.size(), single.size() + sizeof(int64_t) + 2);
  const auto decoded = DecodeMap(*ReadMapRecord(partition));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->name, "parts#2");
  EXPECT_EQ(decoded->options, map.options);
  EXPECT_EQ(DecodeMap(*ReadMapRecord(single))->options.num_partitions, 1);
  map.name = "parts#x";
  EXPECT_EQ(DecodeMap(*ReadMapRecord(EncodeMap(MapRecordKind::kCreated, map)))
                .status()
                .code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace timecache::server
