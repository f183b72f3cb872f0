// The messages that the benchmark sends: built once, with keys that are written
// anew for each sending, so that the benchmark measures the server and not
// itself.

#ifndef TIMECACHED_CLIENT_CLI_BENCH_BENCH_MESSAGE_H_
#define TIMECACHED_CLIENT_CLI_BENCH_BENCH_MESSAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/bench/bench_options.h"
#include "grpcpp/support/byte_buffer.h"

namespace timecache::cli {

// The numbers of the keys to come. Not thread-safe. A few nanoseconds each.
class BenchKeys {
 public:
  BenchKeys(uint64_t keys, bool is_sequential, uint64_t seed);

  // 0 to keys - 1: one after the other, or any with the same probability.
  uint64_t Next();

 private:
  const uint64_t keys_;
  const bool is_sequential_;
  uint64_t state_;
};

// The kinds of the operations to come, in the proportions of the mix and as
// evenly as it goes, e.g. put put put put get: a period of at most 100, which
// is then repeated.
std::vector<BenchKind> MixPeriod(
    const std::array<int, kBenchKinds>& mix_percent);

// A key, with zeros for digits.
std::string BenchKey(const BenchOptions& options);

// Writes the number's last `width` decimal digits.
void WriteDigits(uint64_t number, size_t width, char* to);

// One message: an ExecuteRequest, or the request of a unary call of its kind.
class BenchMessage {
 public:
  // `is_execute`: of these operations; otherwise of the only one of them.
  // `first`: how many come before them in other messages.
  BenchMessage(const BenchOptions& options, const std::vector<BenchKind>& kinds,
               bool is_execute, size_t first = 0);
  // Buffers point into it.
  BenchMessage(const BenchMessage&) = delete;
  BenchMessage& operator=(const BenchMessage&) = delete;

  // Writes new keys into it. Only while no buffer of it is being sent.
  void SetKeys(BenchKeys& keys);

  // Points to the message, which must outlive what is done with it.
  const grpc::ByteBuffer& buffer() const { return buffer_; }
  const std::string& bytes() const { return bytes_; }
  size_t operations() const { return digits_at_.size(); }
  // "/timecache.v1.TimeCacheService/Get"
  const std::string& method() const { return method_; }
  // Of the first operation: whether an empty response to it is a miss.
  bool may_miss() const { return may_miss_; }

 private:
  const size_t key_digits_;
  const bool may_miss_;
  std::string method_;
  std::string bytes_;
  std::vector<size_t> digits_at_;  // Where each operation's digits begin.
  grpc::ByteBuffer buffer_;
};

// The messages of one sender, used in turn. Message n and message n + size()
// are the same one: it may be used again once it has been answered, which those
// of at least `depth` messages before have been.
class BenchMessages {
 public:
  BenchMessages(const BenchOptions& options, size_t depth);

  // The next one, with new keys.
  BenchMessage& Next(BenchKeys& keys);

  // What the messages of all senders would take.
  static uint64_t BytesOfAll(const BenchOptions& options);

 private:
  std::vector<std::unique_ptr<BenchMessage>> messages_;
  size_t next_ = 0;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_BENCH_BENCH_MESSAGE_H_
