// A connection of the HTTP port, as cpp-httplib reads and writes it.

#ifndef TIMECACHED_SERVER_OPS_HTTP_STREAM_H_
#define TIMECACHED_SERVER_OPS_HTTP_STREAM_H_

#include <array>
#include <chrono>
#include <functional>
#include <string>

#include "httplib.h"

namespace timecache::server {

// cpp-httplib's own stream has a time-out for each read and write, and may so
// be kept busy forever by one byte at a time. This one ends when its time is up
// or so many bytes have been read. Used by one thread, but for Cut. Does not
// own its socket.
class HttpStream final : public httplib::Stream {
 public:
  struct Limits {
    size_t max_read_bytes;
    // From the beginning to the end.
    std::chrono::milliseconds max_time;
    // The same while `crowded` says that other connections wait for the thread.
    std::chrono::milliseconds max_time_crowded;
    std::function<bool()> crowded;
  };

  // `limits` is not owned.
  HttpStream(int fd, const Limits* limits)
      : fd_(fd), limits_(*limits), left_(limits->max_read_bytes) {}

  // Ends it: waiting calls return. Thread-safe while the socket is open.
  void Cut();

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return fd_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Waits for it; false once the time is up.
  bool Wait(short events);  // NOLINT(runtime/int): poll's type

  const int fd_;
  const Limits& limits_;
  const Clock::time_point start_ = Clock::now();
  size_t left_;
  std::array<char, 1024> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_HTTP_STREAM_H_
