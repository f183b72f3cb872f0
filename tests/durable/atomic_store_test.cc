// Atomic batches of durable maps: whatever ends a process or a machine leaves
// all of a batch, or nothing.

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"
#include "tests/support/effort.h"
#include "tests/support/engine/dice.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

class AtomicStoreTest : public DurableStoreTest {
 protected:
  std::vector<Result> ExecuteAtomic(const std::vector<Operation>& operations) {
    std::vector<Result> results(operations.size());
    absl::Notification done;
    store_.store().ExecuteAtomic("a", operations, absl::MakeSpan(results),
                                 [&](const absl::Status& status) {
                                   EXPECT_TRUE(status.ok()) << status;
                                   done.Notify();
                                 });
    done.WaitForNotification();
    return results;
  }
  // With these options.
  void Recreate(const NamespaceOptions& options) {
    ASSERT_TRUE(store_.registry().Delete("a").ok());
    ASSERT_TRUE(store_.Create("a", options).ok());
  }
};

TEST_F(AtomicStoreTest, ABatchLastsOverARestartAtItsPlaceInTheOrder) {
  NamespaceOptions options = DurableOptions();
  options.idempotency_window_us = 30 * kSecond;
  Recreate(options);
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) keys.push_back(absl::StrCat("key", i));
  std::vector<Operation> ops;
  for (const std::string& key : keys) {
    ASSERT_TRUE(store_.Put("a", key, "before").status.ok());
    ops.push_back(Operation::Append(key, "-batch"));
  }
  Gathering gathering;
  ASSERT_TRUE(gathering.Set("one", 1, {}).ok());
  gathering.remember_us = 30 * kSecond;
  const Operation gather = Operation::Gather("gathered", &gathering, "part");
  Operation add = Operation::Combine("sum", Combination::kAdd, 7);
  add.SetId("id");
  ops.push_back(gather);
  ops.push_back(add);
  ops.push_back(Operation::Remove("none"));
  for (const Result& result : ExecuteAtomic(ops)) {
    ASSERT_TRUE(result.status.ok()) << result.status;
  }
  for (const std::string& key : keys) {
    store_.Execute("a", Operation::Append(key, "-after"));
  }
  LosePower();
  Reopen();
  for (const std::string& key : keys) {
    EXPECT_EQ(store_.Get("a", key), "before-batch-after");
  }
  EXPECT_EQ(ReasonOf(store_.Execute("a", gather).status),
            Reason::kGatherComplete);
  EXPECT_EQ(store_.Execute("a", add).number, 7);
  EXPECT_EQ(store_.Get("a", "sum"), "7");
}

TEST_F(AtomicStoreTest, AFullDiskFailsAllOfABatch) {
  ASSERT_TRUE(store_.Put("a", "seen", "v").status.ok());
  store_.files().TakeAllRoom();
  const std::string large(200 << 10, 'v');
  EXPECT_TRUE(
      Await([&] { return !store_.Put("a", "fills", large).status.ok(); }));
  const std::vector<Result> results =
      ExecuteAtomic({Operation::Put("a", "1"), Operation::Get("seen"),
                     Operation::Put("b", "1")});
  EXPECT_EQ(ReasonOf(results[0].status), Reason::kDiskFull);
  EXPECT_EQ(ReasonOf(results[1].status), Reason::kNotApplied);
  EXPECT_EQ(ReasonOf(results[2].status), Reason::kDiskFull);
  // What only reads goes on.
  EXPECT_EQ(ExecuteAtomic({Operation::Get("seen")})[0].entry.value, "v");
}

// --- Crashes.

struct AtomicWorld {
  std::string name;
  NamespaceDurability durability;
  bool power;
};

void PrintTo(const AtomicWorld& world, std::ostream* out) {
  *out << world.name;
}

// Writers that each bring keys of their own, in all shards, from one number to
// the next, in one batch; other changes of the keys and the shards come between.
class AtomicCrashTest : public AtomicStoreTest,
                        public ::testing::WithParamInterface<AtomicWorld> {
 protected:
  static constexpr int kWriters = 3;
  static constexpr int kNumbered = 6;

  struct Writer {
    int64_t tried = 0;
    std::atomic<int64_t> answered{0};
  };

  static std::string Key(int writer, int i) {
    return absl::StrCat("w", writer, "-", i);
  }

  // Until the batch, or what comes before it, has no answer.
  void Write(int w, uint64_t seed, const std::atomic<bool>* stop) {
    Dice dice(seed);
    Writer& mine = writers_[w];
    while (!*stop) {
      const std::string plain = absl::StrCat("plain", w, "-", dice.Draw(1, 20));
      store_.Put("a", plain, std::string(dice.Index(300), 'p'));
      store_.Execute("a", Operation::Touch(Key(w, 0)));
      store_.Execute("a", Operation::Append(Key(w, kNumbered), "p"));
      if (*stop) return;
      const std::string value = absl::StrCat(++mine.tried);
      const std::string log = absl::StrCat("[", value, "]");
      const std::string text(dice.Index(3'000), 't');
      std::vector<std::string> keys;
      for (int i = 0; i <= kNumbered + 3; ++i) keys.push_back(Key(w, i));
      std::vector<Operation> ops;
      for (int i = 0; i < kNumbered; ++i) {
        ops.push_back(Operation::Put(keys[i], value));
      }
      ops.push_back(Operation::Append(keys[kNumbered], log));
      ops.push_back(
          Operation::Combine(keys[kNumbered + 1], Combination::kAdd, 1));
      ops.push_back(mine.tried % 3 == 0
                        ? Operation::Remove(keys[kNumbered + 2])
                        : Operation::Put(keys[kNumbered + 2], text));
      const std::vector<Result> results = ExecuteAtomic(ops);
      if (*stop) return;
      for (const Result& result : results) {
        ASSERT_TRUE(result.status.ok()) << result.status;
      }
      mine.answered = mine.tried;
    }
  }

  void Check() {
    for (int w = 0; w < kWriters; ++w) {
      const std::string value = store_.Get("a", Key(w, 0));
      int64_t number = 0;
      ASSERT_TRUE(value == "(none)" || absl::SimpleAtoi(value, &number))
          << value;
      EXPECT_LE(number, writers_[w].tried);
      if (!GetParam().power ||
          GetParam().durability == NamespaceDurability::kSync) {
        EXPECT_GE(number, writers_[w].answered);
      }
      for (int i = 1; i < kNumbered; ++i) {
        EXPECT_EQ(store_.Get("a", Key(w, i)), value) << i;
      }
      writers_[w].tried = writers_[w].answered = number;
      if (number == 0) continue;
      EXPECT_EQ(store_.Get("a", Key(w, kNumbered + 1)), value);
      const std::string text = store_.Get("a", Key(w, kNumbered + 2));
      EXPECT_EQ(text == "(none)", number % 3 == 0);
      // Each batch once, in order, none behind the last.
      const std::string log = store_.Get("a", Key(w, kNumbered));
      int64_t next = 0;
      for (size_t at = log.find('['); at != std::string::npos;
           at = log.find('[', at + 1)) {
        EXPECT_EQ(std::stoll(log.substr(at + 1)), ++next);
      }
      EXPECT_EQ(next, number);
    }
  }

  std::array<Writer, kWriters> writers_;
};

TEST_P(AtomicCrashTest, ABatchIsThereWholeOrNotAtAll) {
  constexpr int kManyCrashes = 24;
  constexpr int kCrashes = test::Rounds(kManyCrashes);
  NamespaceOptions options = DurableOptions(GetParam().durability);
  options.num_shards = 8;
  options.max_value_bytes = kMaxValueBytesLimit;
  store_.options().segment_bytes = 64 << 10;
  store_.checkpointer_options().min_journal_bytes = 64 << 10;
  store_.checkpointer_options().factor = 1;
  store_.checkpointer_options().step_entries = 5;
  Reopen();
  Recreate(options);
  // Else the first loss of power may come before the namespace is stored.
  ASSERT_TRUE(
      store_.Create("b", DurableOptions(NamespaceDurability::kSync)).ok());
  ASSERT_TRUE(store_.Put("b", "key", "value").status.ok());
  Dice dice(test::Seed());
  uint64_t rounds = 0;
  int64_t batches = 0;
  for (int crash = 0; crash < kCrashes && !HasFailure(); ++crash) {
    SCOPED_TRACE(absl::StrCat("crash ", crash));
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    for (int w = 0; w < kWriters; ++w) {
      threads.emplace_back([this, w, seed = test::Seed() + crash * 100 + w,
                            &stop] { Write(w, seed, &stop); });
    }
    for (int step = 0; step < 5; ++step) {
      const uint64_t done = store_.journal().statistics().appends;
      EXPECT_TRUE(Await(
          [&] { return store_.journal().statistics().appends > done + 15; }));
      store_.checkpointer().Look();
    }
    rounds += store_.checkpointer().GetStatistics().rounds;
    // What is answered behind it does not count.
    std::array<int64_t, kWriters> answered;
    for (int w = 0; w < kWriters; ++w) answered[w] = writers_[w].answered;
    if (GetParam().power) {
      store_.Freeze(
          dice.Chance(500) ? Unsynced::kDropped : Unsynced::kKeptInPart,
          &random_);
    } else {
      store_.Freeze();
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    for (int w = 0; w < kWriters; ++w) writers_[w].answered = answered[w];
    for (const Writer& writer : writers_) batches += writer.tried;
    store_.Thaw();
    Reopen();
    if (HasFatalFailure()) return;
    Check();
  }
  EXPECT_GT(batches, kCrashes);
  // The few crashes of a sanitizer's run may come before the first one's end.
  if (kCrashes == kManyCrashes) {
    EXPECT_GT(rounds, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, AtomicCrashTest,
    ::testing::Values(
        AtomicWorld{"AsyncCrash", NamespaceDurability::kAsync, false},
        AtomicWorld{"AsyncPower", NamespaceDurability::kAsync, true},
        AtomicWorld{"SyncPower", NamespaceDurability::kSync, true}),
    [](const auto& info) { return info.param.name; });

// --- Damage.

// Sets of keys whose numbers batches write: those of one are those of all,
// whatever records of the journal are lost. Each call appends a letter to one of
// them.
class AtomicSalvageTest : public AtomicStoreTest {
 protected:
  static constexpr int kSets = 4;
  static constexpr int kSetKeys = 4;

  static std::string Key(int set, int i) {
    return absl::StrCat("set", set, "-", i);
  }
  // A batch that stores, or one that appends.
  void Step(int set, bool stores, int number) {
    const std::string value = absl::StrCat(".", number);
    std::vector<std::string> keys;
    for (int i = 0; i < kSetKeys; ++i) keys.push_back(Key(set, i));
    std::vector<Operation> ops;
    for (int i = 0; i < kSetKeys; ++i) {
      ops.push_back(stores ? Operation::Put(keys[i], value)
                           : Operation::Append(keys[i], value));
    }
    for (const Result& result : ExecuteAtomic(ops)) {
      ASSERT_TRUE(result.status.ok()) << result.status;
    }
  }
  std::string Numbers(int set, int i) {
    const std::string value = store_.Get("a", Key(set, i));
    return value == "(none)" ? "" : absl::StrReplaceAll(value, {{"x", ""}});
  }
  void DamageSomewhere() {
    std::vector<std::string> paths;
    for (const std::string& path : store_.files().Paths()) {
      if (absl::StartsWith(path, "/journal/0")) paths.push_back(path);
    }
    for (int i = 0; i < 2; ++i) {
      const std::string& path = paths[random_() % paths.size()];
      std::string contents = store_.files().Contents(path);
      if (contents.empty()) continue;
      const size_t at = random_() % contents.size();
      if (random_() % 2 == 0) {
        contents[at] ^= static_cast<char>(1 << random_() % 8);
      } else {
        contents.replace(at, 200, std::string(200, '\0'));
      }
      store_.files().SetContents(path, contents);
    }
  }
};

TEST_F(AtomicSalvageTest, ASalvageLeavesWholeBatches) {
  constexpr int kAtomicDamages = test::Rounds(80);
  store_.options().segment_bytes = 8 << 10;
  Reopen();
  for (int i = 0; i < 300; ++i) {
    const int set = static_cast<int>(i < kSets ? i : random_() % kSets);
    Step(set, i < kSets || random_() % 40 == 0, i);
    if (random_() % 3 == 0) {
      const int key = static_cast<int>(random_() % kSetKeys);
      store_.Execute("a", Operation::Append(Key(set, key), "x"));
    }
  }
  store_.Close();
  const auto disk = store_.files().Copy();
  int lost = 0;
  for (int damage = 0; damage < kAtomicDamages && !HasFailure(); ++damage) {
    SCOPED_TRACE(absl::StrCat("damage ", damage));
    store_.GoOnWith(disk->Copy());
    DamageSomewhere();
    const absl::Status status = store_.Salvage();
    ASSERT_TRUE(status.ok()) << status;
    Reopen();
    if (HasFatalFailure()) return;
    if (store_.map("a") == nullptr) continue;
    lost += store_.report().lost_records > 0 ? 1 : 0;
    for (int set = 0; set < kSets; ++set) {
      const std::string value = Numbers(set, 0);
      for (int i = 1; i < kSetKeys; ++i) {
        EXPECT_EQ(Numbers(set, i), value) << set << " " << i;
      }
    }
  }
  EXPECT_GT(lost, kAtomicDamages / 2);
}

}  // namespace
}  // namespace timecache::server
