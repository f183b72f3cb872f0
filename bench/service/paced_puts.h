// Puts at a steady pace, whether or not the server keeps up.

#ifndef TIMECACHED_BENCH_SERVICE_PACED_PUTS_H_
#define TIMECACHED_BENCH_SERVICE_PACED_PUTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "timecache/v1/data.grpc.pb.h"

namespace timecache::bench {

// Puts new keys with the namespace's time to live: single ones, whose latency
// is taken, and batches beside them that make up the numbers. One that fails
// ends the program. Used by one thread; has a thread of its own that starts the
// calls, and waits for none of them.
class PacedPuts {
 public:
  // Batches are sent so often; calls in flight are at most so many.
  static constexpr int kBatchesPerSecond = 100;
  static constexpr int kMaxInFlight = 100'000;

  struct Plan {
    std::string map;
    // Puts a second; batched ones may be 0.
    int rate = 1;
    int batched_rate = 0;
    absl::Time give_up;
  };

  // Begins.
  PacedPuts(const std::shared_ptr<grpc::Channel>& channel, const Plan& plan);
  ~PacedPuts();
  PacedPuts(const PacedPuts&) = delete;
  PacedPuts& operator=(const PacedPuts&) = delete;

  // Of the single puts that were answered since the last call: from when each
  // should have been sent.
  std::vector<double> TakeLatenciesUs();

  // Ends, and waits for all answers. Returns the entries that were put.
  uint64_t Stop();

 private:
  void Run();
  void PutOne(absl::Time due);
  void PutBatch();
  void Begin();
  void End();

  const Plan plan_;
  const std::unique_ptr<v1::TimeCacheService::Stub> stub_;
  std::atomic<bool> stopping_{false};
  // Of the thread, until it has ended.
  uint64_t puts_ = 0;

  absl::Mutex mutex_;
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<double> latencies_us_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_SERVICE_PACED_PUTS_H_
