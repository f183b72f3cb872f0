#include "server/main/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// A socket in the abstract namespace, as systemd listens on.
class ServiceManagerTest : public ::testing::Test {
 protected:
  ServiceManagerTest()
      : name_(absl::StrCat("@timecached_test_", getpid())),
        fd_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data() + 1, name_.size() - 1);
    const auto length =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), length), 0);
  }
  ~ServiceManagerTest() override { close(fd_); }

  // The next message that is there.
  std::string Next() {
    std::string bytes(4096, '\0');
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return bytes;
  }

  const std::string name_;
  const int fd_;
};

TEST_F(ServiceManagerTest, SaysWhatSystemdExpects) {
  const ServiceManager manager(name_);
  manager.Starting("Recovering, 40 %", absl::Minutes(2));
  EXPECT_EQ(Next(), "EXTEND_TIMEOUT_USEC=120000000\nSTATUS=Recovering, 40 %");
  manager.Ready("Serving");
  EXPECT_EQ(Next(), "READY=1\nSTATUS=Serving");
  manager.Reloading();
  EXPECT_THAT(Next(),
              MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[0-9]+\nSTATUS=.*"));
  manager.Stopping(absl::Seconds(20));
  EXPECT_THAT(Next(), AllOf(HasSubstr("STOPPING=1\n"),
                            HasSubstr("EXTEND_TIMEOUT_USEC=60000000\n")));
}

TEST_F(ServiceManagerTest, TheEnvironmentNamesIt) {
  setenv("NOTIFY_SOCKET", name_.c_str(), 1);
  ServiceManager::FromEnvironment().Ready("x");
  unsetenv("NOTIFY_SOCKET");
  EXPECT_EQ(Next(), "READY=1\nSTATUS=x");
  ServiceManager::FromEnvironment().Ready("y");
  EXPECT_EQ(Next(), "");
}

TEST_F(ServiceManagerTest, AMissingSocketIsIgnored) {
  ServiceManager("/no/such/socket").Ready("x");
  ServiceManager(std::string(500, 'x')).Ready("x");
  EXPECT_EQ(Next(), "");
}

}  // namespace
}  // namespace timecache::server
