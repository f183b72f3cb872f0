// Counts the calls, under the names that gRPC's interceptors for Prometheus
// have in common (go-grpc-middleware): dashboards for those show these, too.

#ifndef TIMECACHED_SERVER_OPS_RPC_METRICS_H_
#define TIMECACHED_SERVER_OPS_RPC_METRICS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/collectable.h"
#include "server/api/call_observer.h"
#include "server/api/method.h"

namespace timecache::server {

// All label sets are created at the start: methods times codes. Clients cannot
// create more.
//
// Thread-safe. A unary call, and all plain calls of a kind in one request of a
// stream, cost four atomic additions, about 20 ns, in one of
// kStripes copies of the counters: threads seldom write to the same cache line.
// A denied one costs a lock and a look-up.
class RpcMetrics final : public CallObserver, public prometheus::Collectable {
 public:
  RpcMetrics();

  void OnStarted(const Method& method) override {
    Add(&CountersOf(method).started);
  }
  void OnHandled(const CallRecord& record) override { Count(record, 1); }
  void OnCalls(const CallRecord& record, uint64_t calls) override {
    Add(&CountersOf(record.method).started, calls);
    Count(record, calls);
  }
  void OnDenied(const CallDenial& denial) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnReceived(const Method& method) override {
    Add(&CountersOf(method).received);
  }
  void OnSent(const Method& method) override { Add(&CountersOf(method).sent); }

  std::vector<prometheus::MetricFamily> Collect() const override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  static constexpr size_t kStripes = 8;
  // OK to UNAUTHENTICATED.
  static constexpr size_t kCodes = 17;
  // Durations of at most 2^i microseconds, i up to 24 (16.8 s), and longer
  // ones.
  static constexpr size_t kBuckets = 26;
  // Beyond it, "OTHER".
  static constexpr size_t kMaxDenialReasons = 16;

  using Counter = std::atomic<uint64_t>;
  // Of a method, as one stripe counts it.
  struct alignas(64) Counters {
    Counter started{0};
    Counter took_us{0};
    std::array<Counter, kCodes> handled = {};
    std::array<Counter, kBuckets> took = {};
    // Messages of streams.
    Counter received{0};
    Counter sent{0};
  };
  // The same, added up.
  struct Sums {
    uint64_t started = 0;
    uint64_t took_us = 0;
    std::array<uint64_t, kCodes> handled = {};
    std::array<uint64_t, kBuckets> took = {};
    uint64_t received = 0;
    uint64_t sent = 0;
  };
  using Stripe = std::array<Counters, kMethods.size()>;

  static void Add(Counter* counter, uint64_t more = 1) {
    counter->fetch_add(more, std::memory_order_relaxed);
  }
  Counters& CountersOf(const Method& method);
  void Count(const CallRecord& record, uint64_t calls);
  Sums SumsOf(const Method& method) const;

  const std::unique_ptr<std::array<Stripe, kStripes>> stripes_;

  mutable absl::Mutex mu_;
  // By reason.
  absl::btree_map<std::string, uint64_t> denied_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_RPC_METRICS_H_
