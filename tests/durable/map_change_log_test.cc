// Who commits what a map tells, on a journal whose commits the test makes.

#include "server/durable/map_change_log.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/support/journal/durable_store.h"

namespace timecache::server {
namespace {

// Keeps nothing; an append is done when the test says so.
class ManualJournal final : public Journal {
 public:
  uint32_t partitions() const override { return 1; }
  using Journal::Append;
  void Append(uint32_t /*partition*/, std::vector<std::string> records,
              Durability /*durability*/, Committer committer,
              AppendDone done) override {
    appends_.push_back({committer, std::move(records), std::move(done)});
  }
  absl::Status Read(absl::Span<const ReadFrom> /*from*/,
                    Visitor /*visit*/) const override {
    return absl::UnimplementedError("Read");
  }
  absl::Status TrimBefore(uint32_t /*partition*/,
                          uint64_t /*position*/) override {
    return absl::OkStatus();
  }
  uint64_t First(uint32_t /*partition*/) const override { return 0; }
  uint64_t End(uint32_t /*partition*/) const override { return end_; }
  bool low_space() const override { return false; }
  JournalStatistics statistics() const override { return {}; }

  size_t waiting() const { return appends_.size(); }
  // Commits the oldest, and says who was to do it.
  Committer Commit() {
    Pending pending = std::move(appends_.front());
    appends_.pop_front();
    const uint64_t position = end_;
    end_ += pending.records.size();
    pending.done(position, std::move(pending.records));
    return pending.committer;
  }

 private:
  struct Pending {
    Committer committer;
    std::vector<std::string> records;
    AppendDone done;
  };

  std::deque<Pending> appends_;
  uint64_t end_ = 0;
};

class MapChangeLogTest : public ::testing::Test {
 protected:
  MapChangeLogTest() {
    EXPECT_EQ(journal_->waiting(), 1u) << "that the map exists";
    journal_->Commit();
  }
  ~MapChangeLogTest() override {
    while (journal_->waiting() > 0) journal_->Commit();
  }

  // A put that is told, and waits until it is kept.
  void Put() {
    const Operation put = Operation::Put("key", "value");
    log_->Add(0, {.record = {.key = "key", .value = "value"}});
    log_->WhenKept({&put, 1}, ChangeLog::Tried::kAll,
                   [this](const absl::Status& status) {
                     EXPECT_TRUE(status.ok()) << status;
                     ++answered_;
                   });
  }
  // A put that nobody else comes beside.
  Committer CommitterOfOne() {
    Put();
    EXPECT_EQ(journal_->waiting(), 1u);
    return journal_->Commit();
  }

  ManualJournal* const journal_ = new ManualJournal;
  MapChangeLogs logs_{std::unique_ptr<Journal>(journal_)};
  const std::shared_ptr<TimeCacheMap> map_ = std::make_shared<TimeCacheMap>(
      "map", DurableOptions(NamespaceDurability::kAsync), nullptr, 0,
      EventFormat::Plain(),
      TimeCacheMap::Origin{.journaled = true, .hash_seed = 7});
  const std::shared_ptr<ChangeLog> log_ = logs_.Begin(map_);
  int answered_ = 0;
};

TEST_F(MapChangeLogTest, ACallerCommitsWhatIsItsOwn) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(CommitterOfOne(), Committer::kCaller);
    EXPECT_EQ(answered_, i + 1);
  }
}

TEST_F(MapChangeLogTest, ManyCallersHandOverUntilTheyAreFewAgain) {
  Put();
  // Meanwhile two others: few.
  for (int i = 0; i < 2; ++i) Put();
  EXPECT_EQ(journal_->Commit(), Committer::kCaller);
  EXPECT_EQ(answered_, 1);
  EXPECT_EQ(journal_->Commit(), Committer::kThread);
  EXPECT_EQ(answered_, 3);
  EXPECT_EQ(CommitterOfOne(), Committer::kCaller);

  Put();
  for (int i = 0; i < 3; ++i) Put();
  EXPECT_EQ(journal_->Commit(), Committer::kCaller);
  EXPECT_EQ(journal_->Commit(), Committer::kThread);
  EXPECT_EQ(answered_, 8);
  int handed_over = 0;
  while (handed_over < 10'000 && CommitterOfOne() == Committer::kThread) {
    ++handed_over;
  }
  EXPECT_EQ(handed_over, 256);
  EXPECT_EQ(CommitterOfOne(), Committer::kCaller);
}

}  // namespace
}  // namespace timecache::server
