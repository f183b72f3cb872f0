// Bounds the encoded responses that clients have not read.

#ifndef TIMECACHED_SERVER_EDGE_RESPONSE_RESPONSE_LEDGER_H_
#define TIMECACHED_SERVER_EDGE_RESPONSE_RESPONSE_LEDGER_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/edge/response/response_account.h"
#include "server/edge/response/response_pool.h"

namespace timecache::server {

// gRPC holds a response until its client has read it, without a bound. This
// counts these bytes: a ResponseAccount for each connection.
//
// Room is shared by dynamic thresholds, as in the buffers of a switch: a
// connection gets room for another response while it holds less than the total
// free room. A single connection gets half of the bound; n connections that do
// not read leave an (n + 1)th part of it free, for those that hold nothing.
// Calls that do not wait for room may exceed the bound: up to twice the bound,
// a connection that holds next to nothing still has room. A call without room
// waits for it, in order of arrival on its connection, at most for `timeout`.
//
// A connection that has not read a response within `timeout`, plus a second for
// each kMinBytesPerSecond that it holds, is closed. Beyond the bound, or beyond
// half of it while calls wait, connections that have not read one for kMinStall
// are closed, first those that have held most for longest; beyond twice the
// bound after kBusyInterval. A waiting call holds no room, but memory,
// including its request's: if that exceeds the bound, connections are closed
// after kWaitingStall.
//
// Thread-safe. A call costs a lookup in one of kShards tables, and two
// additions to its connection's account. Calls that waited run on the ledger's
// thread, without a lock.
class ResponseLedger {
 public:
  using SteadyTime = ResponseAccount::SteadyTime;
  using Milliseconds = std::chrono::milliseconds;

  static constexpr size_t kShards = 16;
  // How often accounts are checked; while calls wait; and at most.
  static constexpr Milliseconds kInterval{250};
  static constexpr Milliseconds kBusyInterval{50};
  static constexpr Milliseconds kMinInterval{1};
  // The longest time that calls that waited run before accounts are checked
  // again.
  static constexpr Milliseconds kServeTime{20};
  // If this thread got no CPU for this long, clients do not count as not
  // reading.
  static constexpr Milliseconds kMinStall{200};
  static constexpr Milliseconds kWaitingStall{500};
  // The slowest connection that is waited for.
  static constexpr int64_t kMinBytesPerSecond = 256 << 10;

  struct Options {
    // Of all connections. 0: no bound.
    int64_t max_bytes = 0;
    Milliseconds timeout{30'000};
    // gRPC 1.51 enforces its limit of concurrent calls only once the client has
    // acknowledged it. A connection with twice as many is ended as it begins
    // the next one. 0: no limit.
    int max_calls_per_connection = 0;
    // Closes a peer's connection. Called by Look.
    std::function<void(const std::string& peer)> end_connection = nullptr;
    // Where the calls of a peer's connection count; null if it is not known.
    std::function<std::shared_ptr<ConnectionUse>(const std::string& peer)>
        use_of = nullptr;
  };

  struct Statistics {
    int64_t bytes = 0;
    // Options::max_bytes.
    int64_t max = 0;
    // Waiting calls; those that waited and got room, and those that did not.
    int64_t waiting = 0;
    uint64_t waited = 0;
    uint64_t refused = 0;
    uint64_t ended_connections = 0;
  };

  explicit ResponseLedger(Options options);
  ~ResponseLedger();
  ResponseLedger(const ResponseLedger&) = delete;
  ResponseLedger& operator=(const ResponseLedger&) = delete;

  // The account of a connection, by gRPC's name of its peer. All clients of
  // unix sockets share one, which is not ended, as do all within the process.
  ResponseAccountRef Find(absl::string_view peer);

  // Starts and ends the thread that calls Look. From Stop on, calls that wait,
  // or would, fail with UNAVAILABLE (DRAINING).
  void Start();
  void Stop();

  // Resumes waiting calls, and ends connections. By one thread.
  void Look(SteadyTime now);

  Statistics GetStatistics() const;

 private:
  struct Entry {
    ResponseAccountRef account;
    // When a Look last saw that a call was done, or that none was answered and
    // none waited.
    SteadyTime call_done_at = {};
    uint64_t calls_done = 0;
    bool looked_at = false;
  };
  // The state of an account at a Look.
  struct Seen {
    ResponseAccountRef account;
    // The bytes that count for room, and those that its waiting calls hold in
    // addition.
    int64_t bytes;
    int64_t waiting_bytes;
    // For how long no answered or waiting call was done.
    SteadyTime::duration calls_stalled;
    // That, or the age of the oldest response.
    SteadyTime::duration stalled;
    // Of the first call that waits.
    SteadyTime waiting_since;
  };
  struct Shard {
    absl::Mutex mu;
    absl::flat_hash_map<std::string, Entry> accounts ABSL_GUARDED_BY(mu);
  };

  void Run();
  std::vector<Seen> LookAtAccounts(SteadyTime now);
  void ServeWaiting(const std::vector<Seen>& accounts, SteadyTime now);
  void EndStalled(const std::vector<Seen>& accounts, SteadyTime now);
  void EndForRoom(std::vector<Seen> accounts, SteadyTime now);
  void End(ResponseAccount* account);

  const Options options_;
  const std::shared_ptr<ResponsePool> pool_;
  std::array<Shard, kShards> shards_;
  std::atomic<uint64_t> waited_{0};
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> ended_{0};
  std::thread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_RESPONSE_RESPONSE_LEDGER_H_
