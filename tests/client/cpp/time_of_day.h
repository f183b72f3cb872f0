// The machine's time of day, as somebody sets it.

#ifndef TIMECACHED_TESTS_CLIENT_CPP_TIME_OF_DAY_H_
#define TIMECACHED_TESTS_CLIENT_CPP_TIME_OF_DAY_H_

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

#endif  // TIMECACHED_TESTS_CLIENT_CPP_TIME_OF_DAY_H_
