#include "server/process/disk_log.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/journal/journal_harness.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DiskLogTest : public ::testing::Test {
 protected:
  DiskLogTest() {
    harness_.options().reserve_bytes = 2'000;
    EXPECT_TRUE(harness_.Open().ok());
  }
  std::vector<std::string> Look(DiskLog* log) {
    log->Look();
    return std::exchange(lines_, {});
  }
  DiskLog LogOf(const Journal* journal) {
    return DiskLog(
        journal, "/data",
        [this](LogLevel level, std::string_view event, LogFields fields) {
          lines_.push_back(FormatLogLine(LogFormat::kText, absl::Time(), level,
                                         event, fields));
        });
  }

  JournalHarness harness_;
  std::vector<std::string> lines_;
};

TEST_F(DiskLogTest, SaysOnceThatTheDiskIsFullAndOnceThatItHasRoom) {
  DiskLog log = LogOf(&harness_.journal());
  EXPECT_THAT(Look(&log), IsEmpty());
  harness_.files().SetRoom(harness_.files().used_bytes());
  ASSERT_TRUE(harness_.AppendNow(0, "record").ok());
  EXPECT_THAT(Look(&log),
              ElementsAre(AllOf(HasSubstr("warn"),
                                HasSubstr("journal_disk_full journal=/data"),
                                HasSubstr("reserve_bytes=2000"))));
  EXPECT_THAT(Look(&log), IsEmpty());
  harness_.files().SetRoom(UINT64_MAX);
  harness_.Advance(harness_.options().reserve_interval);
  harness_.RunOnce();
  EXPECT_THAT(Look(&log), ElementsAre(AllOf(HasSubstr("info"),
                                            HasSubstr("journal_disk_has_room"),
                                            HasSubstr("full_for_ms="))));
  EXPECT_THAT(Look(&log), IsEmpty());
}

TEST_F(DiskLogTest, WithoutAJournalThereIsNothingToLog) {
  DiskLog log = LogOf(nullptr);
  EXPECT_THAT(Look(&log), IsEmpty());
}

}  // namespace
}  // namespace timecache::server
