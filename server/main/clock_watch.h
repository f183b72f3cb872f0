// What a server does about a clock that is not the machine's.

#ifndef TIMECACHED_SERVER_MAIN_CLOCK_WATCH_H_
#define TIMECACHED_SERVER_MAIN_CLOCK_WATCH_H_

#include <cstdint>
#include <functional>
#include <string_view>

#include "server/base/clock.h"
#include "server/log/local/local_journal.h"
#include "server/ops/log.h"

namespace timecache::server {

// Notes in the journal how far the clock is behind the machine's, for the next
// start; logs when it is off, and stalls. Used by one thread.
class ClockWatch {
 public:
  using Write = std::function<void(LogLevel, std::string_view, LogFields)>;

  // Offsets from which on the slew is at its limit, and at which it is far from
  // that again.
  static constexpr int64_t kOffUs =
      SystemClock::kSlewTimeUs * SystemClock::kMaxSlewPpm / kMicrosPerSecond;
  static constexpr int64_t kRightUs = kOffUs / 2;
  // What is noted is more than the offset, by this at most: a life may end late
  // by as much after a restart.
  static constexpr int64_t kNoteMarginUs = kMicrosPerSecond / 5;
  // A smaller offset is none.
  static constexpr int64_t kMinNoteUs = kMicrosPerSecond / 100;

  // Neither is owned; `journal` may be null.
  ClockWatch(const SystemClock* clock, LocalJournal* journal,
             Write write = Log);

  // Call it about once a second, and when the server ends. clock_off is a
  // warning, clock_right says that it is over; server_stalled is a warning.
  void Look();

 private:
  void Note(int64_t offset_us);

  const SystemClock* const clock_;
  LocalJournal* const journal_;
  const Write write_;
  bool off_ = false;
  int64_t stalled_us_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CLOCK_WATCH_H_
