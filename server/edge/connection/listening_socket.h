// A socket that clients connect to.

#ifndef TIMECACHED_SERVER_EDGE_CONNECTION_LISTENING_SOCKET_H_
#define TIMECACHED_SERVER_EDGE_CONNECTION_LISTENING_SOCKET_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace timecache::server {

// One address, which may be several sockets: "localhost" has one of IPv4 and
// one of IPv6. Non-blocking. Not thread-safe; its destructor closes them and
// removes a unix socket's path, unless another socket has taken it since.
class ListeningSocket {
 public:
  // Connections that wait to be accepted.
  static constexpr int kBacklog = 4096;

  // Listens on host:port, [IPv6]:port (port 0 takes a free one) or unix:/path,
  // whose socket a server that is gone may have left there. The host
  // "localhost" is the loopback on every machine; other names are resolved.
  // UNAVAILABLE that says why it cannot: also where another socket listens
  // there.
  static absl::StatusOr<ListeningSocket> Open(const std::string& address);

  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&& other) = delete;
  ~ListeningSocket();

  const std::vector<int>& fds() const { return fds_; }
  // With the port that was taken.
  const std::string& address() const { return address_; }

 private:
  explicit ListeningSocket(std::string address)
      : address_(std::move(address)) {}

  // Distinguishes files at the same path. 0: there is none.
  struct FileId {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const FileId&) const = default;
  };
  static FileId FileAt(const std::string& path);

  absl::Status OpenUnix(const std::string& path);
  absl::Status OpenTcp();

  std::string address_;
  // Of a unix socket that was bound here, and the file that bind made there.
  std::string path_;
  FileId file_;
  std::vector<int> fds_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_CONNECTION_LISTENING_SOCKET_H_
