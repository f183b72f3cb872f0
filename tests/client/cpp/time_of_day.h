// The machine's time of day, as somebody sets it.
#pragma once

#include "absl/time/time.h"

namespace timecache {

// While it lives, the time of day is so much later in this process than in the
// kernel, which ends the waits that go by it. The monotonic clock is as it was.
class TimeOfDayStep {
 public:
  explicit TimeOfDayStep(absl::Duration by);
  ~TimeOfDayStep();
  TimeOfDayStep(const TimeOfDayStep&) = delete;
  TimeOfDayStep& operator=(const TimeOfDayStep&) = delete;
};

}  // namespace timecache
