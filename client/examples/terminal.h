// What sessionize and session_check show.

#ifndef TIMECACHED_CLIENT_EXAMPLES_TERMINAL_H_
#define TIMECACHED_CLIENT_EXAMPLES_TERMINAL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace timecache::sessionize {

// "1234567" -> "1,234,567".
std::string CountText(uint64_t count);

// Per second, rounded.
uint64_t RatePerSecond(uint64_t count, absl::Duration elapsed);

// Safe to show, on one line: control characters become \xNN.
std::string Escape(std::string_view text);

// Writes to standard output, buffered. False, and errno, if it cannot be
// written.
bool WriteLine(std::string_view line);
bool Flush();

// How far the log has been read, drawn over and over on standard error if that
// is a terminal. Not thread-safe.
class ProgressLine {
 public:
  // `bytes_all`: the length of the log; 0: not known.
  explicit ProgressLine(uint64_t bytes_all);
  ~ProgressLine() { Wipe(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Cheap: may be called for each line of the log.
  void Update(uint64_t lines, uint64_t bytes_read, absl::Duration elapsed);
  // Makes way for another line.
  void Wipe();

 private:
  const uint64_t bytes_all_;
  const bool shown_;
  bool drawn_ = false;
  absl::Duration draw_next_at_ = absl::ZeroDuration();
};

}  // namespace timecache::sessionize

#endif  // TIMECACHED_CLIENT_EXAMPLES_TERMINAL_H_
