// What is read in memory is answered once the cluster's log has confirmed the owner.

#include "server/durable/read_confirmations.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/durable/map_change_log.h"
#include "server/engine/local_store.h"
#include "server/engine/reaper.h"
#include "tests/support/await.h"
#include "tests/support/journal/shared_log.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

// The log's side: questions, which a test answers.
class Questions {
 public:
  ConfirmOwner Asker() {
    return [this](std::function<void(bool)> done) {
      absl::MutexLock lock(&mu_);
      open_.push_back(std::move(done));
    };
  }
  size_t open() {
    absl::MutexLock lock(&mu_);
    return open_.size();
  }
  void Answer(bool owns) {
    std::vector<std::function<void(bool)>> open;
    {
      absl::MutexLock lock(&mu_);
      open.swap(open_);
    }
    for (const auto& done : open) done(owns);
  }

 private:
  absl::Mutex mu_;
  std::vector<std::function<void(bool)>> open_ ABSL_GUARDED_BY(mu_);
};

class ReadConfirmationsTest : public ::testing::Test {
 protected:
  ~ReadConfirmationsTest() override { reads_->Close(); }

  void Wait() {
    reads_->Wait([this](const absl::Status& status) {
      ++(status.ok() ? answered_ : lost_);
      if (!status.ok()) {
        EXPECT_EQ(ReasonOf(status), Reason::kOwnershipLost);
      }
    });
  }
  bool AwaitCounts(int answered, int lost) {
    return Await([&] { return answered_ == answered && lost_ == lost; });
  }

  std::atomic<int> answered_{0};
  std::atomic<int> lost_{0};
  Questions log_;
  Completions answers_;
  std::shared_ptr<ReadConfirmations> reads_ =
      std::make_shared<ReadConfirmations>(log_.Asker(), &answers_);
};

TEST_F(ReadConfirmationsTest, ThoseWhoComeMeanwhileShareTheNextQuestion) {
  for (int i = 0; i < 6; ++i) Wait();
  EXPECT_EQ(log_.open(), 1u);
  log_.Answer(true);
  EXPECT_TRUE(AwaitCounts(1, 0));
  EXPECT_EQ(log_.open(), 1u);
  Wait();
  log_.Answer(false);
  EXPECT_TRUE(AwaitCounts(1, 5));
  log_.Answer(true);
  EXPECT_TRUE(AwaitCounts(2, 5));
  EXPECT_EQ(log_.open(), 0u);
}

TEST_F(ReadConfirmationsTest, AbandonedReadsEnd) {
  for (int i = 0; i < 3; ++i) Wait();
  reads_->Abandon();
  EXPECT_TRUE(AwaitCounts(0, 3));
  // The question is open still.
  Wait();
  log_.Answer(true);
  EXPECT_EQ(log_.open(), 1u);
  log_.Answer(true);
  EXPECT_TRUE(AwaitCounts(1, 3));
}

TEST_F(ReadConfirmationsTest, OneTooManyFailsAtOnce) {
  for (size_t i = 0; i <= ReadConfirmations::kMaxWaiting; ++i) Wait();
  EXPECT_EQ(lost_, 1);
  reads_->Close();
  Wait();
  // And by now some that waited.
  EXPECT_GE(lost_, 2);
  // When the log answers, nothing is there any more.
  log_.Answer(true);
  EXPECT_TRUE(
      AwaitCounts(0, static_cast<int>(ReadConfirmations::kMaxWaiting) + 2));
}

// A map of a node.
class ConfirmedReadsTest : public ::testing::Test {
 protected:
  ConfirmedReadsTest() {
    registry_.SetChangeLogs(&logs_);
    NamespaceOptions options;
    options.durability = NamespaceDurability::kReplicated;
    absl::Notification done;
    store_.CreateNamespace("a", options, [&](const auto& created) {
      EXPECT_TRUE(created.ok()) << created.status();
      done.Notify();
    });
    EXPECT_TRUE(Await([&] {
      log_.Answer(true);
      return done.HasBeenNotified();
    }));
  }

  MapChangeLogsOptions Options() {
    MapChangeLogsOptions options;
    options.kind = JournalKind::kCluster;
    options.confirm = log_.Asker();
    return options;
  }
  struct Call {
    explicit Call(Operation what) : operation(std::move(what)) {}
    const Operation operation;
    std::vector<Result> results{1};
    std::atomic<bool> done{false};
  };
  std::unique_ptr<Call> Begin(Operation operation) {
    auto call = std::make_unique<Call>(std::move(operation));
    store_.Execute("a", absl::MakeSpan(&call->operation, 1),
                   absl::MakeSpan(call->results),
                   [call = call.get()](const absl::Status& status) {
                     EXPECT_TRUE(status.ok()) << status;
                     call->done = true;
                   });
    return call;
  }
  bool IsDone(const Call& call) {
    return Await([&] { return call.done.load(); });
  }

  ManualClock clock_;
  Questions log_;
  SharedLog shared_{1};
  MapChangeLogs logs_{shared_.Open(0), Options()};
  Reaper reaper_{&clock_};
  Registry registry_{&clock_, &reaper_, RegistryLimits()};
  LocalStore store_{&registry_, &clock_};
};

TEST_F(ConfirmedReadsTest, AReadWaitsAndAWriteDoesNot) {
  const auto put = Begin(Operation::Put("k", "v"));
  EXPECT_TRUE(IsDone(*put));
  EXPECT_EQ(log_.open(), 0u);
  const auto got = Begin(Operation::Get("k"));
  EXPECT_EQ(log_.open(), 1u);
  EXPECT_FALSE(got->done);
  log_.Answer(true);
  EXPECT_TRUE(IsDone(*got));
  EXPECT_TRUE(got->results[0].status.ok());
  EXPECT_EQ(got->results[0].entry.value, "v");
}

TEST_F(ConfirmedReadsTest, AReadOfAFormerOwnerIsRefused) {
  EXPECT_TRUE(IsDone(*Begin(Operation::Put("k", "v"))));
  const auto got = Begin(Operation::Get("k"));
  const auto none = Begin(Operation::Get("other"));
  log_.Answer(false);
  log_.Answer(false);
  EXPECT_TRUE(IsDone(*got));
  EXPECT_TRUE(IsDone(*none));
  EXPECT_EQ(ReasonOf(got->results[0].status), Reason::kOwnershipLost);
  EXPECT_EQ(ReasonOf(none->results[0].status), Reason::kOwnershipLost);
}

}  // namespace
}  // namespace timecache::server
