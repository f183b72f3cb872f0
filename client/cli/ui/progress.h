// The progress of a long command, for a user at a terminal.

#ifndef TIMECACHED_CLIENT_CLI_UI_PROGRESS_H_
#define TIMECACHED_CLIENT_CLI_UI_PROGRESS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace timecache::cli {

struct Progress {
  uint64_t done = 0;        // Entries, or whatever the unit says.
  uint64_t bytes_read = 0;  // Of the input.
  uint64_t bytes_all = 0;   // 0: unknown, as of a pipe.
  absl::Duration elapsed = {};
  std::string unit = "entries";
  bool is_size = false;  // `done` is of bytes: it is shown as "1.5 MiB".
};

// "1234567" -> "1,234,567".
std::string CountText(uint64_t count);
// The same of a rate; a small one has a decimal place.
std::string RateText(double per_second);

// Entries per second, rounded.
uint64_t RatePerSecond(uint64_t done, absl::Duration elapsed);

// One line, with a bar where the end is known:
// "[=====>    ]  55%  1,234 entries  5,678/s".
std::string RenderProgress(const Progress& progress);

// Draws that line over and over on standard error, if it is a terminal; else
// nothing. Not thread-safe.
class ProgressBar {
 public:
  ProgressBar();
  // Wipes the line.
  ~ProgressBar();

  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Whether there is a terminal to draw on.
  bool shown() const { return shown_; }
  // Draws, if the last drawing is some time ago. Cheap: may be called often.
  void Update(const Progress& progress);
  // Makes way for another line on standard error.
  void Wipe();

 private:
  const bool shown_;
  bool drawn_ = false;
  absl::Time draw_next_at_ = absl::InfinitePast();
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_PROGRESS_H_
