// For what only asking tells: that a server has noticed the end of a
// connection, or that another process has written a file.

#ifndef TIMECACHED_TESTS_SUPPORT_AWAIT_H_
#define TIMECACHED_TESTS_SUPPORT_AWAIT_H_

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace timecache::test {

inline constexpr absl::Duration kAwaitPatience = absl::Minutes(1);

// Asks until `condition` holds. Fails the test, and returns false, if that
// takes longer than `patience`.
inline bool Await(absl::FunctionRef<bool()> condition,
                  absl::Duration patience = kAwaitPatience) {
  const absl::Time give_up_at = absl::Now() + patience;
  while (!condition()) {
    if (absl::Now() >= give_up_at) {
      ADD_FAILURE() << "not within " << patience;
      return false;
    }
    // Leaves the processor to what is awaited.
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_AWAIT_H_
