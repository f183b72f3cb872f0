// Model worlds that a fuzzer drives.

#ifndef TIMECACHED_TESTS_FUZZ_MODEL_FUZZ_H_
#define TIMECACHED_TESTS_FUZZ_MODEL_FUZZ_H_

#include <fuzzer/FuzzedDataProvider.h>

#include "gtest/gtest.h"
#include "tests/support/engine/dice.h"

namespace timecache::fuzz {

// However long an input is, its run ends.
inline constexpr int kMaxSteps = 2'000;

// A failed expectation ends the process, outside of any test, too.
inline void FailuresAreFindings() {
  testing::FLAGS_gtest_break_on_failure = true;
}

// Dice that fall as the bytes say, and by chance, always the same, once there
// are none left: a world that is being ended may cast until all has come.
// `input` must outlive them.
inline Dice DiceOf(FuzzedDataProvider* input) {
  return Dice([input, chance = Dice(0)](int64_t least, int64_t most) mutable {
    return input->remaining_bytes() > 0
               ? input->ConsumeIntegralInRange<int64_t>(least, most)
               : chance.Draw(least, most);
  });
}

}  // namespace timecache::fuzz

#endif  // TIMECACHED_TESTS_FUZZ_MODEL_FUZZ_H_
