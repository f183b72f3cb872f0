#include "server/main/exit_deadline.h"

#include <cstdlib>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

TEST(ExitDeadlineTest, EndsAProcessThatDoesNotEnd) {
  EXPECT_EXIT(
      {
        const ExitDeadline deadline(absl::ZeroDuration(), [] { _exit(7); });
        // As the close of a journal whose sync does not return.
        absl::Notification never;
        never.WaitForNotification();
      },
      testing::ExitedWithCode(7), "");
}

TEST(ExitDeadlineTest, LetsAProcessEndInTime) {
  bool expired = false;
  {
    const ExitDeadline deadline(absl::Hours(1), [&] { expired = true; });
  }
  EXPECT_FALSE(expired);
}

}  // namespace
}  // namespace timecache::server
