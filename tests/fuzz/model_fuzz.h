// Model worlds that a fuzzer drives.

#ifndef TIMECACHED_TESTS_FUZZ_MODEL_FUZZ_H_
#define TIMECACHED_TESTS_FUZZ_MODEL_FUZZ_H_

#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>

#include "gtest/gtest.h"
#include "tests/support/engine/dice.h"

namespace timecache::fuzz {

// However long an input is, its run ends.
inline constexpr int kMaxSteps = 2'000;

// Ends the process as the fuzzer wants it, which then keeps the input: the
// break that GoogleTest knows is a trap, and the input was gone.
class AbortOnFailure final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed()) std::abort();
  }
};

// A failed expectation is a finding, outside of any test, too.
inline void FailuresAreFindings() {
  [[maybe_unused]] static const bool once = [] {
    // Which owns it.
    testing::UnitTest::GetInstance()->listeners().Append(new AbortOnFailure);
    return true;
  }();
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
