// The journal of a server becomes that of a cluster, and of another server: its maps go
// on there as those of a copy.
#include "server/durable/restored_records.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/reason.h"
#include "server/engine/local_readers.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"
#include "tests/support/journal/shared_log.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::timecache::test::Await;

constexpr uint32_t kClusterPartitions = 3;
constexpr char kOther[] = "another";

// All that a journal has.
absl::Status ReadJournal(const Journal& journal, Journal::Visitor visit) {
  std::vector<Journal::ReadFrom> from;
  for (uint32_t p = 0; p < journal.partitions(); ++p) {
    from.push_back({p, journal.First(p)});
  }
  return journal.Read(from, visit);
}

class RestoredRecordsTest : public DurableStoreTest {
 protected:
  // A node that owns the log.
  struct Node {
    Node(SharedLog* log, const Clock* clock)
        : logs(log->Open(0), {.kind = JournalKind::kCluster}),
          reaper(clock),
          registry(clock, &reaper, RegistryLimits()),
          store(&registry, clock) {
      registry.SetChangeLogs(&logs);
      RecoveryOptions options;
      options.clock = clock;
      options.check_time = [this](int64_t us) {
        checked_us = us;
        return absl::OkStatus();
      };
      report = RecoverMaps(&logs, &registry, options);
    }
    std::shared_ptr<TimeCacheMap> map(const std::string& name) {
      const auto found = registry.Find(name);
      EXPECT_TRUE(found.ok()) << name << ": " << found.status();
      return found.ok() ? *found : nullptr;
    }

    MapChangeLogs logs;
    Reaper reaper;
    Registry registry;
    LocalStore store;
    int64_t checked_us = 0;
    absl::StatusOr<RecoveryReport> report;
  };

  void SetUp() override {
    DurableStoreTest::SetUp();
    NamespaceOptions options = DurableOptions();
    options.ttl_us = 3'600 * kSecond;
    options.max_ttl_us = options.ttl_us;
    ASSERT_TRUE(store_.Create(kOther, options).ok());
  }
  absl::StatusOr<RestoredRecords> Restore(Journal* to) {
    return RestoreRecords(
        [this](Journal::Visitor visit) {
          return ReadJournal(store_.journal(), visit);
        },
        to, store_.clock(), [] { return false; });
  }
  LogPoint EndPoint() { return store_.End("a"); }

  SharedLog log_{kClusterPartitions};
};

TEST_F(RestoredRecordsTest, MapsGoOnInTheirPartitionsAndWithOtherIdentities) {
  Die("one");
  const LogPoint at = EndPoint();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(store_.Put(kOther, absl::StrCat(i), "v").status.ok());
  }
  auto member = JoinGroup();
  ASSERT_NE(member, nullptr);
  member = nullptr;
  const auto restored = Restore(log_.Open(0).get());
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->namespaces, 2u);
  // The server goes on, and delivers what the cluster will never have.
  Die("other");
  const LogPoint later = EndPoint();

  for (int start = 0; start < 2; ++start) {
    Node node(&log_, &store_.clock());
    ASSERT_TRUE(node.report.ok()) << node.report.status();
    EXPECT_EQ(node.report->namespaces, 2u);
    // Once.
    EXPECT_EQ(node.report->forked, start == 0 ? 2u : 0u);
    EXPECT_EQ(node.report->entries, 100u);
    EXPECT_EQ(node.map("a")->options().durability,
              NamespaceDurability::kReplicated);
    const auto cursor =
        node.map("a")->Resume(at, store_.clock().NowUs(), [] {});
    EXPECT_TRUE(cursor.ok()) << cursor.status();
    const auto refused =
        node.map("a")->Resume(later, store_.clock().NowUs(), [] {});
    EXPECT_EQ(ReasonNameOf(refused.status()), ReasonName(Reason::kLogChanged));
    const auto events = node.map("a")->Subscribe(ExpiryLog::Start::kEarliest,
                                                 store_.clock().NowUs(), [] {});
    EXPECT_THAT(ReadAll(events.get()).Texts(), ElementsAre("one=v"));
  }
}

// A cluster's clock goes on from its journal: not from when the backup was taken.
TEST_F(RestoredRecordsTest, TheTimeUntilTheRestoreHasPassed) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  store_.clock().AdvanceBy(3'600 * kSecond);
  ASSERT_TRUE(Restore(log_.Open(0).get()).ok());
  const Node node(&log_, &store_.clock());
  ASSERT_TRUE(node.report.ok()) << node.report.status();
  EXPECT_EQ(node.checked_us, store_.clock().NowUs());
  EXPECT_LT(node.report->last_us, store_.clock().NowUs() - 3'500 * kSecond);
}

TEST_F(RestoredRecordsTest, NothingRecoversAPartOfIt) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  int reads = 0;
  const auto restored = RestoreRecords(
      [&](Journal::Visitor visit) {
        absl::Status status = ReadJournal(store_.journal(), visit);
        return ++reads == 1 ? status : absl::UnavailableError("interrupted");
      },
      log_.Open(0).get(), store_.clock(), [] { return false; });
  EXPECT_TRUE(absl::IsUnavailable(restored.status())) << restored.status();
  const Node node(&log_, &store_.clock());
  EXPECT_TRUE(absl::IsFailedPrecondition(node.report.status()));
  EXPECT_THAT(std::string(node.report.status().message()),
              HasSubstr("restore the backup again"));
}

TEST_F(RestoredRecordsTest, AJournalThatLacksRecordsIsRefused) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  const auto restored = RestoreRecords(
      [&](Journal::Visitor visit) {
        return ReadJournal(store_.journal(),
                           [&](uint32_t partition, uint64_t position,
                               absl::string_view record) {
                             return visit(partition, 2 * position, record);
                           });
      },
      log_.Open(0).get(), store_.clock(), [] { return false; });
  EXPECT_TRUE(absl::IsFailedPrecondition(restored.status()));
  EXPECT_EQ(log_.records(), 0u);
}

// A mark of a checkpoint has the positions of the journal that it was in.
TEST_F(RestoredRecordsTest, ACheckpointOfTheOtherJournalDoesNotGoOn) {
  store_.checkpointer_options().min_journal_bytes = 64 << 10;
  Reopen();
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(store_.Put("a", absl::StrCat(i % 10), "value").status.ok());
  }
  EXPECT_TRUE(Await([&] {
    store_.checkpointer().Look();
    return store_.checkpointer().GetStatistics().rounds > 0;
  }));
  ASSERT_TRUE(Restore(log_.Open(0).get()).ok());
  Node node(&log_, &store_.clock());
  ASSERT_TRUE(node.report.ok()) << node.report.status();
  EXPECT_EQ(node.report->entries, 10u);
  EXPECT_TRUE(node.logs.TakeOpenCheckpoint().from.empty());
}

}  // namespace
}  // namespace timecache::server
