// A connection without a client.

#ifndef TIMECACHED_TESTS_SUPPORT_NET_RAW_CONNECTION_H_
#define TIMECACHED_TESTS_SUPPORT_NET_RAW_CONNECTION_H_

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace timecache::test {

// To a server on 127.0.0.1, which speaks first: HTTP/2 begins with its
// settings. Not thread-safe.
class RawConnection {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(60);

  // `address` is 127.0.0.1:PORT.
  explicit RawConnection(const std::string& address)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    int port = 0;
    EXPECT_TRUE(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
              0);
  }
  ~RawConnection() { close(fd_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // Waits until the server has spoken, or closed it; false for neither.
  bool HasAnswer(absl::Duration patience = kPatience) const {
    pollfd polled = {fd_, POLLIN, 0};
    return poll(&polled, 1,
                static_cast<int>(absl::ToInt64Milliseconds(patience))) == 1;
  }
  // Waits until it has, and returns whether it has spoken.
  bool IsServed() const {
    char byte;
    return HasAnswer() && recv(fd_, &byte, 1, MSG_PEEK) == 1;
  }

  void Send(const std::string& bytes) const {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // All that the server says until it closes the connection.
  std::string ReadToEnd() const {
    std::string all;
    char block[4096];
    while (HasAnswer()) {
      const ssize_t length = recv(fd_, block, sizeof(block), 0);
      if (length <= 0) return all;
      all.append(block, static_cast<size_t>(length));
    }
    ADD_FAILURE() << "the connection is still open";
    return all;
  }

 private:
  const int fd_;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_NET_RAW_CONNECTION_H_
