// A TCP connection of this machine with itself: what only TCP has.

#ifndef TIMECACHED_TESTS_SUPPORT_NET_TCP_PAIR_H_
#define TIMECACHED_TESTS_SUPPORT_NET_TCP_PAIR_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "gtest/gtest.h"

namespace timecache::test {

class TcpPair {
 public:
  TcpPair() {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener, any, size), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, any, &size), 0);
    client_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(client_, any, size), 0);
    server_ = accept(listener, nullptr, nullptr);
    EXPECT_GE(server_, 0);
    close(listener);
  }
  ~TcpPair() {
    close(client_);
    CloseServer();
  }
  TcpPair(const TcpPair&) = delete;
  TcpPair& operator=(const TcpPair&) = delete;

  int client() const { return client_; }
  int server() const { return server_; }

  // From the client; the server reads all of it.
  void Send(size_t bytes) {
    std::string buffer(size_t{32} << 10, 'x');
    while (bytes > 0) {
      const size_t some = std::min(bytes, buffer.size());
      ASSERT_EQ(send(client_, buffer.data(), some, 0),
                static_cast<ssize_t>(some));
      ASSERT_EQ(recv(server_, buffer.data(), some, MSG_WAITALL),
                static_cast<ssize_t>(some));
      bytes -= some;
    }
  }
  void CloseServer() {
    if (server_ >= 0) close(server_);
    server_ = -1;
  }

 private:
  int client_ = -1;
  int server_ = -1;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_NET_TCP_PAIR_H_
