// What `timecachectl bench` is to do.

#ifndef TIMECACHED_CLIENT_CLI_BENCH_BENCH_OPTIONS_H_
#define TIMECACHED_CLIENT_CLI_BENCH_BENCH_OPTIONS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "timecache/channel.h"

namespace timecache::cli {

enum class BenchKind {
  kPut,
  kGet,
  kRemove,
  kContains,
  kTouch,
  kAppend,
  kCombine,
  kGather
};
inline constexpr size_t kBenchKinds = 8;
inline constexpr std::string_view kBenchKindNames[kBenchKinds] = {
    "put", "get", "remove", "contains", "touch", "append", "combine", "gather"};
// What a Gather expects under a key; each brings one of them.
inline constexpr uint32_t kBenchParts = 3;

// Keys are this, then digits, then what fills them up to their length.
inline constexpr std::string_view kBenchKeyPrefix = "key:";
inline constexpr size_t kMaxBenchKeyDigits = 12;
// Most bytes of the messages of all connections, which are built beforehand.
inline constexpr uint64_t kMaxBenchMessageBytes = uint64_t{1} << 30;

struct BenchOptions {
  std::string address = {};
  ChannelOptions channel = {};
  std::string ns = "default";
  std::array<int, kBenchKinds> mix_percent = {80, 20};  // Adds up to 100.
  uint64_t keys = 1'000'000;                            // Distinct ones.
  bool is_sequential = false;
  bool fill = false;  // Puts all keys before.
  size_t key_bytes = 16;
  size_t value_bytes = 64;
  std::optional<absl::Duration> ttl = {};
  size_t batch = 100;  // Operations of a message.
  bool is_unary = false;
  size_t connections = 1;
  size_t depth = 1;  // Messages in flight on a connection.
  // Threads that make plain calls of one client, or with a batch its Execute, in
  // place of messages; 0: none.
  size_t callers = 0;
  bool owner_routing = false;  // Of callers.
  // Operations per second that are sent whatever the answers do; 0: each answer
  // lets the next message go.
  double rate = 0;
  // Whichever is first; 0 operations: no such limit.
  absl::Duration duration = absl::Seconds(10);
  uint64_t operations = 0;
  std::string timeline = {};                  // A file; empty: none.
  absl::Duration timeout = absl::Seconds(5);  // Without any answer.

  // Digits of a key's number.
  size_t key_digits() const {
    return std::min(kMaxBenchKeyDigits, key_bytes - kBenchKeyPrefix.size());
  }
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_BENCH_BENCH_OPTIONS_H_
