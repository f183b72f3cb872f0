// What an operator asks of a running server: plain structs, those of
// proto/timecache/v1/server.proto. Times are on the server's clock.

#ifndef TIMECACHE_OPERATOR_TYPES_H_
#define TIMECACHE_OPERATOR_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace timecache {

// A pattern of namespaces, and what the caller may do there.
struct Permission {
  std::string pattern = {};             // "orders", "team-a.*", "*".
  std::vector<std::string> verbs = {};  // "READ".
};

// The caller, as the server sees it.
struct CallerInfo {
  std::string principal = {};  // "anonymous" without access rules.
  std::string peer = {};       // "ipv4:10.0.0.7:41234"
  bool access_rules = false;   // Whether the server has some.
  // Empty without access rules, where every caller may do everything.
  std::vector<Permission> permissions = {};
};

// A connection of a client.
struct ClientConnection {
  uint64_t id = 0;        // As long as the server runs.
  std::string peer = {};  // "10.0.0.7:41234", "unix:pid=4711"
  absl::Time since = {};
  // Who made its last calls, and with which library; empty: it has made none,
  // or it is a unix socket's, whose calls are not known by their connection.
  std::string principal = {};
  std::string user_agent = {};
  uint64_t open_calls = 0;  // Streams among them.
  uint64_t calls = 0;       // That have begun.
  // Since its last call began or ended; unset: it has made none.
  std::optional<absl::Duration> idle = {};
};

// A call that took long.
struct SlowCall {
  absl::Time time = {};     // When it ended.
  std::string method = {};  // "timecache.v1.TimeCacheService/Put"
  std::string ns = {};      // Empty: it is not about one.
  absl::Duration duration = {};
  std::string code = {};    // "OK"
  uint64_t operations = 0;  // In it.
  std::string principal = {};
  std::string peer = {};
  std::string request_id = {};
};

// The calls that took long.
struct SlowCallList {
  std::vector<SlowCall> calls = {};  // The latest first, at most 256.
  // Unset: none are listed, the server's log.slow_call is off.
  std::optional<absl::Duration> threshold = {};
};

// Which operations Client::TailCalls shows, of the client's namespace.
struct TailOptions {
  std::string key_prefix = {};
  uint32_t max_per_second = 0;  // At most 1,000; 0: 20.
};

// An operation on a key.
struct TailedCall {
  absl::Time time = {};        // When it was applied.
  std::string operation = {};  // "put"
  std::string key = {};
  uint64_t value_bytes = 0;  // Of the value that it brought.
  std::string code = {};     // "OK"
  std::string reason = {};   // Of its error.
  bool hit = false;          // A read found an entry, or a write changed one.
  std::string principal = {};
  std::string peer = {};
};

// Operations of the sample.
struct TailedCalls {
  std::vector<TailedCall> calls = {};
  // Operations that were left out since the last ones.
  uint64_t skipped = 0;
};

}  // namespace timecache

#endif  // TIMECACHE_OPERATOR_TYPES_H_
