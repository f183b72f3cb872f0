// A connection to Redis that speaks RESP by hand, many commands to a write and
// many replies to a read.

#ifndef TIMECACHED_BENCH_PEERS_CLIENTS_RESP_CONNECTION_H_
#define TIMECACHED_BENCH_PEERS_CLIENTS_RESP_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace timecache::bench {

// One piece of a reply: a simple string, an error, a number, the header of an
// array, or a bulk string with its bytes.
struct RespToken {
  char type = 0;  // + - : * $
  // Of ':', '*' and '$': the number, the elements, the bytes; -1 for nothing.
  int64_t number = 0;
  // Of '+', '-' and '$'. Good until the next Receive().
  std::string_view text;
};

// Never blocks, once it is connected. Not thread-safe. Throws
// std::runtime_error when the connection fails.
class RespConnection {
 public:
  // What one Receive() takes, at least.
  static constexpr size_t kReceiveBytes = size_t{256} << 10;

  explicit RespConnection(int port);
  ~RespConnection();
  RespConnection(const RespConnection&) = delete;
  RespConnection& operator=(const RespConnection&) = delete;

  int fd() const { return fd_; }

  // To be sent by the next Flush().
  void Append(std::initializer_list<std::string_view> command);
  void AppendRaw(std::string_view bytes) { out_.append(bytes); }
  // Sends what the kernel takes; returns whether nothing is left.
  bool Flush();
  size_t unsent_bytes() const { return out_.size() - sent_; }

  // Takes what has come, if anything has. Returns how much.
  size_t Receive();
  // What was received and is not consumed yet.
  std::string_view received() const {
    return {in_.data() + begin_, end_ - begin_};
  }
  void Consume(size_t bytes) { begin_ += bytes; }
  // Consumes the next token; false if it has not come whole yet. An error from
  // the server is thrown.
  bool Next(RespToken* token);

  // Sends what waits, and waits for the next token, at most kMaxSilenceMs.
  RespToken Await();
  static constexpr int kMaxSilenceMs = 60'000;

 private:
  const int fd_;
  std::string out_;
  size_t sent_ = 0;
  std::vector<char> in_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

// Appends a command to `*out`, for AppendRaw.
void AppendCommand(std::initializer_list<std::string_view> command,
                   std::string* out);
// "$<bytes>\r\n<text>\r\n", for commands of any length.
void AppendBulk(std::string_view text, std::string* out);

// Waits until one of a number of connections has something to read, or, for
// those that said so, can be written to.
class RespPoller {
 public:
  RespPoller();
  ~RespPoller();
  RespPoller(const RespPoller&) = delete;
  RespPoller& operator=(const RespPoller&) = delete;

  // Not owned; must outlive the poller. `number` is what Wait returns.
  void Add(const RespConnection& connection, int number);
  // Whether Wait should also return it when it can be written to.
  void WantWrite(const RespConnection& connection, int number, bool want);

  // The numbers of those that are ready. Throws std::runtime_error if none is
  // for RespConnection::kMaxSilenceMs.
  const std::vector<int>& Wait();

 private:
  const int fd_;
  std::vector<int> ready_;
};

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_PEERS_CLIENTS_RESP_CONNECTION_H_
