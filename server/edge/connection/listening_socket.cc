#include "server/edge/connection/listening_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace timecache::server {
namespace {

constexpr char kUnixPrefix[] = "unix:";
constexpr char kLocalhost[] = "localhost";

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::Status CannotListen(const std::string& address, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address, ": ", why));
}

// A bound, listening socket, or -1 with errno.
int Listen(const sockaddr* address, socklen_t size) {
  const int fd =
      socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  // [::] takes IPv4 as well; another IPv6 address never does.
  const int off = 0;
  if (address->sa_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  // A port that a server has just released may be reused at once. Two servers
  // on one port are refused all the same.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd, address, size) == 0 &&
      listen(fd, ListeningSocket::kBacklog) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

uint16_t PortOf(int fd) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof(bound);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return 0;
  }
  return ntohs(bound.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

void SetPort(uint16_t port, sockaddr* address) {
  (address->sa_family == AF_INET6
       ? reinterpret_cast<sockaddr_in6*>(address)->sin6_port
       : reinterpret_cast<sockaddr_in*>(address)->sin_port) = htons(port);
}

// Whether `address` is a socket without a listener.
bool IsLeftBehind(const sockaddr_un& address) {
  struct stat info;
  if (lstat(address.sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) {
    return false;
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool refused = connect(fd, reinterpret_cast<const sockaddr*>(&address),
                               sizeof(address)) != 0 &&
                       errno == ECONNREFUSED;
  close(fd);
  return refused;
}

}  // namespace

absl::StatusOr<ListeningSocket> ListeningSocket::Open(
    const std::string& address) {
  ListeningSocket socket(address);
  absl::Status status = absl::StartsWith(address, kUnixPrefix)
                            ? socket.OpenUnix(std::string(
                                  absl::StripPrefix(address, kUnixPrefix)))
                            : socket.OpenTcp();
  if (!status.ok()) return status;
  return socket;
}

absl::Status ListeningSocket::OpenUnix(const std::string& path) {
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  if (path.size() >= sizeof(to.sun_path)) {
    return CannotListen(address_, "the path is too long");
  }
  std::memcpy(to.sun_path, path.data(), path.size());
  if (IsLeftBehind(to)) unlink(path.c_str());
  const int fd = Listen(reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  if (fd < 0) return CannotListen(address_, std::strerror(errno));
  fds_.push_back(fd);
  path_ = path;
  file_ = FileAt(path);
  return absl::OkStatus();
}

ListeningSocket::FileId ListeningSocket::FileAt(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

absl::Status ListeningSocket::OpenTcp() {
  const size_t colon = address_.rfind(':');
  if (colon == std::string::npos) return CannotListen(address_, "no port");
  std::string host = address_.substr(0, colon);
  if (absl::StartsWith(host, "[")) host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  // Without a name these are the loopback's addresses, or with AI_PASSIVE all
  // of the machine. "localhost" is the loopback regardless of /etc/hosts and
  // name servers (RFC 6761): plain text is allowed on it.
  const bool is_localhost = absl::EqualsIgnoreCase(host, kLocalhost);
  if (!is_localhost) hints.ai_flags |= AI_PASSIVE;
  addrinfo* first = nullptr;
  const int error =
      getaddrinfo(is_localhost || host.empty() ? nullptr : host.c_str(),
                  address_.substr(colon + 1).c_str(), &hints, &first);
  if (error != 0) return CannotListen(address_, gai_strerror(error));
  const Addresses found(first, &freeaddrinfo);
  std::string why = "no address";
  uint16_t port = 0;
  for (addrinfo* to = found.get(); to != nullptr; to = to->ai_next) {
    // All addresses of one name share the port of the first.
    if (port != 0) SetPort(port, to->ai_addr);
    const int fd = Listen(to->ai_addr, to->ai_addrlen);
    if (fd >= 0) {
      fds_.push_back(fd);
      port = PortOf(fd);
      continue;
    }
    why = std::strerror(errno);
    // A machine may have a name for an IPv6 address, and no IPv6.
    if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) {
      return CannotListen(address_, why);
    }
  }
  if (fds_.empty() && host == "::") {
    // A kernel without IPv6: all addresses are those of IPv4.
    sockaddr_in any = {};
    any.sin_family = AF_INET;
    any.sin_port = reinterpret_cast<sockaddr_in6*>(found->ai_addr)->sin6_port;
    const int fd = Listen(reinterpret_cast<const sockaddr*>(&any), sizeof(any));
    if (fd < 0) return CannotListen(address_, std::strerror(errno));
    fds_.push_back(fd);
    port = PortOf(fd);
  }
  if (fds_.empty()) return CannotListen(address_, why);
  address_ = absl::StrCat(address_.substr(0, colon), ":", port);
  return absl::OkStatus();
}

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : address_(std::move(other.address_)),
      path_(std::exchange(other.path_, {})),
      file_(other.file_),
      fds_(std::exchange(other.fds_, {})) {}

ListeningSocket::~ListeningSocket() {
  // Removed while it is open: after closing, its inode may be reused for the
  // socket of another server.
  if (!path_.empty() && FileAt(path_) == file_) unlink(path_.c_str());
  for (const int fd : fds_) close(fd);
}

}  // namespace timecache::server
