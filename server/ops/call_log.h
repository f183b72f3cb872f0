// The log lines about calls: slow ones, failed ones, denied ones.

#ifndef TIMECACHED_SERVER_OPS_CALL_LOG_H_
#define TIMECACHED_SERVER_OPS_CALL_LOG_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/api/call_observer.h"
#include "server/base/clock.h"
#include "server/ops/folded_lines.h"
#include "server/ops/log.h"
#include "server/ops/slow_calls.h"

namespace timecache::server {

// Limits the lines in each second of the clock. Thread-safe.
class LineBudget {
 public:
  explicit LineBudget(uint64_t lines_per_second_max)
      : lines_max_(lines_per_second_max) {}

  // Whether a line is left; `*suppressed` is then the number of lines refused
  // since the last one.
  bool Take(int64_t now_us, uint64_t* suppressed) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const uint64_t lines_max_;
  absl::Mutex mu_;
  int64_t second_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t lines_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t suppressed_ ABSL_GUARDED_BY(mu_) = 0;
};

// Writes
//
//   slow_call     a unary call that took as long as slow_call_us, or longer
//   call_failed   one that ended with INTERNAL or DATA_LOSS: the server's fault
//   access_denied a permission that the caller lacked
//   limit_refused what a limit refused, by its reason: calls, and operations of
//                 batches that as a whole succeed
//   events_lost   that a watch has lost: it reads too slowly, or
//                 came back too late
//
// with method, namespace, principal, peer, request id and, if there is one,
// traceparent. Of each of the first three at most kMaxLinesPerSecond; the next
// line says how many were suppressed, so that denied callers cannot fill a
// disk. Of the others one line for each reason and namespace at once, with the
// caller, and while it continues one each FoldedLines::kIntervalUs with the
// `count` of those in between, from any caller.
//
// Thread-safe. Costs three comparisons for a call without a line.
class CallLog final : public CallObserver {
 public:
  static constexpr uint64_t kMaxLinesPerSecond = 100;

  using Write = std::function<void(LogLevel, std::string_view, LogFields)>;

  // `slow_call_us` 0: none is slow. `clock` is not owned.
  CallLog(int64_t slow_call_us, const Clock* clock, Write write = Log);

  void SetSlowCall(int64_t slow_call_us) {
    slow_call_us_.store(slow_call_us, std::memory_order_relaxed);
  }

  int64_t slow_call_us() const {
    return slow_call_us_.load(std::memory_order_relaxed);
  }
  // Those of slow_call, without the limit of lines.
  const SlowCalls& slow_calls() const { return slow_calls_; }

  void OnStarted(const Method& /*method*/) override {}
  void OnHandled(const CallRecord& record) override;
  // One line for all.
  void OnCalls(const CallRecord& record, uint64_t /*calls*/) override {
    OnHandled(record);
  }
  void OnDenied(const CallDenial& denial) override;
  void OnRefused(const CallRefusal& refusal) override;
  void OnLost(const CallLoss& loss) override;
  void OnReceived(const Method& /*method*/) override {}
  void OnSent(const Method& /*method*/) override {}

  // Writes the due lines with counts. Call it about once a second.
  void WriteDue() { WriteFolded(clock_->NowUs()); }
  // Writes all of them: at the end.
  void Finish() { WriteFolded(kNeverUs); }

 private:
  void WriteFolded(int64_t now_us);
  void WriteCall(LogLevel level, std::string_view event, LineBudget* budget,
                 const CallRecord& record);

  std::atomic<int64_t> slow_call_us_;
  const Clock* const clock_;
  const Write write_;
  SlowCalls slow_calls_;
  LineBudget slow_{kMaxLinesPerSecond};
  LineBudget failed_{kMaxLinesPerSecond};
  LineBudget denied_{kMaxLinesPerSecond};
  FoldedLines folded_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_CALL_LOG_H_
