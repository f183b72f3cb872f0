#include "server/main/clock_watch.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/engine/fake_machine.h"
#include "tests/support/journal/memory_file_system.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSecond = kMicrosPerSecond;

class ClockWatchTest : public ::testing::Test {
 protected:
  ClockWatchTest() { Open(); }

  void Open() {
    journal_ = nullptr;
    LocalJournalOptions options;
    options.files = &files_;
    options.partitions = 1;
    options.own_thread = false;
    journal_ = LocalJournal::Open("/journal", options).value();
  }
  std::vector<std::string> Look(ClockWatch* watch) {
    watch->Look();
    return std::exchange(lines_, {});
  }
  ClockWatch::Write Write() {
    return [this](LogLevel level, std::string_view event, LogFields fields) {
      lines_.push_back(
          FormatLogLine(LogFormat::kText, absl::Time(), level, event, fields));
    };
  }

  MemoryFileSystem files_;
  std::unique_ptr<LocalJournal> journal_;
  FakeMachine machine_;
  SystemClock clock_{500'000, machine_};
  std::vector<std::string> lines_;
};

TEST_F(ClockWatchTest, TheJournalKnowsHowFarTheClockIsBehindAtMost) {
  ClockWatch watch(&clock_, journal_.get(), Write());
  watch.Look();
  EXPECT_EQ(journal_->clock_behind_us(), 0);
  machine_.SetWall(5 * kSecond);
  watch.Look();
  EXPECT_GE(journal_->clock_behind_us(), 5 * kSecond);
  EXPECT_LE(journal_->clock_behind_us(),
            5 * kSecond + ClockWatch::kNoteMarginUs);
  const int64_t noted_us = journal_->clock_behind_us();
  Open();
  EXPECT_EQ(journal_->clock_behind_us(), noted_us);
  // Set back, it is ahead: for the next start that is as if it were right.
  ClockWatch again(&clock_, journal_.get(), Write());
  machine_.SetWall(-10 * kSecond);
  again.Look();
  EXPECT_EQ(journal_->clock_behind_us(), 0);
}

TEST_F(ClockWatchTest, ASlewIsNotedNowAndThen) {
  ClockWatch watch(&clock_, journal_.get(), Write());
  machine_.SetWall(5 * kSecond);
  watch.Look();
  int changes = 0;
  for (int i = 0; i < 10'000; ++i) {
    machine_.Pass(SystemClock::kBeatUs);
    const int64_t noted_us = journal_->clock_behind_us();
    watch.Look();
    changes += journal_->clock_behind_us() != noted_us ? 1 : 0;
    ASSERT_GE(journal_->clock_behind_us(), *clock_.OffsetUs());
    ASSERT_LE(journal_->clock_behind_us(),
              *clock_.OffsetUs() + ClockWatch::kNoteMarginUs);
  }
  EXPECT_LT(changes, 50);
}

TEST_F(ClockWatchTest, AClockThatIsOffIsLoggedOnce) {
  ClockWatch watch(&clock_, nullptr, Write());
  EXPECT_THAT(Look(&watch), IsEmpty());
  machine_.SetWall(-3600 * kSecond);
  EXPECT_THAT(Look(&watch),
              ElementsAre(AllOf(HasSubstr("warn"), HasSubstr("clock_off"),
                                HasSubstr("offset_ms=-3600000"))));
  EXPECT_THAT(Look(&watch), IsEmpty());
  machine_.SetWall(3600 * kSecond);
  EXPECT_THAT(Look(&watch), ElementsAre(HasSubstr("clock_right")));
}

TEST_F(ClockWatchTest, AStallIsLogged) {
  ClockWatch watch(&clock_, nullptr, Write());
  machine_.Pass(6 * kSecond);
  EXPECT_THAT(Look(&watch),
              ElementsAre(AllOf(HasSubstr("server_stalled"),
                                HasSubstr("not_counted_ms=5500"))));
  EXPECT_THAT(Look(&watch), IsEmpty());
}

}  // namespace
}  // namespace timecache::server
