// A browser's connection, with the bounds that cpp-httplib's own lacks.

#ifndef TIMECACHED_CLIENT_CLI_CONSOLE_HTTP_CONNECTION_H_
#define TIMECACHED_CLIENT_CLI_CONSOLE_HTTP_CONNECTION_H_

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "httplib.h"
#include "openssl/ssl.h"

namespace timecache::cli {

// Reads and writes with time limits, with TLS or without. Used by one thread,
// but for `gone` and Cut.
class HttpConnection final : public httplib::Stream {
 public:
  // Of a request's line and headers.
  static constexpr size_t kMaxHeadBytes = 16 << 10;
  // From its first byte to the end of its headers, and the TLS handshake.
  static constexpr std::chrono::milliseconds kMaxHeadTime{10'000};
  // Without a request.
  static constexpr std::chrono::milliseconds kMaxIdleTime{30'000};
  // Of the two while other connections wait for a thread.
  static constexpr std::chrono::milliseconds kMaxCrowdedTime{250};

  // `fd` is nonblocking and not owned. `tls` may be null. `crowded`: other
  // connections wait for the thread of this one.
  HttpConnection(int fd, SSL_CTX* tls, std::function<bool()> crowded);

  // False if it failed; true at once without TLS.
  bool Handshake();
  // Waits for the next request's first byte. False: none comes.
  bool AwaitRequest();
  // Time and bytes from now on for a request that may be made.
  void Allow(std::chrono::milliseconds time, size_t read_bytes);
  // Reads `size` bytes; false if they do not come.
  bool ReadBody(size_t size, std::string* body);
  // After the last response, so that it arrives also where what was sent to
  // this end has not been read.
  void Linger();

  // The client has left, or the console ends.
  std::stop_source& gone() { return gone_; }
  // Waiting calls return.
  void Cut();

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  // Not needed.
  void get_remote_ip_and_port(std::string& /*ip*/,
                              int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/,
                             int& /*port*/) const override {}
  socket_t socket() const override { return fd_; }

 private:
  using Clock = std::chrono::steady_clock;

  void Limit(std::chrono::milliseconds time, bool yields);
  // Waits for poll's events; false once the time is up.
  bool Wait(short events);  // NOLINT(runtime/int): poll's type
  // The event that SSL waits for; 0: it failed.
  short Wanted(int result);                // NOLINT(runtime/int)
  ssize_t Receive(char* to, size_t size);  // 0: end; -1: error.

  const int fd_;
  const std::function<bool()> crowded_;
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  std::stop_source gone_;

  Clock::time_point limited_ = Clock::now();
  Clock::time_point deadline_ = limited_;
  // Whether it ends early when connections wait.
  bool yields_ = true;
  size_t left_ = 0;
  std::array<char, 4096> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_CONSOLE_HTTP_CONNECTION_H_
