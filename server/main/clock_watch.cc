#include "server/main/clock_watch.h"

#include <cstdlib>
#include <utility>

namespace timecache::server {

ClockWatch::ClockWatch(const SystemClock* clock, LocalJournal* journal,
                       Write write)
    : clock_(clock), journal_(journal), write_(std::move(write)) {}

void ClockWatch::Look() {
  const int64_t offset_us = *clock_->OffsetUs();
  if (journal_ != nullptr) Note(offset_us);
  const int64_t stalled_us = clock_->stalled_us();
  if (const int64_t more_us =
          stalled_us - std::exchange(stalled_us_, stalled_us);
      more_us > 0) {
    write_(LogLevel::kWarning, "server_stalled",
           {{"not_counted_ms", more_us / 1000},
            {"message",
             "the process stood still: its clock did not go on for that long, "
             "and catches up slowly. Look for a paused machine, or one without "
             "processor time or memory"}});
  }
  const int64_t distance_us = std::abs(offset_us);
  if (!off_ && distance_us >= kOffUs) {
    off_ = true;
    write_(LogLevel::kWarning, "clock_off",
           {{"offset_ms", offset_us / 1000},
            {"message",
             "the machine's clock is so far ahead of the server's (negative: "
             "behind it), which follows it by at most 36 s an hour. Check that "
             "the machine's is right"}});
  } else if (off_ && distance_us < kRightUs) {
    off_ = false;
    write_(LogLevel::kInfo, "clock_right", {{"offset_ms", offset_us / 1000}});
  }
}

void ClockWatch::Note(int64_t offset_us) {
  const int64_t noted_us = journal_->clock_behind_us();
  const int64_t behind_us = offset_us < kMinNoteUs ? 0 : offset_us;
  if (behind_us <= noted_us && noted_us <= behind_us + kNoteMarginUs &&
      (behind_us > 0) == (noted_us > 0)) {
    return;
  }
  // Without room on the disk it is tried again.
  journal_->NoteClockBehind(behind_us == 0 ? 0 : behind_us + kNoteMarginUs / 2)
      .IgnoreError();
}

}  // namespace timecache::server
