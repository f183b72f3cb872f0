// A server that dies at each step of a checkpoint, and of the trimming at its
// end, while it is used: what was answered and delivered is so afterwards.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/base/failpoint.h"
#include "tests/support/await.h"
#include "tests/support/effort.h"
#include "tests/support/engine/dice.h"
#include "tests/support/engine/group_harness.h"
#include "tests/support/journal/durable_store.h"
#include "tests/support/journal/journal_harness.h"

namespace timecache::server {
namespace {

using Unsynced = MemoryFileSystem::Unsynced;

constexpr char kMap[] = "kept";
constexpr char kGroup[] = "workers";
// A group without members, which keeps all events.
constexpr char kIdle[] = "idle";
constexpr int kKeys = 40;
constexpr int64_t kRetentionUs = 10 * kSecond;

// Where the server dies: at this hit of this failpoint.
std::string* target = nullptr;
std::atomic<int> hits_left = 0;
std::function<void()>* die = nullptr;

void DieAtTarget(absl::string_view name) {
  if (name == *target && --hits_left == 0) (*die)();
}

using ::timecache::test::Await;

class CheckpointKillTest : public ::testing::TestWithParam<std::string> {
 protected:
  // What is known of a key: its last answer, and the operation after that which
  // was under way when the server died.
  struct Known {
    uint64_t version = 0;  // 0: a removal, or nothing
    bool unanswered = false;
    std::string then;  // "(none)" after a removal
  };

  void SetUp() override {
    store_.options().segment_bytes = 8 << 10;
    CheckpointerOptions& options = store_.checkpointer_options();
    options.min_journal_bytes = 24 << 10;
    options.factor = 1;
    options.step_entries = 5;
    ASSERT_TRUE(store_.Open().ok());
    NamespaceOptions map = DurableOptions();
    map.ttl_us = 4 * kSecond;
    map.num_buckets = 5;
    map.retention_us = kRetentionUs;
    ASSERT_TRUE(store_.Create(kMap, map).ok());
    ASSERT_TRUE(store_.Create("other").ok());
    GroupOptions group;
    group.max_attempts = 100;
    for (const char* name : {kGroup, kIdle}) {
      ASSERT_TRUE(store_.map(kMap)
                      ->groups()
                      .Create(name, group, ExpiryLog::Start::kEarliest,
                              store_.clock().NowUs(), "")
                      .ok());
    }
    ASSERT_TRUE(store_.Put("other", "long", "lived").status.ok());
    point_ = {store_.map(kMap)->origin().log_id,
              store_.map(kMap)->first_event(), INT64_MIN};
  }

  void Change() {
    const std::string key = absl::StrCat("key", dice_.Draw(1, kKeys));
    const std::string value(dice_.Index(300), 'v');
    const bool remove = dice_.Chance(200);
    Known& known = known_[key];
    if (known.version != 0) ended_.insert(known.version);
    known.unanswered = true;
    known.then = remove ? "(none)" : value;
    const Result result = store_.Execute(
        kMap, remove ? Operation::Remove(key) : Operation::Put(key, value));
    if (dead_) return;
    ASSERT_TRUE(result.status.ok()) << result.status;
    known = {result.version, false, ""};
    if (!remove) put_.insert(result.version);
  }

  // What a watcher gets; what comes once the server is dead does not count.
  void Read() {
    auto cursor =
        store_.map(kMap)->Resume(point_, store_.clock().NowUs(), [] {});
    ASSERT_TRUE(cursor.ok()) << cursor.status();
    const Reading reading = ReadAll(cursor->get());
    if (dead_) return;
    EXPECT_EQ(reading.lost, 0u);
    for (const DeliveredEvent& event : reading.events) {
      EXPECT_TRUE(delivered_.insert(event.version).second)
          << event.key << " died twice";
      EXPECT_GE(event.death_us, event.deadline_us);
      last_delivered_[event.key] = event.version;
      published_[event.version] = event.published_us;
    }
    point_.next_event += reading.events.size();
    point_.watermark_us = reading.watermark_us;
  }

  void Ack(const std::string& group, const Delivery& delivery) {
    const Settlement settlement = SettlementOf(delivery);
    SettleResult result;
    absl::Notification done;
    store_.store().Settle(
        {kMap, group}, {&settlement, 1}, {&result, 1},
        [&](const absl::Status& /*status*/) { done.Notify(); });
    done.WaitForNotification();
  }

  // A member of the group takes some events and settles most of them.
  void Work(int most) {
    const auto group = store_.map(kMap)->groups().Find(kGroup);
    ASSERT_TRUE(group.ok()) << group.status();
    const auto member = (*group)->Join(1'000, [] {});
    const EventChunk chunk =
        member->Take(store_.clock().NowUs(), most, int64_t{1} << 20);
    EXPECT_EQ(chunk.lost, 0u);
    for (const Delivery& delivery : chunk.deliveries) {
      const uint64_t version = delivery.event().version;
      if (!dead_) {
        EXPECT_EQ(settled_.count(version), 0u)
            << delivery.event().key << " was settled, and comes again";
      }
      if (dice_.Chance(200)) continue;
      const Settlement settlement = SettlementOf(delivery);
      SettleResult result;
      absl::Notification done;
      store_.store().Settle(
          {kMap, kGroup}, {&settlement, 1}, {&result, 1},
          [&](const absl::Status& /*status*/) { done.Notify(); });
      done.WaitForNotification();
      (dead_ ? maybe_settled_ : settled_).insert(version);
    }
  }

  // Works until the server dies there, and starts it again.
  void LiveUntil(const std::string& failpoint, int hit) {
    std::string name = failpoint;
    const bool lose_power = dice_.Chance(500);
    const Unsynced unsynced =
        dice_.Chance(500) ? Unsynced::kDropped : Unsynced::kKeptInPart;
    std::atomic<bool> frozen = false;
    std::function<void()> freeze = [&] {
      // First: an answer that comes meanwhile may not be in the copy.
      dead_ = true;
      if (lose_power) {
        store_.Freeze(unsynced, &random_);
      } else {
        store_.Freeze();
      }
      frozen = true;
    };
    target = &name;
    die = &freeze;
    hits_left = hit;
    SetFailpointHook(DieAtTarget);
    for (int i = 0; i < 20'000 && !dead_; ++i) {
      ASSERT_NO_FATAL_FAILURE(Change());
      if (dice_.Chance(50)) {
        store_.AdvanceBy(dice_.Draw(0, kSecond));
        ASSERT_NO_FATAL_FAILURE(Read());
        ASSERT_NO_FATAL_FAILURE(Work(5));
      }
      store_.checkpointer().Look();
    }
    ASSERT_TRUE(dead_) << failpoint << " was not met " << hit << " times";
    ASSERT_TRUE(Await([&] { return frozen.load(); }));
    store_.Thaw();
    SetFailpointHook(nullptr);
    dead_ = false;
    const absl::Status opened = store_.Open();
    ASSERT_TRUE(opened.ok()) << opened;
  }

  // There is no downtime.
  void CheckRetained() {
    const auto cursor = store_.map(kMap)->Subscribe(
        ExpiryLog::Start::kEarliest, store_.clock().NowUs(), [] {});
    std::map<uint64_t, int64_t> retained;
    for (const DeliveredEvent& event : ReadAll(cursor.get()).events) {
      retained[event.version] = event.published_us;
    }
    const int64_t since_us = store_.clock().NowUs() - kRetentionUs;
    for (const auto& [version, published_us] : published_) {
      const auto it = retained.find(version);
      if (it != retained.end()) {
        EXPECT_EQ(it->second, published_us);
      } else {
        EXPECT_LE(published_us, since_us) << version << " is not retained";
      }
    }
  }

  void Check() {
    store_.AdvanceBy(0);
    ASSERT_NO_FATAL_FAILURE(Read());
    ASSERT_NO_FATAL_FAILURE(CheckRetained());
    for (auto& [key, known] : known_) {
      const Result got = store_.Execute(kMap, Operation::Get(key));
      const uint64_t version = got.found ? got.entry.version : 0;
      const std::string value = got.found ? got.entry.value : "(none)";
      const bool died = !got.found && delivered_.count(known.version) > 0;
      const bool as_unanswered =
          known.unanswered &&
          (value == known.then ||
           (!got.found && last_delivered_[key] > known.version));
      EXPECT_TRUE(version == known.version || died || as_unanswered)
          << key << ": version " << known.version << " is " << value;
      known = {version, false, ""};
    }
    EXPECT_EQ(store_.Get("other", "long"), "lived");
  }

  // What was put is replaced, removed or delivered, and all that was delivered is
  // settled or comes now.
  void CheckAll() {
    store_.AdvanceBy(60 * kSecond);
    ASSERT_NO_FATAL_FAILURE(Read());
    for (const uint64_t version : put_) {
      EXPECT_TRUE(delivered_.count(version) + ended_.count(version) > 0)
          << version << " is forgotten";
    }
    for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(Work(1'000));
    for (const uint64_t version : delivered_) {
      EXPECT_TRUE(settled_.count(version) + maybe_settled_.count(version) > 0)
          << "the event of " << version << " is forgotten";
    }
    const auto idle = store_.map(kMap)->groups().Find(kIdle);
    ASSERT_TRUE(idle.ok()) << idle.status();
    const auto member = (*idle)->Join(1'000'000, [] {});
    std::set<uint64_t> given;
    // A key's later events come once the earlier are settled.
    for (;;) {
      const EventChunk chunk =
          member->Take(store_.clock().NowUs(), 1'000, int64_t{1} << 20);
      EXPECT_EQ(chunk.lost, 0u);
      if (chunk.deliveries.empty()) break;
      for (const Delivery& delivery : chunk.deliveries) {
        EXPECT_TRUE(given.insert(delivery.event().version).second);
        Ack(kIdle, delivery);
      }
    }
    EXPECT_EQ(given, delivered_);
  }

  Dice dice_{test::Seed()};
  std::mt19937_64 random_{test::Seed()};
  DurableStore store_;
  std::atomic<bool> dead_ = false;
  std::map<std::string, Known> known_;
  std::set<uint64_t> put_;
  std::set<uint64_t> ended_;  // replaced or removed, or perhaps
  std::set<uint64_t> delivered_;
  std::map<uint64_t, int64_t> published_;
  std::map<std::string, uint64_t> last_delivered_;
  std::set<uint64_t> settled_;
  std::set<uint64_t> maybe_settled_;
  LogPoint point_;
};

TEST_P(CheckpointKillTest, WhatWasAnsweredIsSoAfterwards) {
  SCOPED_TRACE(absl::StrCat("TIMECACHED_SEED=", test::Seed()));
  for (int life = 0; life < 4; ++life) {
    const int hit = 1 + static_cast<int>(dice_.Draw(0, 4));
    SCOPED_TRACE(absl::StrCat("life ", life, " hit ", hit));
    ASSERT_NO_FATAL_FAILURE(LiveUntil(GetParam(), hit));
    ASSERT_NO_FATAL_FAILURE(Check());
  }
  ASSERT_NO_FATAL_FAILURE(CheckAll());
  EXPECT_GT(delivered_.size(), 20u);
}

// Of the journal those of a trim: its committer drops the segments later.
std::vector<std::string> Failpoints() {
  std::vector<std::string> names(std::begin(kCheckpointFailpoints),
                                 std::end(kCheckpointFailpoints));
  names.insert(names.end(),
               {"trim.begin", "trim.written", "trim.removed", "trim.end"});
  return names;
}

INSTANTIATE_TEST_SUITE_P(AtEachFailpoint, CheckpointKillTest,
                         ::testing::ValuesIn(Failpoints()),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param, {{".", "_"}});
                         });

}  // namespace
}  // namespace timecache::server
