// Nodes of a cluster whose slots have owners of their own.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/store/partitions.h"
#include "server/engine/store/stale_names.h"
#include "tests/peer/peer_world.h"
#include "tests/peer/three_nodes.h"
#include "tests/support/await.h"

namespace timecache::test {
namespace {

using server::EventChunk;
using server::NamespaceInfo;
using server::NamespaceOptions;
using server::Operation;
using server::Page;
using server::Reason;
using server::ReasonOf;
using server::Result;
using server::Store;
using ::testing::ElementsAreArray;

constexpr size_t kSlots = ThreeNodes::kSlots;

// The n-th name in a slot.
std::string NameIn(size_t slot, int n = 0) {
  for (int i = 0;; ++i) {
    std::string name = absl::StrCat("ns-", i);
    if (server::SlotOfMap(name, kSlots) == slot && n-- == 0) return name;
  }
}

NamespaceOptions Partitions(int count) {
  NamespaceOptions options;
  options.num_partitions = count;
  options.retention_us = 60 * server::kMicrosPerSecond;
  return options;
}

// A reader that another thread wakes.
class AwaitedReader {
 public:
  using Open = std::function<void(Store::Wake wake,
                                  Store::DoneWith<Store::Readers> done)>;
  explicit AwaitedReader(const Open& open) {
    auto readers = ResultOf<Store::Readers>([&](auto done) {
      open([woken = woken_] { woken->store(true); }, std::move(done));
    });
    status_ = readers.status();
    if (readers.ok()) reader_ = std::move(readers->front());
  }

  const absl::Status& status() const { return status_; }
  server::EventReader& operator*() { return *reader_; }
  // Reads, and reads again when it is woken, until a chunk is as wanted, or there are
  // so many events.
  EventChunk ReadUntil(const std::function<bool(const EventChunk&)>& wanted,
                       int max_events = 100, int64_t now_us = 0) {
    EventChunk chunk;
    Await([&] {
      do {
        woken_->store(false);
        chunk = reader_->Read(now_us, max_events, 1 << 20);
        max_events -= static_cast<int>(chunk.deliveries.size());
        if (wanted(chunk) || max_events <= 0) return true;
      } while (chunk.more || woken_->load());
      return false;
    });
    return chunk;
  }
  void Close() { reader_.reset(); }

 private:
  std::shared_ptr<std::atomic<bool>> woken_ =
      std::make_shared<std::atomic<bool>>(false);
  absl::Status status_;
  std::unique_ptr<server::EventReader> reader_;
};

class SlotsTest : public ::testing::Test {
 protected:
  SlotsTest() : nodes_(Config()) {
    const absl::Status started = nodes_.Start();
    EXPECT_TRUE(started.ok()) << started;
  }

  static config::v1::ServerConfig Config() {
    auto config = server::DefaultConfig();
    config.mutable_listeners(0)->set_address("127.0.0.1:0");
    return config;
  }

  absl::Status Create(size_t node, const std::string& name, int partitions) {
    return ResultOf<NamespaceInfo>([&](auto done) {
             nodes_.store(node)->CreateNamespace(name, Partitions(partitions),
                                                 std::move(done));
           })
        .status();
  }
  absl::Status Delete(size_t node, const std::string& name) {
    return StatusOf([&](Store::Done done) {
      nodes_.store(node)->DeleteNamespace(name, std::move(done));
    });
  }
  Result Do(size_t node, const Operation& operation, const std::string& name) {
    return Execute(nodes_.store(node), operation, name);
  }
  AwaitedReader OpenLog(size_t node, const std::vector<std::string>& names,
                        const server::LogPoints& points = {}) {
    return AwaitedReader([&](auto wake, auto done) {
      nodes_.store(node)->OpenLogs(names, server::LogStart::kEarliest, points,
                                   wake, std::move(done));
    });
  }
  AwaitedReader Join(size_t node, const std::vector<std::string>& names,
                     int max_in_flight, bool fetches = false) {
    return AwaitedReader([&](auto wake, auto done) {
      nodes_.store(node)->JoinGroups(names,
                                     {.group = "g",
                                      .max_in_flight = max_in_flight,
                                      .start = server::LogStart::kEarliest,
                                      .created_by = "me",
                                      .fetches = fetches,
                                      .waits = false},
                                     wake, std::move(done));
    });
  }
  void Pass(int64_t time_us) {
    nodes_.clock().AdvanceBy(time_us);
    nodes_.reaper().Flush();
  }
  // Entries that die in a second, in all partitions.
  void PutShortLived(const std::string& name, int count) {
    for (int i = 0; i < count; ++i) {
      const Result put = Do(0,
                            Operation::Put(absl::StrCat("k", i), "v")
                                .WithTtl(server::kMicrosPerSecond),
                            name);
      ASSERT_TRUE(put.status.ok()) << put.status;
    }
  }

  ThreeNodes nodes_;
};

TEST_F(SlotsTest, EachNodeAnswersForAllSlots) {
  for (size_t slot = 0; slot < kSlots; ++slot) {
    const std::string name = NameIn(slot);
    ASSERT_TRUE(Create(slot % 2, name, 1).ok());
    EXPECT_TRUE(nodes_.registry(slot).Find(name).ok());
    EXPECT_TRUE(Do(1, Operation::Put("k", name), name).status.ok());
    for (size_t node = 0; node < ThreeNodes::kNodes; ++node) {
      EXPECT_EQ(Do(node, Operation::Get("k"), name).entry.value, name);
    }
  }
}

TEST_F(SlotsTest, PartitionsAreInTheirSlotsAndCalledByTheirNames) {
  ASSERT_TRUE(Create(0, "orders", 16).ok());
  for (int i = 0; i < 16; ++i) {
    const std::string map = server::PartitionName("orders", i);
    EXPECT_TRUE(nodes_.registry(server::SlotOfMap(map, kSlots)).Find(map).ok());
  }
  std::vector<Operation> operations;
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back(absl::StrCat("k", i));
  for (const std::string& key : keys) {
    operations.push_back(Operation::Put(key, "v"));
  }
  std::vector<Result> results(operations.size());
  const absl::Status status = StatusOf([&](Store::Done done) {
    nodes_.store(1)->Execute("orders", operations, absl::MakeSpan(results),
                             std::move(done));
  });
  ASSERT_TRUE(status.ok()) << status;
  const auto info = ResultOf<NamespaceInfo>([&](auto done) {
    nodes_.store(2)->GetNamespace("orders", true, std::move(done));
  });
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->name, "orders");
  EXPECT_EQ(info->statistics->entries, 100);
}

TEST_F(SlotsTest, AListHasTheNamespacesOfAllSlotsInOrder) {
  std::vector<std::string> names = {"default"};
  for (size_t slot = 0; slot < kSlots; ++slot) {
    for (int n = 0; n < 3; ++n) {
      names.push_back(NameIn(slot, n));
      ASSERT_TRUE(Create(slot % 3, names.back(), n == 0 ? 4 : 1).ok());
    }
  }
  std::sort(names.begin(), names.end());
  for (const bool statistics : {false, true}) {
    std::vector<std::string> listed;
    for (bool more = true; more;) {
      server::ListQuery query;
      if (!listed.empty()) query.after = listed.back();
      query.most = 7;
      query.include_statistics = statistics;
      const auto page = ResultOf<Page<NamespaceInfo>>([&](auto done) {
        nodes_.store(1)->ListNamespaces(query, std::move(done));
      });
      ASSERT_TRUE(page.ok()) << page.status();
      ASSERT_LE(page->items.size(), 7u);
      for (const NamespaceInfo& info : page->items) {
        listed.push_back(info.name);
      }
      more = page->more;
    }
    if (listed.front() != "default" && names.front() == "default") {
      names.erase(names.begin());
    }
    EXPECT_THAT(listed, ElementsAreArray(names));
  }
}

TEST_F(SlotsTest, WithoutAnOwnerCallsAndListsEndAfterTheTries) {
  const std::string name = NameIn(5);
  ASSERT_TRUE(Create(0, name, 1).ok());
  nodes_.slots().Move(5, TestSlots::kNobody);
  EXPECT_EQ(ReasonOf(Do(0, Operation::Get("k"), name).status),
            Reason::kNotOwner);
  const auto page = ResultOf<Page<NamespaceInfo>>(
      [&](auto done) { nodes_.store(1)->ListNamespaces({}, std::move(done)); });
  EXPECT_EQ(ReasonOf(page.status()), Reason::kNotOwner);
  nodes_.slots().Move(5, 2);
  EXPECT_TRUE(Do(0, Operation::Put("k", "v"), name).status.ok());
}

TEST_F(SlotsTest, ALaterTurnOfABatchStaysWithItsSlot) {
  const std::string name = NameIn(0);
  ASSERT_TRUE(Create(0, name, 1).ok());
  const Operation put = Operation::Put("k", "v");
  Result result;
  server::BatchProgress progress;
  progress.reached = 1;
  nodes_.slots().Move(0, 1);
  const absl::Status status = StatusOf([&](Store::Done done) {
    nodes_.store(0)->Execute(name, {&put, 1}, {&result, 1}, &progress,
                             std::move(done));
  });
  EXPECT_EQ(ReasonOf(status), Reason::kOwnershipLost);
  EXPECT_FALSE(Do(0, Operation::Get("k"), name).has_entry);
}

TEST_F(SlotsTest, AScanGoesOnWhereItsSlotIs) {
  const std::string name = NameIn(3);
  ASSERT_TRUE(Create(0, name, 1).ok());
  for (int i = 0; i < 20; ++i) {
    Do(0, Operation::Put(absl::StrCat("k", i), "v"), name);
  }
  server::ScanPosition position;
  bool more = true;
  int visited = 0;
  for (size_t step = 0; more; ++step) {
    nodes_.slots().Move(3, step % 3);
    const absl::Status status = StatusOf([&](Store::Done done) {
      nodes_.store(0)->Scan(
          name, "", 3, 1 << 20, &position, &more,
          [&](const server::ScannedEntry& /*entry*/) { ++visited; },
          std::move(done));
    });
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(visited, 20);
}

TEST_F(SlotsTest, AWatchEndsWithItsSlotAndGoesOnAtTheNextOwner) {
  // At the node that is called, and at another.
  for (const size_t slot : {size_t{0}, size_t{1}}) {
    const std::string name = NameIn(slot);
    ASSERT_TRUE(Create(0, name, 1).ok());
    PutShortLived(name, 5);
    AwaitedReader log = OpenLog(0, {name});
    ASSERT_TRUE(log.status().ok()) << log.status();
    Pass(2 * server::kMicrosPerSecond);
    const EventChunk first = log.ReadUntil(
        [](const EventChunk& chunk) { return !chunk.batches.empty(); });
    nodes_.slots().Move(slot, 2);
    const EventChunk last =
        log.ReadUntil([](const EventChunk& chunk) { return chunk.closed; });
    EXPECT_TRUE(last.batches.empty());
    EXPECT_EQ(ReasonOf((*log).WhyClosed()), Reason::kNotOwner);

    PutShortLived(name, 3);
    Pass(2 * server::kMicrosPerSecond);
    AwaitedReader next = OpenLog(0, {name}, {{name, first.point}});
    ASSERT_TRUE(next.status().ok()) << next.status();
    int events = 0;
    next.ReadUntil([&](const EventChunk& chunk) {
      for (const auto& batch : chunk.batches) events += batch->size();
      return events >= 3;
    });
    EXPECT_EQ(events, 3);
  }
}

TEST_F(SlotsTest, AWatchOfAllPartitionsEndsWhenOneMoves) {
  ASSERT_TRUE(Create(0, "orders", 4).ok());
  AwaitedReader log = OpenLog(1, {"orders"});
  ASSERT_TRUE(log.status().ok()) << log.status();
  const size_t slot = server::SlotOfMap("orders#2", kSlots);
  nodes_.slots().Move(slot, (nodes_.slots().OwnerOf(slot) + 1) % 3);
  log.ReadUntil([](const EventChunk& chunk) { return chunk.closed; });
  EXPECT_EQ(ReasonOf((*log).WhyClosed()), Reason::kNotOwner);
}

TEST_F(SlotsTest, ReadersOfSeveralSlotsAreInTheOrderOfTheNames) {
  std::vector<std::string> names;
  for (const size_t slot : {7, 2, 9, 0}) {
    names.push_back(NameIn(slot));
    ASSERT_TRUE(Create(0, names.back(), 1).ok());
    Do(0, Operation::Put(names.back(), "v").WithTtl(server::kMicrosPerSecond),
       names.back());
  }
  Pass(2 * server::kMicrosPerSecond);
  auto readers = ResultOf<Store::Readers>([&](auto done) {
    nodes_.store(0)->OpenLogs(
        names, server::LogStart::kEarliest, {}, [] {}, std::move(done));
  });
  ASSERT_TRUE(readers.ok()) << readers.status();
  ASSERT_EQ(readers->size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    EventChunk chunk;
    Await([&] {
      chunk = (*readers)[i]->Read(0, 10, 1 << 20);
      return !chunk.batches.empty();
    });
    EXPECT_EQ(chunk.batches.front()->key(0), names[i]);
  }
  readers->clear();
  Await([&] { return nodes_.slots().Awaited() == 0; });
  EXPECT_EQ(nodes_.slots().Awaited(), 0u);
  names.emplace_back("not-there");
  readers = ResultOf<Store::Readers>([&](auto done) {
    nodes_.store(0)->OpenLogs(
        names, server::LogStart::kNow, {}, [] {}, std::move(done));
  });
  EXPECT_EQ(ReasonOf(readers.status()), Reason::kNamespaceNotFound);
}

TEST_F(SlotsTest, NoGroupIsMadeUnlessAllNamespacesAreThere) {
  const std::vector<std::string> names = {NameIn(1), NameIn(2), "not-there"};
  ASSERT_TRUE(Create(0, names[0], 1).ok());
  ASSERT_TRUE(Create(0, names[1], 4).ok());
  EXPECT_EQ(ReasonOf(Join(0, names, 10).status()), Reason::kNamespaceNotFound);
  for (const std::string& name : {names[0], names[1]}) {
    const auto group = ResultOf<server::GroupInfo>([&](auto done) {
      nodes_.store(1)->GetGroup({name, "g"}, false, std::move(done));
    });
    EXPECT_EQ(ReasonOf(group.status()), Reason::kGroupNotFound);
  }
}

TEST_F(SlotsTest, AMemberHoldsNoMoreThanItMayInAllPartitions) {
  ASSERT_TRUE(Create(0, "orders", 16).ok());
  PutShortLived("orders", 50);
  Pass(2 * server::kMicrosPerSecond);
  AwaitedReader member = Join(1, {"orders"}, 3);
  ASSERT_TRUE(member.status().ok()) << member.status();
  size_t settled = 0;
  while (settled < 50) {
    std::vector<server::Delivery> held;
    member.ReadUntil([&](const EventChunk& chunk) {
      for (const auto& delivery : chunk.deliveries) held.push_back(delivery);
      return held.size() >= std::min<size_t>(3, 50 - settled);
    });
    ASSERT_LE(held.size(), 3u);
    ASSERT_FALSE(held.empty());
    std::vector<server::Settlement> settlements;
    for (const auto& delivery : held) {
      settlements.push_back({.event_id = delivery.event_id,
                             .attempt = delivery.attempt,
                             .returns = delivery.returns,
                             .group_id = delivery.group_id,
                             .partition = delivery.partition});
    }
    std::vector<server::SettleResult> results(settlements.size());
    const absl::Status status = StatusOf([&](Store::Done done) {
      nodes_.store(2)->Settle({"orders", "g"}, settlements,
                              absl::MakeSpan(results), std::move(done));
    });
    ASSERT_TRUE(status.ok()) << status;
    for (const auto& result : results) {
      ASSERT_TRUE(result.status.ok()) << result.status;
    }
    settled += held.size();
  }
}

TEST_F(SlotsTest, MembersLearnThatAllIsDelivered) {
  ASSERT_TRUE(Create(0, "orders", 16).ok());
  for (size_t node = 0; node < ThreeNodes::kNodes; ++node) {
    AwaitedReader first = Join(node, {"orders"}, 1);
    AwaitedReader second = Join(node, {"orders"}, 1);
    ASSERT_TRUE(second.status().ok()) << second.status();
    for (int i = 0; i < 3; ++i) {
      Pass(30 * server::kMicrosPerSecond);
      const int64_t now_us = nodes_.clock().NowUs();
      for (AwaitedReader* const member : {&first, &second}) {
        (**member).RefreshWatermark(now_us, 1);
        const EventChunk last = member->ReadUntil(
            [&](const EventChunk& chunk) {
              return chunk.all_delivered && chunk.delivered_us == now_us;
            },
            100, now_us);
        EXPECT_EQ(last.delivered_us, now_us) << node;
      }
    }
  }
}

TEST_F(SlotsTest, AFetchTakesNoMoreThanItAsksFor) {
  ASSERT_TRUE(Create(0, "orders", 16).ok());
  PutShortLived("orders", 50);
  Pass(2 * server::kMicrosPerSecond);
  AwaitedReader fetch = Join(1, {"orders"}, 7, /*fetches=*/true);
  ASSERT_TRUE(fetch.status().ok()) << fetch.status();
  size_t events = 0;
  fetch.ReadUntil(
      [&](const EventChunk& chunk) {
        events += chunk.deliveries.size();
        return false;
      },
      7);
  EXPECT_EQ(events, 7u);
  const auto info = ResultOf<server::GroupInfo>([&](auto done) {
    nodes_.store(1)->GetGroup({"orders", "g"}, true, std::move(done));
  });
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->statistics->in_flight, 7u);
}

TEST_F(SlotsTest, AMemberEndsWithAPartitionsSlotAndItsEventsAreReturned) {
  ASSERT_TRUE(Create(0, "orders", 4).ok());
  PutShortLived("orders", 8);
  Pass(2 * server::kMicrosPerSecond);
  AwaitedReader member = Join(0, {"orders"}, 100);
  ASSERT_TRUE(member.status().ok()) << member.status();
  size_t held = 0;
  member.ReadUntil([&](const EventChunk& chunk) {
    held += chunk.deliveries.size();
    return held == 8;
  });
  const size_t slot = server::SlotOfMap("orders#1", kSlots);
  nodes_.slots().Move(slot, (nodes_.slots().OwnerOf(slot) + 1) % 3);
  member.ReadUntil([](const EventChunk& chunk) { return chunk.closed; });
  EXPECT_EQ(ReasonOf((*member).WhyClosed()), Reason::kNotOwner);
  (*member).Leave(0, server::StreamEnd::kByServer);
  member.Close();
  AwaitedReader next = Join(2, {"orders"}, 100);
  ASSERT_TRUE(next.status().ok()) << next.status();
  held = 0;
  next.ReadUntil([&](const EventChunk& chunk) {
    held += chunk.deliveries.size();
    return held == 8;
  });
  EXPECT_EQ(held, 8u);
}

TEST_F(SlotsTest, WhatANodeHasLearnedMayBeOld) {
  ASSERT_TRUE(Create(0, "orders", 16).ok());
  for (const int partitions : {1, 4, 16, 1}) {
    // Nodes 0 and 2 know the one before.
    ASSERT_TRUE(Do(0, Operation::Put("a", "b"), "orders").status.ok());
    ASSERT_TRUE(Do(2, Operation::Put("c", "d"), "orders").status.ok());
    ASSERT_TRUE(Delete(1, "orders").ok());
    ASSERT_TRUE(Create(1, "orders", partitions).ok());
    const Result put = Do(0, Operation::Put("k", "v"), "orders");
    ASSERT_TRUE(put.status.ok()) << put.status;
    EXPECT_EQ(Do(2, Operation::Get("k"), "orders").entry.value, "v");
    EXPECT_FALSE(Do(2, Operation::Get("a"), "orders").has_entry);
  }
  ASSERT_TRUE(Delete(1, "orders").ok());
  for (size_t node = 0; node < 3; ++node) {
    const absl::Status status = Do(node, Operation::Get("k"), "orders").status;
    EXPECT_EQ(ReasonOf(status), Reason::kNamespaceNotFound);
    EXPECT_FALSE(server::IsStale(status));
    EXPECT_EQ(ReasonOf(Delete(node, "orders")), Reason::kNamespaceNotFound);
  }
}

TEST_F(SlotsTest, OneOfTwoThatAreMadeAtOnceIsWhole) {
  for (int round = 0; round < 20; ++round) {
    const std::string name = absl::StrCat("both-", round);
    std::array<absl::Status, 2> made;
    std::array<absl::Notification, 2> done;
    for (size_t node = 0; node < 2; ++node) {
      nodes_.store(node)->CreateNamespace(
          name, Partitions(node == 0 ? 16 : 4),
          [&, node](const absl::StatusOr<NamespaceInfo>& info) {
            made[node] = info.status();
            done[node].Notify();
          });
    }
    for (auto& each : done) each.WaitForNotification();
    ASSERT_NE(made[0].ok(), made[1].ok()) << made[0] << made[1];
    EXPECT_EQ(ReasonOf(made[made[0].ok() ? 1 : 0]), Reason::kNamespaceExists);
    const int count = made[0].ok() ? 16 : 4;
    for (int i = 0; i < 16; ++i) {
      const std::string map = server::PartitionName(name, i);
      const auto found =
          nodes_.registry(server::SlotOfMap(map, kSlots)).Find(map);
      ASSERT_EQ(found.ok(), i < count) << map;
      if (found.ok()) {
        EXPECT_EQ((*found)->num_partitions(), count);
      }
    }
  }
}

TEST_F(SlotsTest, OnlyTheHomeTakesAWholeNamespace) {
  const std::string name = NameIn(4);
  ASSERT_TRUE(Create(0, name, 4).ok());
  const size_t owner = nodes_.slots().OwnerOf(4);
  // One that believes that another node is the home's owner asks that one.
  nodes_.slots().Move(4, TestSlots::kNobody);
  EXPECT_EQ(ReasonOf(Delete((owner + 1) % 3, name)), Reason::kNotOwner);
  nodes_.slots().Move(4, owner);
  EXPECT_TRUE(Delete((owner + 1) % 3, name).ok());
}

}  // namespace
}  // namespace timecache::test
