#include "server/main/disk_log.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DiskLogTest, SaysOnceThatTheDiskIsFullAndOnceThatItHasRoom) {
  bool full = false;
  std::vector<std::string> lines;
  DiskLog log([&] { return full; }, "/data",
              [&](LogLevel level, std::string_view event, LogFields fields) {
                lines.push_back(FormatLogLine(LogFormat::kText, absl::Time(),
                                              level, event, fields));
              });
  const auto look = [&] {
    log.Look();
    return std::exchange(lines, {});
  };
  EXPECT_THAT(look(), IsEmpty());
  full = true;
  EXPECT_THAT(look(),
              ElementsAre(AllOf(HasSubstr("warn"),
                                HasSubstr("journal_disk_full journal=/data"))));
  EXPECT_THAT(look(), IsEmpty());
  full = false;
  EXPECT_THAT(look(), ElementsAre(AllOf(HasSubstr("info"),
                                        HasSubstr("journal_disk_has_room"),
                                        HasSubstr("full_for_ms="))));
  EXPECT_THAT(look(), IsEmpty());
}

}  // namespace
}  // namespace timecache::server
