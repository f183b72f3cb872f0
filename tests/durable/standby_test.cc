// Two nodes on one journal: a standby replays what the owner appends, and takes
// over.

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/durable/recovery.h"
#include "server/engine/local_store.h"
#include "server/engine/reaper.h"
#include "tests/support/await.h"
#include "tests/support/effort.h"
#include "tests/support/journal/durable_store.h"
#include "tests/support/journal/shared_log.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

constexpr int kPartitions = 3;

// An engine on the log. The clock is all nodes'.
class StandbyTest : public ::testing::Test {
 protected:
  class Node {
   public:
    Node(SharedLog* log, int number, const Clock* clock)
        : clock_(*clock),
          logs_(std::make_unique<MapChangeLogs>(log->Open(number), Options())),
          reaper_(clock),
          registry_(clock, &reaper_, RegistryLimits()),
          store_(&registry_, clock) {
      registry_.SetChangeLogs(logs_.get());
    }
    ~Node() {
      if (following_.joinable()) TakeOver();
    }

    void Follow() {
      following_ = std::thread([this] {
        RecoveryOptions options;
        options.threads = 2;
        options.clock = &clock_;
        options.follow = [this] {
          ++passes_;
          if (!owns_) return true;
          // What was appended before it did.
          return !std::exchange(last_, true);
        };
        const auto report = RecoverMaps(logs_.get(), &registry_, options);
        EXPECT_TRUE(report.ok()) << report.status();
      });
    }
    // All that the log has now is replayed.
    void AwaitPass() {
      const uint64_t from = passes_;
      EXPECT_TRUE(Await([&] { return passes_ >= from + 2; }));
    }
    void TakeOver() {
      owns_ = true;
      following_.join();
    }

    Registry& registry() { return registry_; }
    void Flush() { reaper_.Flush(); }
    Result Execute(const Operation& operation) {
      std::vector<Result> results(1);
      absl::Notification done;
      store_.Execute("a", absl::MakeSpan(&operation, 1),
                     absl::MakeSpan(results), [&](const absl::Status& status) {
                       if (!status.ok()) results[0].status = status;
                       done.Notify();
                     });
      done.WaitForNotification();
      return results[0];
    }
    std::vector<Result> ExecuteAtomic(const std::vector<Operation>& ops) {
      std::vector<Result> results(ops.size());
      absl::Notification done;
      store_.ExecuteAtomic("a", ops, absl::MakeSpan(results),
                           [&](const absl::Status& status) {
                             EXPECT_TRUE(status.ok()) << status;
                             done.Notify();
                           });
      done.WaitForNotification();
      return results;
    }
    std::string Value(const std::string& key) {
      const Result result = Execute(Operation::Get(key));
      if (!result.status.ok()) return std::string(ReasonNameOf(result.status));
      return result.found ? absl::StrCat(result.entry.value) : "(none)";
    }
    void Create() {
      absl::Notification done;
      store_.CreateNamespace("a",
                             DurableOptions(NamespaceDurability::kReplicated),
                             [&](const auto& created) {
                               EXPECT_TRUE(created.ok()) << created.status();
                               done.Notify();
                             });
      done.WaitForNotification();
    }
    uint64_t events() {
      const auto map = registry_.Find("a");
      return map.ok() ? (*map)->GetStatistics(clock_.NowUs()).expired : 0;
    }

   private:
    static MapChangeLogsOptions Options() {
      MapChangeLogsOptions options;
      options.kind = JournalKind::kCluster;
      return options;
    }

    const Clock& clock_;
    std::unique_ptr<MapChangeLogs> logs_;
    Reaper reaper_;
    Registry registry_;
    LocalStore store_;
    std::atomic<uint64_t> passes_{0};
    std::atomic<bool> owns_{false};
    bool last_ = false;
    std::thread following_;
  };

  void Advance(int64_t step_us, Node* owner) {
    clock_.AdvanceBy(step_us);
    owner->Flush();
  }

  ManualClock clock_{kStartUs};
  SharedLog log_{kPartitions};
};

TEST_F(StandbyTest, TakesOverWithAllThatWasAcknowledged) {
  std::mt19937_64 random(test::Seed());
  std::map<std::string, std::string> model;
  auto owner = std::make_unique<Node>(&log_, 0, &clock_);
  owner->Create();
  for (int term = 1; term <= 4; ++term) {
    auto standby = std::make_unique<Node>(&log_, term, &clock_);
    standby->Follow();
    for (int i = 0; i < 2'000; ++i) {
      const std::string key = absl::StrCat("k", random() % 300);
      if (random() % 4 == 0) {
        ASSERT_TRUE(owner->Execute(Operation::Remove(key)).status.ok());
        model.erase(key);
      } else {
        const std::string value = absl::StrCat("v", random() % 1'000'000);
        ASSERT_TRUE(owner->Execute(Operation::Put(key, value)).status.ok());
        model[key] = value;
      }
      if (i % 500 == 250) standby->AwaitPass();
    }
    log_.SetOwner(term);
    standby->TakeOver();
    EXPECT_EQ(owner->Value("k1"), "OWNERSHIP_LOST");
    owner = std::move(standby);
    for (int i = 0; i < 300; ++i) {
      const std::string key = absl::StrCat("k", i);
      const auto is = model.find(key);
      ASSERT_EQ(owner->Value(key), is == model.end() ? "(none)" : is->second);
    }
  }
}

// Of a batch under way at the takeover, the next owner has all, or nothing.
TEST_F(StandbyTest, TakesOverWholeAtomicBatches) {
  constexpr int kTerms = 6;
  auto owner = std::make_unique<Node>(&log_, 0, &clock_);
  owner->Create();
  int64_t number = 0;
  for (int term = 1; term <= kTerms; ++term) {
    auto standby = std::make_unique<Node>(&log_, term, &clock_);
    standby->Follow();
    std::atomic<int64_t> tried{number};
    std::atomic<int64_t> answered{number};
    std::thread writer([&] {
      for (;;) {
        const std::string value = absl::StrCat(++tried);
        const std::vector<Result> results = owner->ExecuteAtomic(
            {Operation::Put("k0", value), Operation::Put("k1", value),
             Operation::Put("k2", value), Operation::Put("k3", value),
             Operation::Combine("sum", Combination::kAdd, 1)});
        for (const Result& result : results) {
          EXPECT_EQ(result.status.ok(), results[0].status.ok());
        }
        if (!results[0].status.ok()) return;
        answered = tried.load();
      }
    });
    const int64_t from = number;
    EXPECT_TRUE(Await([&] { return answered > from + 50; }));
    log_.SetOwner(term);
    writer.join();
    standby->TakeOver();
    owner = std::move(standby);
    const std::string value = owner->Value("k0");
    number = std::stoll(value);
    EXPECT_GE(number, answered);
    EXPECT_LE(number, tried);
    for (const char* key : {"k1", "k2", "k3"}) {
      EXPECT_EQ(owner->Value(key), value) << key;
    }
    // Each batch that is there added one.
    EXPECT_EQ(owner->Value("sum"), value);
  }
}

TEST_F(StandbyTest, DeathsAreCountedOnce) {
  Node owner(&log_, 0, &clock_);
  owner.Create();
  Node standby(&log_, 1, &clock_);
  standby.Follow();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(
        owner.Execute(Operation::Put(absl::StrCat(i), "v")).status.ok());
  }
  Advance(62 * kSecond, &owner);
  ASSERT_EQ(owner.events(), 100u);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(
        owner.Execute(Operation::Put(absl::StrCat(i), "w")).status.ok());
  }
  standby.AwaitPass();
  log_.SetOwner(1);
  standby.TakeOver();
  const auto map = standby.registry().Find("a");
  ASSERT_TRUE(map.ok());
  const auto cursor =
      (*map)->Subscribe(ExpiryLog::Start::kEarliest, clock_.NowUs(), [] {});
  EXPECT_EQ(ReadAll(cursor.get()).events.size(), 100u);
  EXPECT_EQ(standby.Value("49"), "w");
  EXPECT_EQ(standby.Value("50"), "(none)");
  Advance(62 * kSecond, &standby);
  EXPECT_EQ(ReadAll(cursor.get()).events.size(), 50u);
}

// A generation is held open for those who were answered, but not for long.
TEST_F(StandbyTest, CallersThatShareAppendsAreAllAnswered) {
  constexpr int kCallers = 4;
  constexpr int kPuts = 200;
  Node owner(&log_, 0, &clock_);
  owner.Create();
  std::atomic<int> puts{0};
  std::vector<std::thread> callers;
  log_.Hold();
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < kPuts; ++i) {
        const std::string key = absl::StrCat("k", caller, "-", i);
        EXPECT_TRUE(owner.Execute(Operation::Put(key, "v")).status.ok());
        ++puts;
      }
    });
  }
  EXPECT_TRUE(Await([&] { return log_.held() == 1; }));
  EXPECT_EQ(puts, 0);
  log_.AnswerAll();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(puts, kCallers * kPuts);
  Node next(&log_, 1, &clock_);
  next.Follow();
  log_.SetOwner(1);
  next.TakeOver();
  for (int caller = 0; caller < kCallers; ++caller) {
    EXPECT_EQ(next.Value(absl::StrCat("k", caller, "-", kPuts - 1)), "v");
  }
}

TEST_F(StandbyTest, AFormerOwnerStoresAndAnswersNothing) {
  Node owner(&log_, 0, &clock_);
  owner.Create();
  ASSERT_TRUE(owner.Execute(Operation::Put("k", "v")).status.ok());
  log_.SetOwner(1);
  const uint64_t records = log_.records();
  const absl::Status put = owner.Execute(Operation::Put("k", "w")).status;
  EXPECT_EQ(put.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(put), Reason::kOwnershipLost);
  EXPECT_EQ(owner.Value("k"), "OWNERSHIP_LOST");
  EXPECT_EQ(owner.Value("other"), "OWNERSHIP_LOST");
  EXPECT_EQ(log_.records(), records);
  Node next(&log_, 1, &clock_);
  next.Follow();
  next.TakeOver();
  EXPECT_EQ(next.Value("k"), "v");
}

}  // namespace
}  // namespace timecache::server
