#include "server/main/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace timecache::server {
namespace {

// For what comes on top of draining on a busy machine. The journal closes within
// the grace period (Node::Run), whatever its disk does.
constexpr absl::Duration kReserve = absl::Seconds(40);

int64_t MonotonicUs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
}

}  // namespace

ServiceManager ServiceManager::FromEnvironment() {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  return ServiceManager(path == nullptr ? "" : path);
}

void ServiceManager::Starting(absl::string_view status,
                              absl::Duration at_most) const {
  Send(absl::StrCat("EXTEND_TIMEOUT_USEC=", absl::ToInt64Microseconds(at_most),
                    "\nSTATUS=", status));
}

void ServiceManager::Ready(absl::string_view status) const {
  Send(absl::StrCat("READY=1\nSTATUS=", status));
}

void ServiceManager::Reloading() const {
  Send(absl::StrCat("RELOADING=1\nMONOTONIC_USEC=", MonotonicUs(),
                    "\nSTATUS=Reading the configuration"));
}

void ServiceManager::Stopping(absl::Duration at_most) const {
  Send(absl::StrCat("STOPPING=1\nEXTEND_TIMEOUT_USEC=",
                    absl::ToInt64Microseconds(at_most + kReserve),
                    "\nSTATUS=Letting calls in flight finish"));
}

void ServiceManager::Send(absl::string_view message) const {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_.size() < 2 || socket_.size() >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  // No closing null: in the abstract namespace it would be part of the name.
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  sendto(fd, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
         reinterpret_cast<const sockaddr*>(&address), length);
  close(fd);
}

}  // namespace timecache::server
