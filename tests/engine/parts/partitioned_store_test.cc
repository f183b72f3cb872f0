#include "server/engine/parts/partitioned_store.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/local_readers.h"
#include "server/engine/store/partitions.h"
#include "tests/support/engine/map_harness.h"
#include "tests/support/engine/parts_world.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kStorePartitions = 4;

NamespaceOptions OptionsOfParts(int num_partitions = kStorePartitions) {
  NamespaceOptions options = WithBuckets(10 * kSecond, 11);
  options.num_partitions = num_partitions;
  return options;
}

// A key of this partition.
std::string KeyIn(int partition, int number = 0) {
  for (int i = 0;; ++i) {
    std::string key = absl::StrCat("key-", number, "-", i);
    if (PartitionOfKey(key, kStorePartitions) == partition) return key;
  }
}

class PartitionedStoreTest : public testing::Test {
 protected:
  PartitionedStoreTest() {
    EXPECT_TRUE(world_.Create("orders", OptionsOfParts()).ok());
  }

  std::vector<std::string> List(bool include_statistics = false) {
    ListQuery query;
    query.include_statistics = include_statistics;
    std::vector<std::string> names;
    auto page = PartsWorld::Get<Page<NamespaceInfo>>([&](auto done) {
      world_.store().ListNamespaces(std::move(query), std::move(done));
    });
    for (const NamespaceInfo& item : page->items) names.push_back(item.name);
    return names;
  }

  ManualClock clock_{kStartUs};
  PartsWorld world_{&clock_, {.max_namespaces = 3}};
};

TEST_F(PartitionedStoreTest, EachKeyIsInItsPartition) {
  for (int i = 0; i < kStorePartitions; ++i) {
    ASSERT_TRUE(
        world_.Execute("orders", Operation::Put(KeyIn(i), "v")).status.ok());
    EXPECT_EQ((*world_.registry().Find(PartitionName("orders", i)))
                  ->CountedSize()
                  .entries,
              1);
  }
  EXPECT_EQ(world_.GetSize("orders")->entries, kStorePartitions);
}

// Maps are found by their names, and must not be reached by them.
TEST_F(PartitionedStoreTest, NoClientReachesAPartitionByItsName) {
  const auto expect_refused = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(FieldOf(status), "namespace");
  };
  for (const char* name : {"orders#1", "orders#", "missing#1", "#"}) {
    expect_refused(world_.Execute(name, Operation::Get("key")).status);
    expect_refused(world_.GetSize(name).status());
    expect_refused(world_.Describe(name).status());
    expect_refused(world_.Delete(name));
    expect_refused(world_.Create(name, OptionsOfParts()));
    expect_refused(world_.Update(
        name, [](NamespaceOptions*) { return absl::OkStatus(); }));
  }
  EXPECT_EQ(world_.MapNames().size(), static_cast<size_t>(kStorePartitions));
}

TEST_F(PartitionedStoreTest, MapsAreOneNamespace) {
  ASSERT_TRUE(world_.Create("orders-2", OptionsOfParts(1)).ok());
  ASSERT_TRUE(world_.Create("orders.3", OptionsOfParts(2)).ok());
  EXPECT_THAT(List(), ElementsAre("orders", "orders-2", "orders.3"));
  EXPECT_THAT(List(true), ElementsAre("orders", "orders-2", "orders.3"));
  EXPECT_EQ(world_.store().GetUsage().namespaces, 3);
  for (const int num_partitions : {1, 5}) {
    const absl::Status full =
        world_.Create("more", OptionsOfParts(num_partitions));
    EXPECT_EQ(ReasonOf(full), Reason::kMaxNamespaces) << full;
  }
  EXPECT_EQ(world_.MapNames().size(), 7u);
}

TEST_F(PartitionedStoreTest, ACreationMakesAllOrNone) {
  const std::vector<std::string> before = world_.MapNames();
  for (const int num_partitions : {1, 2, kStorePartitions, kMaxPartitions}) {
    const absl::Status exists =
        world_.Create("orders", OptionsOfParts(num_partitions));
    EXPECT_EQ(ReasonOf(exists), Reason::kNamespaceExists) << exists;
    EXPECT_THAT(std::string(exists.message()),
                HasSubstr("namespace orders exists"));
  }
  EXPECT_EQ(world_.MapNames(), before);
  // One is there, as of a creation that another node has not undone.
  ASSERT_TRUE(world_.registry().Create("half#2", OptionsOfParts()).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(world_.Create("half", OptionsOfParts())));
  ASSERT_TRUE(world_.registry().Delete("half#2").ok());
  EXPECT_EQ(world_.MapNames(), before);
}

TEST_F(PartitionedStoreTest, TheNumberOfPartitionsHasARange) {
  for (const int count : {-1, 0, kMaxPartitions + 1}) {
    EXPECT_EQ(FieldOf(world_.Create("other", OptionsOfParts(count))),
              "num_partitions");
  }
  EXPECT_TRUE(world_.Create("other", OptionsOfParts(kMaxPartitions)).ok());
  EXPECT_TRUE(world_.Delete("other").ok());
  EXPECT_EQ(world_.MapNames().size(), static_cast<size_t>(kStorePartitions));
}

TEST_F(PartitionedStoreTest, ADeletedNamespaceIsGone) {
  EXPECT_TRUE(world_.Delete("orders").ok());
  EXPECT_THAT(world_.MapNames(), IsEmpty());
  const absl::Status missing = world_.Delete("orders");
  EXPECT_EQ(ReasonOf(missing), Reason::kNamespaceNotFound) << missing;
  EXPECT_EQ(ReasonOf(world_.Execute("orders", Operation::Get("key")).status),
            Reason::kNamespaceNotFound);
  EXPECT_TRUE(world_.Create("orders", OptionsOfParts(2)).ok());
  EXPECT_THAT(world_.MapNames(), ElementsAre("orders", "orders#1"));
}

TEST_F(PartitionedStoreTest, AnUpdateReachesAllPartitions) {
  ASSERT_TRUE(world_
                  .Update("orders",
                          [](NamespaceOptions* options) {
                            options->max_entries = 8;
                            options->num_partitions = 2;
                            return absl::OkStatus();
                          })
                  .ok());
  for (const auto& map : world_.registry().List()) {
    EXPECT_EQ(map->options().max_entries, 8);
    EXPECT_EQ(map->options().num_partitions, kStorePartitions);
  }
  for (int i = 0; i < 3; ++i) {
    const absl::Status put =
        world_.Execute("orders", Operation::Put(KeyIn(2, i), "v")).status;
    EXPECT_EQ(put.ok(), i < 2);
    if (put.ok()) continue;
    EXPECT_EQ(ReasonOf(put), Reason::kMaxEntries);
    EXPECT_THAT(std::string(put.message()),
                HasSubstr("partition 2 of the 4 of namespace orders is at its "
                          "max_entries of 2"));
  }
  EXPECT_TRUE(
      world_.Execute("orders", Operation::Put(KeyIn(3), "v")).status.ok());
}

// Between the change of the first partition and that of the others.
TEST_F(PartitionedStoreTest, UpdatesAtTheSameTimeLeaveTheSameOptions) {
  int calls = 0;
  ASSERT_TRUE(world_
                  .Update("orders",
                          [&](NamespaceOptions* options) {
                            options->max_entries = 1;
                            ++calls;
                            return absl::OkStatus();
                          })
                  .ok());
  EXPECT_EQ(calls, 1);
  // A reload of the configuration changes maps without the store.
  ASSERT_TRUE(world_.registry()
                  .Update("orders",
                          [](NamespaceOptions* options) {
                            options->max_bytes = 7;
                            return absl::OkStatus();
                          })
                  .ok());
  ASSERT_TRUE(world_
                  .Update("orders",
                          [](NamespaceOptions* options) {
                            options->max_entries = 3;
                            return absl::OkStatus();
                          })
                  .ok());
  for (const auto& map : world_.registry().List()) {
    EXPECT_EQ(map->options().max_entries, 3);
    EXPECT_EQ(map->options().max_bytes, 7);
  }
}

TEST_F(PartitionedStoreTest, ARotationKillsTheOldestBucketOfEach) {
  for (int i = 0; i < kStorePartitions; ++i) {
    ASSERT_TRUE(
        world_.Execute("orders", Operation::Put(KeyIn(i), "v")).status.ok());
  }
  clock_.AdvanceBy(2 * kSecond);
  ASSERT_TRUE(
      world_.Execute("orders", Operation::Put(KeyIn(1, 9), "v")).status.ok());
  const auto rotate = [&] {
    return *PartsWorld::Get<int64_t>([&](auto done) {
      world_.store().RotateNamespace("orders", std::move(done));
    });
  };
  EXPECT_EQ(rotate(), kStorePartitions);
  EXPECT_EQ(world_.GetSize("orders")->entries, 1);
  EXPECT_EQ(rotate(), 1);
  EXPECT_EQ(rotate(), 0);
}

TEST_F(PartitionedStoreTest, AnAtomicBatchIsOfOnePartition) {
  std::vector<Result> results(2);
  const auto execute = [&](const std::string& a, const std::string& b) {
    const std::vector<Operation> operations = {Operation::Put(a, "v"),
                                               Operation::Put(b, "v")};
    absl::Status status;
    world_.store().ExecuteAtomic(
        "orders", operations, absl::MakeSpan(results),
        [&](absl::Status done) { status = std::move(done); });
    return status;
  };
  const absl::Status refused = execute(KeyIn(0), KeyIn(1));
  EXPECT_EQ(FieldOf(refused), "operations") << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("{"));
  EXPECT_EQ(world_.GetSize("orders")->entries, 0);
  EXPECT_TRUE(execute("order:{42}", "lock:{42}").ok());
  EXPECT_TRUE(results[1].status.ok());
  EXPECT_EQ(world_.GetSize("orders")->entries, 2);
}

// The response's room is the batch's, however many partitions it uses.
TEST_F(PartitionedStoreTest, PartitionsShareTheRoomOfAResponse) {
  const std::string value(size_t{1} << 20, 'x');
  std::vector<std::string> keys;
  for (int i = 0; i < 2 * kStorePartitions; ++i) {
    keys.push_back(KeyIn(i % kStorePartitions, i));
    ASSERT_TRUE(world_.Execute("orders", Operation::Put(keys.back(), value))
                    .status.ok());
  }
  std::vector<Operation> gets;
  for (const std::string& key : keys) gets.push_back(Operation::Get(key));
  for (const bool in_turns : {true, false}) {
    std::vector<Result> results;
    if (in_turns) {
      ASSERT_TRUE(world_.Execute("orders", gets, &results).ok());
    } else {
      results.resize(gets.size());
      world_.store().Execute(
          "orders", gets, absl::MakeSpan(results),
          [](const absl::Status& done) { EXPECT_TRUE(done.ok()) << done; });
    }
    const auto found =
        std::count_if(results.begin(), results.end(),
                      [](const Result& result) { return result.has_entry; });
    EXPECT_EQ(found, 3);
    for (const Result& result : results) {
      if (result.has_entry) continue;
      EXPECT_EQ(ReasonOf(result.status), Reason::kMaxResponseBytes);
    }
  }
}

// Renewals to other buckets copy values that have no segment of their own.
class PartitionedTurnsTest : public PartitionedStoreTest {
 protected:
  void SetUp() override {
    const std::string value(100'000, 'x');
    for (int i = 0; i < 8; ++i) {
      keys_.push_back(KeyIn(i % kStorePartitions, i));
      ASSERT_TRUE(world_.Execute("orders", Operation::Put(keys_.back(), value))
                      .status.ok());
    }
    for (size_t i = 0; i < 400; ++i) {
      operations_.push_back(
          Operation::Touch(keys_[i % keys_.size()]).WithTtl(TtlUs(i)));
    }
  }

  int64_t TtlUs(size_t i) const {
    return (20 + 10 * static_cast<int64_t>(i / keys_.size() % 2) +
            static_cast<int64_t>(i / keys_.size())) *
           kSecond;
  }
  // The deadline by the last of the operations on a key that `done` has.
  void ExpectDeadlines(const std::vector<bool>& done) {
    for (size_t k = 0; k < keys_.size(); ++k) {
      int64_t deadline_us = clock_.NowUs() + 10 * kSecond;
      for (size_t i = k; i < operations_.size(); i += keys_.size()) {
        if (done[i]) deadline_us = clock_.NowUs() + TtlUs(i);
      }
      const Result got = world_.Execute("orders", Operation::Get(keys_[k]));
      EXPECT_EQ(got.entry.deadline_us, deadline_us) << k;
    }
  }

  std::vector<std::string> keys_;
  std::vector<Operation> operations_;
};

TEST_F(PartitionedTurnsTest, ABatchThatCopiesMuchTakesTurns) {
  std::vector<Result> results;
  int turns = 0;
  ASSERT_TRUE(world_.Execute("orders", operations_, &results, &turns).ok());
  EXPECT_GT(turns, 2);
  for (const Result& result : results) {
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_TRUE(result.found && !result.waits);
  }
  ExpectDeadlines(std::vector<bool>(operations_.size(), true));
}

TEST_F(PartitionedTurnsTest, WithoutProgressTheyAreOne) {
  std::vector<Result> results(operations_.size());
  int calls = 0;
  world_.store().Execute("orders", operations_, absl::MakeSpan(results),
                         [&calls](const absl::Status& done) {
                           EXPECT_TRUE(done.ok()) << done;
                           ++calls;
                         });
  EXPECT_EQ(calls, 1);
  for (const Result& result : results) EXPECT_TRUE(result.found);
  ExpectDeadlines(std::vector<bool>(operations_.size(), true));
}

// A client that goes away between two turns: what has no result has not happened.
TEST_F(PartitionedTurnsTest, WhatWaitsAfterATurnHasNotHappened) {
  std::vector<Result> results(operations_.size());
  BatchProgress progress;
  size_t done_before = 0;
  while (!progress.done) {
    world_.store().Execute(
        "orders", operations_, absl::MakeSpan(results), &progress,
        [](const absl::Status& done) { EXPECT_TRUE(done.ok()) << done; });
    std::vector<bool> done;
    for (size_t i = 0; i < results.size(); ++i) {
      done.push_back(i < progress.reached && !results[i].waits);
      EXPECT_TRUE(!done.back() || results[i].found);
    }
    ExpectDeadlines(done);
    const auto count =
        static_cast<size_t>(std::count(done.begin(), done.end(), true));
    EXPECT_GT(count, done_before);
    done_before = count;
  }
  EXPECT_EQ(done_before, operations_.size());
}

TEST_F(PartitionedStoreTest, TheMostUsedKeysAreThoseOfAllPartitions) {
  std::vector<Result> results;
  std::vector<Operation> operations(4'096, Operation::Get(""));
  for (size_t i = 0; i < operations.size(); ++i) {
    operations[i].key = i % 4 == 0 ? "hot-a" : "hot-b";
  }
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(world_.Execute("orders", operations, &results).ok());
  }
  clock_.AdvanceBy(kSecond);
  const HotKeys hot = *PartsWorld::Get<HotKeys>([&](auto done) {
    world_.store().GetHotKeys("orders", 2, std::move(done));
  });
  ASSERT_EQ(hot.keys.size(), 2u);
  EXPECT_EQ(hot.keys[0].key, "hot-b");
  EXPECT_EQ(hot.keys[1].key, "hot-a");
}

// Its walk goes through the partitions, also where another one follows it.
TEST_F(PartitionedStoreTest, APositionOfAnotherNamespaceIsRefused) {
  ASSERT_TRUE(world_.Create("other", OptionsOfParts()).ok());
  ASSERT_TRUE(
      world_.Execute("orders", Operation::Put(KeyIn(3), "v")).status.ok());
  const auto scan = [&](absl::string_view name, ScanPosition* position) {
    bool more = true;
    absl::Status status;
    while (more && status.ok()) {
      world_.store().Scan(
          name, "", 10, 1 << 20, position, &more, [](const ScannedEntry&) {},
          [&](absl::Status done) { status = std::move(done); });
    }
    return status;
  };
  ScanPosition end;
  ASSERT_TRUE(scan("orders", &end).ok());
  EXPECT_EQ(end.partition, kStorePartitions - 1);
  ScanPosition again = end;
  EXPECT_TRUE(scan("orders", &again).ok());
  again = end;
  EXPECT_EQ(FieldOf(scan("other", &again)), "position");
  again = end;
  again.partition = kStorePartitions;
  EXPECT_EQ(FieldOf(scan("orders", &again)), "position");
}

TEST_F(PartitionedStoreTest, ADeadLetterIsInThePartitionOfItsKey) {
  NamespaceOptions options = OptionsOfParts();
  options.dead_letter_namespace = "orders";
  ASSERT_TRUE(world_.Create("jobs", options).ok());
  GroupOptions group;
  group.max_attempts = 1;
  const std::string key = KeyIn(2);
  const auto jobs = *world_.registry().Find("jobs#2");
  ASSERT_TRUE(
      jobs->groups().Create("workers", group, {}, clock_.NowUs(), "").ok());
  Membership membership;
  membership.group = "workers";
  const auto member = JoinGroupReader(jobs, membership, clock_.NowUs(), [] {});
  ASSERT_TRUE(member.ok()) << member.status();
  ASSERT_TRUE(world_.Execute("jobs", Operation::Put(key, "v")).status.ok());
  clock_.AdvanceBy(20 * kSecond);
  world_.reaper().Flush();
  ASSERT_FALSE((*member)->Read(clock_.NowUs(), 10, 1 << 20).deliveries.empty());
  clock_.AdvanceBy(group.ack_timeout_us + kSecond);
  world_.reaper().Flush();
  ASSERT_EQ(world_.GetSize("orders")->entries, 1);
  std::string letter;
  ScanPosition position;
  for (bool more = true; more;) {
    world_.store().Scan(
        "orders", "", 10, 1 << 20, &position, &more,
        [&](const ScannedEntry& entry) { letter = std::string(entry.key); },
        [](const absl::Status& done) { EXPECT_TRUE(done.ok()) << done; });
  }
  EXPECT_THAT(letter, testing::StartsWith("jobs/workers/"));
  EXPECT_THAT(letter, testing::EndsWith("#2"));
  EXPECT_TRUE(world_.Execute("orders", Operation::Get(letter)).found);
}

}  // namespace
}  // namespace timecache::server
