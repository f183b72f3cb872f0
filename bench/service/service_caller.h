// What keeps calls in flight for one round of a load.

#ifndef TIMECACHED_BENCH_SERVICE_SERVICE_CALLER_H_
#define TIMECACHED_BENCH_SERVICE_SERVICE_CALLER_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <string>
#include <vector>

namespace timecache::bench {

// A benchmark of calls that fail measures nothing: ends the program.
[[noreturn]] void Fail(const std::string& what);

// What the callers of a round have in common. It outlives them.
struct Turn {
  const std::vector<std::string>& keys;
  const int callers;
  std::atomic<bool> stopped{false};
  std::latch ended{callers};
};

// One that calls until the turn is stopped, and then counts `ended` down: after
// that it does nothing any more. Its creator calls Start and the destructor; in
// between gRPC's threads call it.
class Caller {
 public:
  Caller(Turn* turn, uint64_t seed) : turn_(turn), random_(seed * 2 + 1) {}
  virtual ~Caller() = default;
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  virtual void Start() = 0;

  // Of each answer; once it has ended.
  const std::vector<float>& latencies_us() const { return latencies_us_; }

 protected:
  using Clock = std::chrono::steady_clock;

  const std::string& NextKey() {
    // Knuth's MMIX generator: the high digits are the random ones.
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return turn_->keys[(random_ >> 33) % turn_->keys.size()];
  }

  bool stopped() const {
    return turn_->stopped.load(std::memory_order_relaxed);
  }
  // The last thing that a caller does.
  void End() { turn_->ended.count_down(); }

  void AddLatency(Clock::time_point began) {
    latencies_us_.push_back(
        std::chrono::duration<float, std::micro>(Clock::now() - began).count());
  }

 private:
  Turn* const turn_;
  uint64_t random_;
  std::vector<float> latencies_us_;
};

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_SERVICE_SERVICE_CALLER_H_
