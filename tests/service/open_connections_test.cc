// Connections are counted until their file descriptors are closed by others.
#include "server/service/open_connections.h"

#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace timecache {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

int Socket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

TEST(OpenConnectionsTest, TakesAsManyAsMayBe) {
  OpenConnections connections(2);
  const std::vector<int> fds = {Socket(), Socket(), Socket()};
  EXPECT_TRUE(connections.Add(fds[0]));
  EXPECT_TRUE(connections.Add(fds[1]));
  EXPECT_FALSE(connections.Add(fds[2]));
  EXPECT_EQ(connections.Count(), 2u);
  EXPECT_EQ(connections.refused(), 1u);
  for (const int fd : fds) close(fd);
}

TEST(OpenConnectionsTest, ANumberThatComesAgainIsAnotherConnection) {
  OpenConnections connections(1);
  const int first = Socket();
  EXPECT_TRUE(connections.Add(first));
  close(first);
  const int second = Socket();
  // The least number that is free.
  ASSERT_EQ(first, second);
  EXPECT_TRUE(connections.Add(second));
  EXPECT_EQ(connections.Count(), 1u);
  close(second);
}

TEST(OpenConnectionsTest, ClosedOnesMakeRoom) {
  OpenConnections connections(2);
  const int first = Socket();
  const int second = Socket();
  const int third = Socket();
  EXPECT_TRUE(connections.Add(first));
  EXPECT_TRUE(connections.Add(second));
  close(first);
  // They are counted again now and then.
  const absl::Time end = absl::Now() + kPatience;
  while (!connections.Add(third)) {
    ASSERT_LT(absl::Now(), end);
    absl::SleepFor(absl::Milliseconds(10));
  }
  close(second);
  while (connections.Count() > 1) {
    ASSERT_LT(absl::Now(), end);
    absl::SleepFor(absl::Milliseconds(10));
  }
  close(third);
}

}  // namespace
}  // namespace timecache
