// What a randomized test does, and how much of it, by what it costs in this build.

#ifndef TIMECACHED_TESTS_SUPPORT_EFFORT_H_
#define TIMECACHED_TESTS_SUPPORT_EFFORT_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/base/config.h"

namespace timecache::test {

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Of all that is random in a test: the same in each run, or TIMECACHED_SEED.
inline uint64_t Seed() {
  const char* const text = std::getenv("TIMECACHED_SEED");
  return text != nullptr ? std::stoull(text) : 20111204;
}

// As many rounds, seeds or steps as said; a quarter of them under a sanitizer,
// where each takes many times as long. Release runs all.
template <typename Count>
constexpr Count Rounds(Count all) {
  return kSanitized ? std::max<Count>(1, all / 4) : all;
}

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_EFFORT_H_
