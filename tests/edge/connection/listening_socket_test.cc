// Addresses to listen on, and what is said of those that cannot be had.
#include "server/edge/connection/listening_socket.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ListeningSocketTest : public ::testing::Test {
 protected:
  ListeningSocketTest() {
    // Short: a unix socket's path has 107 bytes.
    char path[] = "/tmp/timecached_listen.XXXXXX";
    EXPECT_NE(mkdtemp(path), nullptr);
    directory_ = path;
    unix_ = "unix:" + directory_ + "/socket";
  }
  ~ListeningSocketTest() override { std::filesystem::remove_all(directory_); }

  static void ExpectRefused(const std::string& address,
                            const std::string& why) {
    const auto socket = ListeningSocket::Open(address);
    ASSERT_FALSE(socket.ok());
    EXPECT_EQ(socket.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(socket.status().message()),
                StartsWith("cannot listen on " + address + ": "));
    EXPECT_THAT(std::string(socket.status().message()), HasSubstr(why));
  }

  std::string directory_;
  std::string unix_;
};

TEST_F(ListeningSocketTest, Port0TakesAFreeOneAndSaysWhich) {
  const auto socket = ListeningSocket::Open("127.0.0.1:0");
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_THAT(socket->address(), StartsWith("127.0.0.1:"));
  EXPECT_FALSE(absl::EndsWith(socket->address(), ":0"));
  EXPECT_EQ(socket->fds().size(), 1u);
}

TEST_F(ListeningSocketTest, AllAddressesOfANameShareOnePort) {
  const auto socket = ListeningSocket::Open("localhost:0");
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_GE(socket->fds().size(), 1u);
  ExpectRefused(socket->address(), "Address already in use");
}

// Also on a machine without /etc/hosts, or with another address in it.
TEST_F(ListeningSocketTest, LocalhostIsTheLoopbackAndNothingElse) {
  const auto socket = ListeningSocket::Open("LocalHost:0");
  ASSERT_TRUE(socket.ok()) << socket.status();
  ASSERT_FALSE(socket->fds().empty());
  for (const int fd : socket->fds()) {
    sockaddr_storage bound = {};
    socklen_t size = sizeof(bound);
    ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size), 0);
    if (bound.ss_family == AF_INET) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(&bound);
      EXPECT_EQ(address->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    } else {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(&bound);
      EXPECT_TRUE(IN6_IS_ADDR_LOOPBACK(&address->sin6_addr));
    }
  }
}

TEST_F(ListeningSocketTest, TwoOnOnePortAreAnError) {
  std::optional<ListeningSocket> first;
  first.emplace(ListeningSocket::Open("127.0.0.1:0").value());
  const std::string address = first->address();
  ExpectRefused(address, "Address already in use");
  first.reset();
  EXPECT_TRUE(ListeningSocket::Open(address).ok());
}

TEST_F(ListeningSocketTest, SaysWhyThereIsNone) {
  ExpectRefused("192.0.2.1:0", "Cannot assign requested address");
  ExpectRefused("127.0.0.1", "no port");
  ExpectRefused("unix:" + directory_ + "/none/socket",
                "No such file or directory");
  ExpectRefused("unix:/" + std::string(120, 'a'), "too long");
}

TEST_F(ListeningSocketTest, AUnixSocketGoesWithItsServer) {
  const std::string path = directory_ + "/socket";
  {
    const auto socket = ListeningSocket::Open(unix_);
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_EQ(socket->address(), unix_);
    EXPECT_TRUE(std::filesystem::is_socket(path));
    // Somebody listens there.
    ExpectRefused(unix_, "Address already in use");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ListeningSocketTest, LeavesTheUnixSocketOfAnotherServer) {
  const std::string path = directory_ + "/socket";
  std::optional<ListeningSocket> first;
  first.emplace(ListeningSocket::Open(unix_).value());
  ASSERT_TRUE(std::filesystem::remove(path));
  const auto second = ListeningSocket::Open(unix_);
  ASSERT_TRUE(second.ok()) << second.status();
  first.reset();
  EXPECT_TRUE(std::filesystem::is_socket(path));
}

TEST_F(ListeningSocketTest, TakesTheUnixSocketOfAServerThatIsGone) {
  const std::string path = directory_ + "/socket";
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(
      bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
      0);
  close(fd);
  ASSERT_TRUE(std::filesystem::is_socket(path));
  EXPECT_TRUE(ListeningSocket::Open(unix_).ok());
}

TEST_F(ListeningSocketTest, LeavesAFileThatIsNoSocket) {
  std::ofstream(directory_ + "/socket") << "precious";
  ExpectRefused(unix_, "Address already in use");
  EXPECT_EQ(std::filesystem::file_size(directory_ + "/socket"), 8u);
}

}  // namespace
}  // namespace timecache::server
