#include "client/cli/console/http_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "openssl/err.h"

namespace timecache::cli {
namespace {

// What Linger reads, and how long.
constexpr size_t kMaxLingerBytes = 1 << 20;
constexpr std::chrono::milliseconds kMaxLingerTime{500};

int SslSize(size_t size) {
  return static_cast<int>(std::min<size_t>(size, INT_MAX));
}

}  // namespace

HttpConnection::HttpConnection(int fd, SSL_CTX* tls,
                               std::function<bool()> crowded)
    : fd_(fd),
      crowded_(std::move(crowded)),
      ssl_(tls == nullptr ? nullptr : SSL_new(tls), SSL_free) {
  if (ssl_ != nullptr) SSL_set_fd(ssl_.get(), fd);
}

void HttpConnection::Limit(std::chrono::milliseconds time, bool yields) {
  limited_ = Clock::now();
  deadline_ = limited_ + time;
  yields_ = yields;
}

void HttpConnection::Allow(std::chrono::milliseconds time, size_t read_bytes) {
  Limit(time, /*yields=*/false);
  left_ = read_bytes;
}

bool HttpConnection::Handshake() {
  if (ssl_ == nullptr) return true;
  Limit(kMaxHeadTime, /*yields=*/true);
  for (;;) {
    const int result = SSL_accept(ssl_.get());
    if (result == 1) return true;
    const short wanted = Wanted(result);  // NOLINT(runtime/int)
    if (wanted == 0 || !Wait(wanted)) return false;
  }
}

bool HttpConnection::AwaitRequest() {
  left_ = kMaxHeadBytes;
  Limit(kMaxIdleTime, /*yields=*/true);
  if (begin_ == end_) {
    const ssize_t got = Receive(buffer_.data(), buffer_.size());
    if (got <= 0) return false;
    begin_ = 0;
    end_ = static_cast<size_t>(got);
  }
  Limit(kMaxHeadTime, /*yields=*/true);
  return true;
}

bool HttpConnection::ReadBody(size_t size, std::string* body) {
  body->resize(size);
  for (size_t have = 0; have < size;) {
    const ssize_t got = read(body->data() + have, size - have);
    if (got <= 0) return false;
    have += static_cast<size_t>(got);
  }
  return true;
}

void HttpConnection::Linger() {
  if (ssl_ != nullptr && SSL_is_init_finished(ssl_.get()) != 0) {
    SSL_shutdown(ssl_.get());
  }
  shutdown(fd_, SHUT_WR);
  Limit(kMaxLingerTime, /*yields=*/true);
  for (size_t total = 0; total < kMaxLingerBytes;) {
    const ssize_t got = recv(fd_, buffer_.data(), buffer_.size(), 0);
    if (got > 0) {
      total += static_cast<size_t>(got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR) ||
               !Wait(POLLIN)) {
      break;
    }
  }
}

void HttpConnection::Cut() {
  gone_.request_stop();
  shutdown(fd_, SHUT_RDWR);
}

bool HttpConnection::Wait(short events) {  // NOLINT(runtime/int)
  for (;;) {
    const Clock::time_point now = Clock::now();
    if (now >= deadline_) return false;
    if (yields_ && now >= limited_ + kMaxCrowdedTime && crowded_()) {
      return false;
    }
    auto pause = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - now);
    // Then waiting connections are checked again.
    if (yields_) pause = std::min(pause, kMaxCrowdedTime);
    pollfd poll_fd = {fd_, events, 0};
    const int ready = poll(&poll_fd, 1, static_cast<int>(pause.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

short HttpConnection::Wanted(int result) {  // NOLINT(runtime/int)
  const int error = SSL_get_error(ssl_.get(), result);
  // Of this thread; other connections use it, too.
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ) return POLLIN;
  return error == SSL_ERROR_WANT_WRITE ? POLLOUT : 0;
}

ssize_t HttpConnection::Receive(char* to, size_t size) {
  for (;;) {
    short wanted = POLLIN;  // NOLINT(runtime/int)
    if (ssl_ != nullptr) {
      const int got = SSL_read(ssl_.get(), to, SslSize(size));
      if (got > 0) return got;
      wanted = Wanted(got);
      if (wanted == 0) return -1;
    } else {
      const ssize_t got = recv(fd_, to, size, 0);
      if (got >= 0) return got;
      if (errno != EAGAIN && errno != EINTR) return -1;
    }
    if (!Wait(wanted)) return -1;
  }
}

ssize_t HttpConnection::read(char* to, size_t size) {
  if (left_ == 0) return -1;
  size = std::min(size, left_);
  if (begin_ == end_) {
    const ssize_t got = Receive(buffer_.data(), buffer_.size());
    if (got <= 0) return got;
    begin_ = 0;
    end_ = static_cast<size_t>(got);
  }
  const size_t count = std::min(size, end_ - begin_);
  std::memcpy(to, buffer_.data() + begin_, count);
  begin_ += count;
  left_ -= count;
  return static_cast<ssize_t>(count);
}

ssize_t HttpConnection::write(const char* from, size_t size) {
  for (;;) {
    short wanted = POLLOUT;  // NOLINT(runtime/int)
    if (ssl_ != nullptr) {
      const int sent = SSL_write(ssl_.get(), from, SslSize(size));
      if (sent > 0) return sent;
      wanted = Wanted(sent);
      if (wanted == 0) return -1;
    } else {
      const ssize_t sent = send(fd_, from, size, MSG_NOSIGNAL);
      if (sent >= 0) return sent;
      if (errno != EAGAIN && errno != EINTR) return -1;
    }
    if (!Wait(wanted)) return -1;
  }
}

}  // namespace timecache::cli
