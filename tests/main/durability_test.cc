// The start of a server with a journal: its progress, and what is reported of
// the journal afterwards.

#include "server/main/durability.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"
#include "server/durable/checkpointer.h"
#include "server/engine/local_store.h"
#include "server/engine/reaper.h"
#include "server/engine/shard/version_source.h"
#include "server/main/clock_watch.h"
#include "server/main/journal_metrics.h"
#include "server/main/slot_journals.h"
#include "server/ops/log.h"
#include "tests/support/engine/fake_machine.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// 2026-01-12T13:46:40Z.
constexpr int64_t kNowUs =
    VersionSource::kEpochUs + 1'000'000 * kMicrosPerSecond;

// What a server has of it, in the order of main.
struct Life {
  explicit Life(const config::v1::ServerConfig& config, ManualClock* clock)
      : journal(OpenJournal(config).value()),
        reaper(clock),
        registry(clock, &reaper, RegistryLimits()),
        store(&registry, clock) {}

  OpenedJournal journal;
  Reaper reaper;
  Registry registry;
  LocalStore store;
};

class DurabilityTest : public ::testing::Test {
 protected:
  DurabilityTest() : fd_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    SetLogging(LogLevel::kError, LogFormat::kText);
    config_.mutable_journal()->set_directory(directory_.path() + "/journal");
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data() + 1, name_.size() - 1);
    const auto length =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), length), 0);
  }
  ~DurabilityTest() override { close(fd_); }

  absl::Status Recover(Life* life) {
    return server::Recover(config_, signals_, &clock_,
                           {metrics_.get(), &readiness_, &manager_},
                           life->journal, &life->registry);
  }
  // With a clock that is the machine's.
  absl::Status RecoverAt(Life* life, int64_t now_us) {
    const FakeMachine machine(now_us);
    SystemClock clock(kNeverUs, machine);
    const absl::Status status = server::Recover(
        config_, signals_, &clock, {metrics_.get(), &readiness_, &manager_},
        life->journal, &life->registry);
    recovered_us_ = clock.NowUs();
    return status;
  }
  void CreateAndPut(Life* life, int entries,
                    RestartPolicy restart_policy = RestartPolicy::kFire) {
    NamespaceOptions options;
    options.restart_policy = restart_policy;
    options.durability = NamespaceDurability::kSync;
    absl::Notification created;
    life->store.CreateNamespace("kept", options,
                                [&](const absl::StatusOr<NamespaceInfo>& info) {
                                  EXPECT_TRUE(info.ok()) << info.status();
                                  created.Notify();
                                });
    created.WaitForNotification();
    for (int i = 0; i < entries; ++i) {
      const std::string key = absl::StrCat("key", i);
      const Operation put = Operation::Put(key, "value");
      Result result;
      absl::Notification done;
      life->store.Execute("kept", {&put, 1}, {&result, 1},
                          [&](const absl::Status& status) {
                            EXPECT_TRUE(status.ok()) << status;
                            done.Notify();
                          });
      done.WaitForNotification();
    }
  }
  // What the service manager got since the last call.
  std::string TakeNotifications() const {
    std::string all;
    char bytes[4096];
    for (;;) {
      const ssize_t got = recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT);
      if (got < 0) return all;
      all.append(bytes, static_cast<size_t>(got)).append("\n");
    }
  }
  std::string Metrics() const {
    return prometheus::TextSerializer().Serialize(metrics_->Collect());
  }

  const TemporaryDirectory directory_;
  const std::string name_ =
      absl::StrCat("@timecached_durability_test_", getpid());
  const int fd_;
  config::v1::ServerConfig config_;
  Signals signals_;
  ManualClock clock_{kNowUs};
  // What the clock said after RecoverAt.
  int64_t recovered_us_ = 0;
  std::unique_ptr<RecoveryMetrics> metrics_ =
      std::make_unique<RecoveryMetrics>();
  Readiness readiness_;
  const ServiceManager manager_{name_};
};

TEST_F(DurabilityTest, ObserversGetTheProgressOfARecovery) {
  EXPECT_EQ(Metrics(), "");
  EXPECT_EQ(readiness_.recovered(), -1);
  {
    Life life(config_, &clock_);
    ASSERT_TRUE(Recover(&life).ok());
    // Of a new journal.
    EXPECT_THAT(Metrics(),
                AllOf(HasSubstr("timecache_recovery_running 0\n"),
                      HasSubstr("timecache_recovery_records_expected 0\n")));
    CreateAndPut(&life, 3);
  }
  metrics_ = std::make_unique<RecoveryMetrics>();
  TakeNotifications();
  Life life(config_, &clock_);
  ASSERT_TRUE(Recover(&life).ok());
  EXPECT_GE(readiness_.recovered(), 0);
  EXPECT_THAT(TakeNotifications(), HasSubstr("EXTEND_TIMEOUT_USEC=120000000\n"
                                             "STATUS=Recovering, 0 %\n"));
  EXPECT_THAT(Metrics(),
              AllOf(HasSubstr("timecache_recovery_running 0\n"),
                    HasSubstr("timecache_recovery_namespaces 1\n"),
                    HasSubstr("timecache_recovery_entries 3\n"),
                    HasSubstr("timecache_recovery_records 4\n"),
                    HasSubstr("timecache_recovery_records_expected 4\n"),
                    HasSubstr("timecache_recovery_seconds ")));
}

TEST_F(DurabilityTest, WhileItRunsMetricsSayHowFarItIs) {
  metrics_->Begin();
  metrics_->Progress({40, 100});
  // Reported late by another thread.
  metrics_->Progress({30, 100});
  EXPECT_THAT(Metrics(),
              AllOf(HasSubstr("timecache_recovery_running 1\n"),
                    HasSubstr("timecache_recovery_records 40\n"),
                    HasSubstr("timecache_recovery_records_expected 100\n"),
                    HasSubstr("timecache_recovery_entries 0\n")));
}

// A machine's clock, beside the one that stands still for a journal.
TEST_F(DurabilityTest, AClockThatIsFarAheadOfTheJournalIsRefused) {
  config_.mutable_journal()->mutable_max_clock_lead()->set_seconds(3600);
  {
    Life life(config_, &clock_);
    // A new journal has no time.
    ASSERT_TRUE(RecoverAt(&life, kNowUs).ok());
    CreateAndPut(&life, 3, RestartPolicy::kPause);
  }
  for (const int64_t after_s : {int64_t{3601}, int64_t{30} * 365 * 86'400}) {
    Life life(config_, &clock_);
    const absl::Status status =
        RecoverAt(&life, kNowUs + after_s * kMicrosPerSecond);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("2026-01-12T13:46:40"), HasSubstr("Correct the clock"),
              HasSubstr("journal.max_clock_lead")));
    EXPECT_EQ(life.journal.logs->journal().statistics().records, 0u);
  }
  for (const int64_t after_s : {3600, 3540}) {
    Life life(config_, &clock_);
    const absl::Status status =
        RecoverAt(&life, kNowUs + after_s * kMicrosPerSecond);
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_F(DurabilityTest, AClockThatIsBehindGoesOnFromTheJournalsTime) {
  // Had an effect once.
  config_.mutable_journal()->mutable_max_clock_lag()->set_seconds(60);
  {
    Life life(config_, &clock_);
    ASSERT_TRUE(RecoverAt(&life, kNowUs).ok());
    CreateAndPut(&life, 3);
  }
  for (const int64_t behind_s : {int64_t{7200}, int64_t{50} * 365 * 86'400}) {
    Life life(config_, &clock_);
    const absl::Status status =
        RecoverAt(&life, kNowUs - behind_s * kMicrosPerSecond);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(recovered_us_, kNowUs);
    EXPECT_EQ(life.store.GetUsage().entries, 3);
  }
}

// The hour was no time that passed: see SystemClock.
TEST_F(DurabilityTest, AnHourThatTheLastClockWasBehindEndsNoLife) {
  config_.mutable_journal()->mutable_max_clock_lead()->set_seconds(60);
  constexpr int64_t kHourUs = 3'600 * kMicrosPerSecond;
  {
    Life life(config_, &clock_);
    ASSERT_TRUE(RecoverAt(&life, kNowUs).ok());
    CreateAndPut(&life, 3);
    FakeMachine machine(kNowUs);
    const SystemClock clock(kNeverUs, machine);
    ClockWatch watch(&clock, life.journal.local);
    machine.SetWall(kHourUs);
    watch.Look();
  }
  clock_.AdvanceBy(kHourUs + 2 * kMicrosPerSecond);
  for (int i = 0; i < 2; ++i) {
    // 2 s after the puts, and the same again: the entries move once.
    Life life(config_, &clock_);
    const absl::Status status =
        RecoverAt(&life, kNowUs + kHourUs + 2 * kMicrosPerSecond);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(life.journal.local->clock_behind_us(), 0);
    const Operation get = Operation::Get("key0");
    Result result;
    absl::Notification done;
    life.store.Execute("kept", {&get, 1}, {&result, 1},
                       [&](const absl::Status& /*status*/) { done.Notify(); });
    done.WaitForNotification();
    ASSERT_TRUE(result.found);
    EXPECT_NEAR(static_cast<double>(result.entry.put_us),
                static_cast<double>(kNowUs + kHourUs), 2e5);
  }
}

// As of a machine without a battery, before its first answer of a time server.
TEST_F(DurabilityTest, NoClockIsTooFarAheadOfAJournalOfBefore2026) {
  config_.mutable_journal()->mutable_max_clock_lead()->set_seconds(3600);
  ManualClock clock{100 * kMicrosPerSecond};
  {
    Life life(config_, &clock);
    ASSERT_TRUE(RecoverAt(&life, clock.NowUs()).ok());
    CreateAndPut(&life, 3);
  }
  Life life(config_, &clock_);
  const absl::Status status = RecoverAt(&life, kNowUs);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(DurabilityTest, TheJournalIsDescribed) {
  Life life(config_, &clock_);
  ASSERT_TRUE(Recover(&life).ok());
  const Checkpointer checkpointer(life.journal.logs.get(), &life.registry,
                                  &clock_);
  v1::JournalStatus status;
  const auto describe = [&](v1::JournalStatus* described) {
    DescribeJournal("/a/directory",
                    FiguresOf(life.journal.logs.get(), &checkpointer),
                    described);
  };
  describe(&status);
  EXPECT_EQ(status.directory(), "/a/directory");
  EXPECT_EQ(status.commits(), 0u);
  EXPECT_FALSE(status.has_commit_p99());
  CreateAndPut(&life, 5);
  v1::JournalStatus after;
  describe(&after);
  EXPECT_GT(after.disk_bytes(), status.disk_bytes());
  EXPECT_GE(after.commits(), 6u);
  EXPECT_GE(after.appends(), after.commits());
  EXPECT_GT(after.written_bytes(), 0u);
  EXPECT_TRUE(after.has_commit_p99());
  EXPECT_EQ(after.waiting_bytes().max(), uint64_t{64} << 20);
  EXPECT_FALSE(after.disk_full());
  EXPECT_EQ(after.checkpoint_state(), v1::CHECKPOINT_STATE_IDLE);
}

TEST_F(DurabilityTest, JournalsOfSlotsAreDescribedAsOne) {
  Life one(config_, &clock_);
  ASSERT_TRUE(Recover(&one).ok());
  config::v1::ServerConfig config = config_;
  config.mutable_journal()->set_directory(directory_.path() + "/other");
  Life other(config, &clock_);
  ASSERT_TRUE(Recover(&other).ok());
  const Checkpointer checkpointer(other.journal.logs.get(), &other.registry,
                                  &clock_);
  SlotJournals slots;
  EXPECT_EQ(slots.Sum().journal.disk_bytes, 0u);
  EXPECT_TRUE(slots.Sum().checkpoints.has_value());
  slots.Add(one.journal.logs.get(), nullptr);
  slots.Add(other.journal.logs.get(), &checkpointer);
  CreateAndPut(&one, 5);
  CreateAndPut(&other, 3);
  const JournalFigures first = FiguresOf(one.journal.logs.get(), nullptr);
  const JournalFigures second =
      FiguresOf(other.journal.logs.get(), &checkpointer);
  JournalFigures sum = slots.Sum();
  EXPECT_EQ(sum.journal.disk_bytes,
            first.journal.disk_bytes + second.journal.disk_bytes);
  EXPECT_EQ(sum.journal.records,
            first.journal.records + second.journal.records);
  EXPECT_EQ(sum.journal.commit_latency.total(), sum.journal.commits);
  EXPECT_EQ(sum.open_bytes_max, 2 * first.open_bytes_max);
  EXPECT_FALSE(sum.checkpoints->writing);

  // What one had is not there any more; what it did is not undone.
  slots.Remove(one.journal.logs.get());
  slots.Remove(one.journal.logs.get());
  const JournalFigures after = slots.Sum();
  EXPECT_EQ(after.journal.disk_bytes, second.journal.disk_bytes);
  EXPECT_EQ(after.open_bytes_max, second.open_bytes_max);
  EXPECT_EQ(after.journal.records, sum.journal.records);
  EXPECT_EQ(after.journal.commits, sum.journal.commits);
  slots.Remove(other.journal.logs.get());
  EXPECT_EQ(slots.Sum().journal.written_bytes, sum.journal.written_bytes);
  EXPECT_EQ(slots.Sum().open_bytes_max, 0);
}

}  // namespace
}  // namespace timecache::server
