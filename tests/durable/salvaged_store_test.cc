// What is left of a damaged journal makes maps again: fewer, older, never
// wrong.

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/local_readers.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"
#include "tests/support/effort.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::timecache::test::Await;

constexpr const char* kNames[] = {"a", "b", "c"};
constexpr int kSalvagedKeys = 12;
constexpr int kDamages = test::Rounds(80);

class SalvagedStoreTest : public DurableStoreTest {
 protected:
  void SetUp() override {
    store_.options().segment_bytes = 8 << 10;
    store_.checkpointer_options().min_journal_bytes = 1;
    store_.checkpointer_options().factor = 0;
    store_.checkpointer_options().step_entries = 5;
    DurableStoreTest::SetUp();
  }

  std::vector<Delivery> Take(EventReader* reader, int most = 100) {
    return reader->Read(store_.clock().NowUs(), most, 1 << 20).deliveries;
  }
  // Damages the first record that has these bytes, behind so many others.
  void Damage(const std::string& bytes, int others = 0) {
    for (const std::string& path : store_.files().Paths()) {
      std::string contents = store_.files().Contents(path);
      for (size_t at = contents.find(bytes); at != std::string::npos;
           at = contents.find(bytes, at + 1)) {
        if (others-- > 0) continue;
        contents[at] ^= 1;
        store_.files().SetContents(path, contents);
        return;
      }
    }
    ADD_FAILURE() << "no record has " << bytes;
  }
  void Salvage() {
    absl::Status status = store_.Salvage();
    ASSERT_TRUE(status.ok()) << status;
    Reopen();
  }
  // All that is due has died and is delivered.
  void DeliverDue() {
    store_.AdvanceBy(0);
    for (const auto& map : store_.registry().List()) {
      absl::Notification kept;
      map->change_log()->WhenAllKept(
          [&](const absl::Status&) { kept.Notify(); });
      kept.WaitForNotification();
    }
    store_.AdvanceBy(0);
  }
};

TEST_F(SalvagedStoreTest, ALostPutIsLostAlone) {
  ASSERT_TRUE(store_.Put("a", "old", "before").status.ok());
  ASSERT_TRUE(store_.Put("a", "lost", "of this put").status.ok());
  ASSERT_TRUE(store_.Put("a", "new", "after").status.ok());
  Damage("of this put");
  Salvage();
  EXPECT_EQ(store_.Get("a", "old"), "before");
  EXPECT_EQ(store_.Get("a", "lost"), "(none)");
  EXPECT_EQ(store_.Get("a", "new"), "after");
  EXPECT_EQ(store_.report().lost_records, 1u);
  EXPECT_THAT(store_.report().incomplete, ElementsAre("a"));
}

TEST_F(SalvagedStoreTest, ATickWhoseEntriesAreLostCountsThemAsLost) {
  Die("one");
  const LogPoint one = store_.End("a");
  Die("two");
  Die("three");
  const LogPoint three = store_.End("a");
  // The put of the second.
  Damage("two");
  Salvage();
  // The gap is before all that the log has.
  const Reading behind = ReadFrom(one);
  EXPECT_EQ(behind.lost, 1u);
  EXPECT_THAT(behind.Texts(), ElementsAre("three=v"));
  EXPECT_THAT(ReadFrom(three).Texts(), IsEmpty());
  Die("four");
  EXPECT_EQ(store_.End("a").next_event, three.next_event + 1);
}

// A removal that is lost leaves an entry that dies where none did.
TEST_F(SalvagedStoreTest, ATickWithFewerEventsThanEntriesDeliversNone) {
  ASSERT_TRUE(store_.Put("a", "removed", "v").status.ok());
  const LogPoint before = store_.End("a");
  ASSERT_TRUE(store_.Execute("a", Operation::Remove("removed")).status.ok());
  Die("dies");
  // The key's second record.
  Damage("removed", 1);
  Salvage();
  const Reading reading = ReadFrom(before);
  EXPECT_THAT(reading.Texts(), IsEmpty());
  EXPECT_EQ(reading.lost, 1u);
}

TEST_F(SalvagedStoreTest, AGroupCountsTheEventsThatAreLost) {
  std::unique_ptr<EventReader> reader = JoinGroup("a");
  Die("one");
  Die("two");
  Die("three");
  std::vector<Delivery> taken = Take(reader.get());
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_TRUE(Settle("a", taken[0]).ok());
  reader = nullptr;
  Damage("two");
  Salvage();
  reader = JoinGroup("a");
  // Losses are reported once they are kept.
  uint64_t lost = 0;
  taken.clear();
  EXPECT_TRUE(Await([&] {
    EventChunk chunk = reader->Read(store_.clock().NowUs(), 10, 1 << 20);
    std::move(chunk.deliveries.begin(), chunk.deliveries.end(),
              std::back_inserter(taken));
    return (lost += chunk.lost) > 0;
  }));
  EXPECT_EQ(lost, 1u);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].event().key, "three");
}

TEST_F(SalvagedStoreTest, ANamespaceWhoseCreationIsLostIsReported) {
  ASSERT_TRUE(store_.Create("b").ok());
  ASSERT_TRUE(store_.Put("b", "key", "value").status.ok());
  Damage(MapRecordPrefix(MapRecordKind::kCreated,
                         store_.map("b")->origin().log_id));
  Salvage();
  EXPECT_EQ(store_.map("b"), nullptr);
  EXPECT_EQ(store_.report().unknown.size(), 1u);
  EXPECT_NE(store_.map("a"), nullptr);
  ASSERT_TRUE(store_.Create("b").ok());
}

// Any later description says as much.
TEST_F(SalvagedStoreTest, ANamespaceWhoseCreationIsLostIsThereByItsUpdate) {
  ASSERT_TRUE(store_.Create("b").ok());
  ASSERT_TRUE(store_.Put("b", "key", "value").status.ok());
  Update("b", [](NamespaceOptions* to) {
    to->max_entries = 5;
    return absl::OkStatus();
  });
  Damage(MapRecordPrefix(MapRecordKind::kCreated,
                         store_.map("b")->origin().log_id));
  Salvage();
  EXPECT_EQ(store_.Get("b", "key"), "value");
  EXPECT_EQ(store_.map("b")->options().max_entries, 5);
  store_.Crash();
  Reopen();
  EXPECT_EQ(store_.Get("b", "key"), "value");
}

class SalvagedCheckpointTest
    : public SalvagedStoreTest,
      public ::testing::WithParamInterface<MapRecordKind> {};

// The journal has nothing from before the walk.
TEST_P(SalvagedCheckpointTest, AWalkWithoutAnEndIsThereAllTheSame) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(store_.Put("a", absl::StrCat(i), "value").status.ok());
  }
  // One round, and no other.
  ASSERT_TRUE(Await([&] {
    const Checkpointer::Statistics now = store_.checkpointer().GetStatistics();
    if (now.rounds == 0 && !now.writing) store_.checkpointer().Look();
    return now.rounds > 0;
  }));
  ASSERT_TRUE(Await([&] {
    const JournalStatistics now = store_.journal().statistics();
    return now.disk_bytes == now.needed_bytes;
  }));
  // What is in one group with it is lost, too: a step of the walk, or two.
  Damage(MapRecordPrefix(GetParam(), store_.map("a")->origin().log_id));
  Salvage();
  EXPECT_THAT(store_.report().incomplete, ElementsAre("a"));
  int there = 0;
  for (int i = 0; i < 20; ++i) {
    if (store_.Get("a", absl::StrCat(i)) == "value") ++there;
  }
  EXPECT_GE(there, 10);
  Die("dies");
  const LogPoint end = store_.End("a");
  store_.Crash();
  Reopen();
  EXPECT_EQ(store_.End("a").next_event, end.next_event);
}

INSTANTIATE_TEST_SUITE_P(Ends, SalvagedCheckpointTest,
                         ::testing::Values(MapRecordKind::kWalkBegins,
                                           MapRecordKind::kWalkEnds));

// --- Any damage.

// Some minutes of a store, in which everything happens.
class DamagedWorldTest : public SalvagedStoreTest,
                         public ::testing::WithParamInterface<int64_t> {
 protected:
  using Key = std::pair<std::string, std::string>;

  int Draw(int n) { return static_cast<int>(random_() % n); }

  void CreateAll() {
    ASSERT_TRUE(store_.Create("gone").ok());
    ASSERT_TRUE(store_.Put("gone", "key", "value").status.ok());
    Delete("a");
    for (const char* name : kNames) {
      NamespaceOptions options = DurableOptions();
      options.ttl_us = 10 * kSecond;
      options.num_buckets = 11;
      options.retention_us = GetParam();
      ASSERT_TRUE(store_.Create(name, options).ok());
      JoinGroup(name);
    }
  }
  void Step(const std::string& name) {
    const std::string key = absl::StrCat("key-", Draw(kSalvagedKeys));
    const int what = Draw(100);
    if (what < 50) {
      Operation put = Operation::Put(key, "");
      const std::string value =
          absl::StrCat(name, " ", key, " ", ++values_, std::string(40, '.'));
      put.value = value;
      if (what < 15) put = put.WithTtl((1 + Draw(100)) * kSecond);
      EXPECT_TRUE(store_.Execute(name, put).status.ok());
    } else if (what < 65) {
      store_.Execute(name, Operation::Append(key, absl::StrCat("+", values_)));
    } else if (what < 75) {
      store_.Execute(name, Operation::Remove(key));
    } else if (what < 85) {
      store_.Execute(name, Operation::Touch(key));
    } else if (what < 88) {
      store_.map(name)->Rotate(store_.clock().NowUs());
    } else if (what < 93) {
      store_.AdvanceBy(Draw(6'000) * 1'000);
    } else {
      const std::unique_ptr<EventReader> reader = JoinGroup(name);
      for (const Delivery& delivery : Take(reader.get(), 5)) {
        Settle(name, delivery,
               Draw(4) == 0 ? SettleAction::kNack : SettleAction::kAck)
            .IgnoreError();
      }
    }
    written_[{name, key}].insert(store_.Get(name, key));
  }
  void ExpectWritten(const std::string& name, absl::string_view key,
                     const std::string& value) {
    EXPECT_TRUE(written_[Key(name, key)].contains(value))
        << name << " " << key << "=" << value;
  }
  // What is there; all of it is what was written once.
  std::map<Key, std::string> Look() {
    std::map<Key, std::string> there;
    for (const char* name : kNames) {
      if (store_.map(name) == nullptr) continue;
      for (int i = 0; i < kSalvagedKeys; ++i) {
        const std::string key = absl::StrCat("key-", i);
        const std::string value = store_.Get(name, key);
        there[{name, key}] = value;
        if (value != "(none)") ExpectWritten(name, key, value);
      }
      const Reading reading = ReadEarliest(name);
      for (const DeliveredEvent& event : reading.events) {
        ExpectWritten(name, event.key, event.value);
      }
      there[{name, ""}] =
          absl::StrCat(store_.End(name).next_event, " ",
                       store_.map(name)->groups().List().size());
    }
    return there;
  }
  void LookAtGroups() {
    for (const char* name : kNames) {
      if (store_.map(name) == nullptr) continue;
      const std::unique_ptr<EventReader> reader = JoinGroup(name);
      for (const Delivery& each : Take(reader.get())) {
        const ExpiredEvent event = each.event();
        ExpectWritten(name, event.key, std::string(event.value));
      }
    }
  }
  void DamageSomething() {
    std::vector<std::string> paths;
    for (const std::string& path : store_.files().Paths()) {
      if (absl::StartsWith(path, "/journal/0")) paths.push_back(path);
    }
    for (int i = 1 + Draw(3); i > 0; --i) {
      const std::string& path =
          paths[static_cast<size_t>(Draw(static_cast<int>(paths.size())))];
      std::string contents = store_.files().Contents(path);
      const auto at =
          static_cast<size_t>(Draw(static_cast<int>(contents.size())));
      switch (Draw(4)) {
        case 0:
          contents.resize(at);
          break;
        case 1:
          contents.replace(at, 300, std::string(300, '\0'));
          break;
        default:
          contents[at] ^= static_cast<char>(1 << Draw(8));
      }
      store_.files().SetContents(path, contents);
    }
  }

  int values_ = 0;
  std::map<Key, std::set<std::string>> written_;
};

TEST_P(DamagedWorldTest, WhatIsLeftStartsAndHasNoValueThatWasNotWritten) {
  SCOPED_TRACE(absl::StrCat("TIMECACHED_SEED=", test::Seed()));
  CreateAll();
  for (int i = 0; i < 900; ++i) {
    Step(kNames[Draw(3)]);
    if (i % 150 == 149) store_.checkpointer().Look();
  }
  store_.Close();
  const auto disk = store_.files().Copy();
  int started = 0;
  for (int i = 0; i < kDamages && !HasFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat("damage ", i));
    store_.GoOnWith(disk->Copy());
    DamageSomething();
    Salvage();
    if (HasFatalFailure()) return;
    started += store_.report().lost_records > 0 ? 1 : 0;
    DeliverDue();
    const auto there = Look();
    // It goes on, and another start finds the same.
    store_.Crash();
    Reopen();
    ASSERT_EQ(Look(), there);
    LookAtGroups();
    store_.AdvanceBy(kSecond);
    for (const char* name : kNames) {
      if (store_.map(name) == nullptr) continue;
      for (int step = 0; step < 5; ++step) Step(name);
    }
    store_.Crash();
    Reopen();
    Look();
  }
  EXPECT_GT(started, kDamages / 2);
}

INSTANTIATE_TEST_SUITE_P(Retentions, DamagedWorldTest,
                         ::testing::Values(0, 3600 * kSecond));

}  // namespace
}  // namespace timecache::server
