#include "bench/peers/clients/resp_connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>

namespace timecache::bench {
namespace {

constexpr int kMaxReady = 256;

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

int ConnectTo(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) Fail("socket");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
          0 ||
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
      fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    const int error = errno;
    close(fd);
    errno = error;
    Fail("connect to port " + std::to_string(port));
  }
  return fd;
}

void AppendHeader(char type, size_t number, std::string* out) {
  std::array<char, 24> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number);
  out->push_back(type);
  out->append(digits.data(), end.ptr);
  out->append("\r\n");
}

bool IsWait(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

void AppendBulk(std::string_view text, std::string* out) {
  AppendHeader('$', text.size(), out);
  out->append(text);
  out->append("\r\n");
}

void AppendCommand(std::initializer_list<std::string_view> command,
                   std::string* out) {
  AppendHeader('*', command.size(), out);
  for (const std::string_view word : command) AppendBulk(word, out);
}

RespConnection::RespConnection(int port)
    : fd_(ConnectTo(port)), in_(2 * kReceiveBytes) {}

RespConnection::~RespConnection() { close(fd_); }

void RespConnection::Append(std::initializer_list<std::string_view> command) {
  AppendCommand(command, &out_);
}

bool RespConnection::Flush() {
  while (sent_ < out_.size()) {
    const ssize_t sent =
        send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (sent < 0) {
      if (IsWait(errno)) return false;
      if (errno != EINTR) Fail("send");
      continue;
    }
    sent_ += static_cast<size_t>(sent);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

size_t RespConnection::Receive() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (in_.size() - end_ < kReceiveBytes) {
    std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    // One piece may be larger than the buffer was.
    if (in_.size() - end_ < kReceiveBytes) in_.resize(2 * in_.size());
  }
  const ssize_t received = recv(fd_, in_.data() + end_, in_.size() - end_, 0);
  if (received == 0) throw std::runtime_error("Redis closed a connection");
  if (received < 0) {
    if (IsWait(errno) || errno == EINTR) return 0;
    Fail("recv");
  }
  end_ += static_cast<size_t>(received);
  return static_cast<size_t>(received);
}

bool RespConnection::Next(RespToken* token) {
  const std::string_view all = received();
  const size_t line = all.find('\r');
  if (line == std::string_view::npos || line + 1 >= all.size()) return false;
  size_t whole = line + 2;
  token->type = all[0];
  token->text = all.substr(1, line - 1);
  if (token->type == '-') throw std::runtime_error(std::string(token->text));
  if (token->type != '+') {
    const auto parsed =
        std::from_chars(all.data() + 1, all.data() + line, token->number);
    if (parsed.ptr != all.data() + line) {
      throw std::runtime_error("Redis answered what is not RESP");
    }
  }
  if (token->type == '$' && token->number >= 0) {
    const auto bytes = static_cast<size_t>(token->number);
    if (all.size() < whole + bytes + 2) return false;
    token->text = all.substr(whole, bytes);
    whole += bytes + 2;
  }
  Consume(whole);
  return true;
}

RespToken RespConnection::Await() {
  RespToken token;
  while (!Next(&token)) {
    const bool flushed = Flush();
    pollfd ready = {
        fd_, static_cast<int16_t>(flushed ? POLLIN : POLLIN | POLLOUT), 0};
    if (poll(&ready, 1, kMaxSilenceMs) <= 0) {
      throw std::runtime_error("Redis does not answer");
    }
    Receive();
  }
  return token;
}

RespPoller::RespPoller() : fd_(epoll_create1(EPOLL_CLOEXEC)) {
  if (fd_ < 0) Fail("epoll_create1");
}

RespPoller::~RespPoller() { close(fd_); }

void RespPoller::Add(const RespConnection& connection, int number) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = number;
  if (epoll_ctl(fd_, EPOLL_CTL_ADD, connection.fd(), &event) != 0) {
    Fail("epoll_ctl");
  }
}

void RespPoller::WantWrite(const RespConnection& connection, int number,
                           bool want) {
  epoll_event event = {};
  event.events = EPOLLIN;
  if (want) event.events |= EPOLLOUT;
  event.data.fd = number;
  if (epoll_ctl(fd_, EPOLL_CTL_MOD, connection.fd(), &event) != 0) {
    Fail("epoll_ctl");
  }
}

const std::vector<int>& RespPoller::Wait() {
  std::array<epoll_event, kMaxReady> events;
  const int count =
      epoll_wait(fd_, events.data(), kMaxReady, RespConnection::kMaxSilenceMs);
  if (count == 0) throw std::runtime_error("Redis sends nothing any more");
  if (count < 0 && errno != EINTR) Fail("epoll_wait");
  ready_.clear();
  for (int i = 0; i < count; ++i) {
    ready_.push_back(events[static_cast<size_t>(i)].data.fd);
  }
  return ready_;
}

}  // namespace timecache::bench
