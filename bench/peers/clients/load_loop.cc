#include "bench/peers/clients/load_loop.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace timecache::bench {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
// A server that answers nothing for so long has failed.
constexpr int64_t kMaxSilenceNs = 60 * kNanosPerSecond;

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

// SplitMix64: the same numbers in every run.
class Random {
 public:
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // In [0, bound).
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>(
        (static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }

 private:
  uint64_t state_ = 42;
};

// The operations, one after the other.
class Operations {
 public:
  explicit Operations(const LoadOptions& options)
      : options_(options),
        put_bound_(static_cast<uint64_t>(options.put_share * kShares)),
        key_(static_cast<size_t>(options.key_bytes), '0'),
        value_(static_cast<size_t>(options.value_bytes), 'v') {}

  void AppendNext(const PeerProtocol& protocol, const std::string& prefix,
                  std::string* out) {
    const uint64_t number = options_.sequential ? next_++ % options_.keys
                                                : random_.Below(options_.keys);
    WriteKey(prefix, options_.first_key + number);
    const bool put = put_bound_ == kShares ||
                     (put_bound_ > 0 && random_.Below(kShares) < put_bound_);
    if (put) {
      protocol.AppendPut(key_, value_, out);
    } else {
      protocol.AppendGet(key_, out);
    }
  }

 private:
  static constexpr uint64_t kShares = 1'000'000;

  // "key:" and the number, with zeros before it, as redis-benchmark writes it.
  void WriteKey(const std::string& prefix, uint64_t number) {
    key_.replace(0, prefix.size(), prefix);
    for (size_t i = key_.size(); i-- > prefix.size();) {
      key_[i] = static_cast<char>('0' + number % 10);
      number /= 10;
    }
  }

  const LoadOptions& options_;
  const uint64_t put_bound_;
  std::string key_;
  const std::string value_;
  uint64_t next_ = 0;
  Random random_;
};

int Connect(const LoadOptions& options, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) Fail("socket");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, options.host.c_str(), &address.sin_addr) != 1) {
    close(fd);
    throw std::runtime_error(options.host + ": not an IPv4 address");
  }
  const int on = 1;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
          0 ||
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
      fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    const int error = errno;
    close(fd);
    errno = error;
    Fail("connect to " + options.host + ":" + std::to_string(port));
  }
  return fd;
}

// One connection. Not thread-safe.
class Connection {
 public:
  // The `index`-th of all.
  Connection(const LoadOptions& options, size_t index,
             std::unique_ptr<PeerProtocol> protocol)
      : fd_(Connect(options, options.ports[index % options.ports.size()])),
        key_prefix_(options.key_prefixes[index % options.key_prefixes.size()]),
        protocol_(std::move(protocol)) {}
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }
  bool idle() const { return pending_ == 0; }
  bool must_write() const { return written_ < out_.size(); }

  // Sends `count` operations, whose latency counts from `from_ns` on.
  void Send(Operations* operations, int count, int64_t from_ns) {
    out_.clear();
    written_ = 0;
    for (int i = 0; i < count; ++i) {
      operations->AppendNext(*protocol_, key_prefix_, &out_);
    }
    sent_ = count;
    pending_ = count + protocol_->AppendEnd(&out_);
    from_ns_ = from_ns;
    Write();
  }

  void Write() {
    while (must_write()) {
      const ssize_t n = send(fd_, out_.data() + written_,
                             out_.size() - written_, MSG_NOSIGNAL);
      if (n < 0 && errno == EAGAIN) return;
      if (n < 0 && errno != EINTR) Fail("send");
      if (n > 0) written_ += static_cast<size_t>(n);
    }
  }

  // Takes what has come.
  void Read(LoadResult* result) {
    static std::array<char, size_t{64} << 10> buffer;
    const ssize_t n = recv(fd_, buffer.data(), buffer.size(), 0);
    if (n == 0) throw std::runtime_error("the server closed a connection");
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0) Fail("recv");
    protocol_->Feed({buffer.data(), static_cast<size_t>(n)});
    while (pending_ > 0) {
      const Reply reply = protocol_->Next();
      if (reply == Reply::kIncomplete) return;
      --pending_;
      result->puts += reply == Reply::kStored;
      result->hits += reply == Reply::kHit;
      result->misses += reply == Reply::kMiss;
      result->errors += reply == Reply::kError;
    }
  }

  int sent() const { return sent_; }
  int64_t from_ns() const { return from_ns_; }

  // With a rate: when the next requests are due.
  int64_t due_ns = 0;

 private:
  const int fd_;
  const std::string& key_prefix_;
  const std::unique_ptr<PeerProtocol> protocol_;
  std::string out_;
  size_t written_ = 0;
  int pending_ = 0;
  int sent_ = 0;
  int64_t from_ns_ = 0;
};

// All of them, on one thread.
class Loop {
 public:
  Loop(const LoadOptions& options,
       const std::function<std::unique_ptr<PeerProtocol>()>& make_protocol,
       bool with_timeline)
      : options_(options), with_timeline_(with_timeline), operations_(options) {
    for (int i = 0; i < options.connections; ++i) {
      connections_.push_back(std::make_unique<Connection>(
          options, connections_.size(), make_protocol()));
    }
    polls_.resize(connections_.size());
  }

  LoadResult Run() {
    begin_ns_ = last_reply_ns_ = NowNs();
    Stagger();
    for (auto& connection : connections_) StartNext(*connection, begin_ns_);
    while (Wait()) {
      const int64_t now_ns = NowNs();
      for (size_t i = 0; i < connections_.size(); ++i) {
        Step(*connections_[i], polls_[i].revents, now_ns);
      }
      if (now_ns - last_reply_ns_ > kMaxSilenceNs) {
        throw std::runtime_error("the server has not answered for a minute");
      }
    }
    result_.seconds = static_cast<double>(NowNs() - begin_ns_) / 1e9;
    return std::move(result_);
  }

 private:
  bool paced() const { return options_.rate > 0; }

  // Spreads the connections over their common interval.
  void Stagger() {
    if (!paced()) return;
    interval_ns_ = static_cast<int64_t>(1e9 * options_.depth *
                                        options_.connections / options_.rate);
    for (size_t i = 0; i < connections_.size(); ++i) {
      connections_[i]->due_ns =
          begin_ns_ + interval_ns_ * static_cast<int64_t>(i) /
                          static_cast<int64_t>(connections_.size());
    }
  }

  bool Over(int64_t now_ns) const {
    if (options_.operations > 0) return issued_ >= options_.operations;
    return static_cast<double>(now_ns - begin_ns_) >= options_.seconds * 1e9;
  }

  // Sends if it is time, and there is more to send.
  void StartNext(Connection& connection, int64_t now_ns) {
    const int64_t from_ns = paced() ? connection.due_ns : now_ns;
    if (from_ns > now_ns || Over(from_ns)) return;
    uint64_t count = static_cast<uint64_t>(options_.depth);
    if (options_.operations > 0) {
      count = std::min(count, options_.operations - issued_);
    }
    issued_ += count;
    connection.due_ns += interval_ns_;
    connection.Send(&operations_, static_cast<int>(count), from_ns);
  }

  // False when all is done.
  bool Wait() {
    const int64_t now_ns = NowNs();
    int64_t wake_ns = now_ns + kNanosPerSecond;
    bool busy = false;
    for (size_t i = 0; i < connections_.size(); ++i) {
      const Connection& connection = *connections_[i];
      const int events = connection.must_write() ? POLLIN | POLLOUT : POLLIN;
      polls_[i] = {connection.fd(), static_cast<short>(events), 0};
      if (!connection.idle()) {
        busy = true;
      } else if (paced() && !Over(connection.due_ns)) {
        busy = true;
        wake_ns = std::min(wake_ns, connection.due_ns);
      }
    }
    if (!busy) return false;
    const int64_t wait_ns = std::max<int64_t>(0, wake_ns - now_ns);
    const timespec wait = {wait_ns / kNanosPerSecond,
                           wait_ns % kNanosPerSecond};
    if (ppoll(polls_.data(), polls_.size(), &wait, nullptr) < 0 &&
        errno != EINTR) {
      Fail("ppoll");
    }
    return true;
  }

  void Step(Connection& connection, int events, int64_t now_ns) {
    if ((events & POLLOUT) != 0) connection.Write();
    if ((events & (POLLIN | POLLERR | POLLHUP)) != 0) {
      connection.Read(&result_);
      last_reply_ns_ = now_ns;
      if (connection.idle()) Account(connection);
    }
    // A connection that was held up sends late, and its latency tells so.
    if (connection.idle()) StartNext(connection, NowNs());
  }

  void Account(const Connection& connection) {
    const int64_t now_ns = NowNs();
    Add(now_ns - connection.from_ns(), connection.sent(), &result_.latency);
    if (!with_timeline_) return;
    const auto second =
        static_cast<size_t>((now_ns - begin_ns_) / kNanosPerSecond);
    if (result_.timeline.size() <= second) result_.timeline.resize(second + 1);
    Add(now_ns - connection.from_ns(), connection.sent(),
        &result_.timeline[second]);
  }

  static void Add(int64_t latency_ns, int operations,
                  cli::LatencyHistogram* to) {
    for (int i = 0; i < operations; ++i) {
      to->Add(static_cast<uint64_t>(latency_ns));
    }
  }

  const LoadOptions& options_;
  const bool with_timeline_;
  Operations operations_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<pollfd> polls_;
  LoadResult result_;
  uint64_t issued_ = 0;
  int64_t begin_ns_ = 0;
  int64_t interval_ns_ = 0;
  int64_t last_reply_ns_ = 0;
};

}  // namespace

LoadResult RunLoad(
    const LoadOptions& options,
    const std::function<std::unique_ptr<PeerProtocol>()>& make_protocol,
    bool with_timeline) {
  return Loop(options, make_protocol, with_timeline).Run();
}

}  // namespace timecache::bench
