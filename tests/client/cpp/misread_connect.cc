#include "tests/client/cpp/misread_connect.h"

#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>

namespace timecache {
namespace {

std::atomic<int> to_misread{0};
thread_local int connecting = -1;

// What is called there without this file: the C library's, or a sanitizer's.
template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void MisreadConnects(int count) { to_misread = count; }

}  // namespace timecache

// In place of the C library's, also for gRPC.
extern "C" int connect(int fd, const sockaddr* address, socklen_t length) {
  static auto* const next = timecache::Next<decltype(connect)>("connect");
  const int result = next(fd, address, length);
  if (result < 0 && errno == EINPROGRESS) timecache::connecting = fd;
  return result;
}

extern "C" int epoll_ctl(int epoll, int operation, int fd,
                         epoll_event* event) noexcept {
  static auto* const next =
      timecache::Next<int(int, int, int, epoll_event*)>("epoll_ctl");
  const int was_errno = errno;
  const int result = next(epoll, operation, fd, event);
  if (result != 0 || operation != EPOLL_CTL_ADD ||
      fd != timecache::connecting) {
    return result;
  }
  timecache::connecting = -1;
  errno = was_errno;
  if (timecache::to_misread > 0) {
    --timecache::to_misread;
    errno = ENOENT;
  }
  return result;
}
