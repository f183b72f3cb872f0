// How much a randomized test does, by what it costs in this build.

#ifndef TIMECACHED_TESTS_SUPPORT_EFFORT_H_
#define TIMECACHED_TESTS_SUPPORT_EFFORT_H_

#include <algorithm>

#include "absl/base/config.h"

namespace timecache::test {

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// As many rounds, seeds or steps as said; a quarter of them under a sanitizer,
// where each takes many times as long. Release runs all.
template <typename Count>
constexpr Count Rounds(Count all) {
  return kSanitized ? std::max<Count>(1, all / 4) : all;
}

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_EFFORT_H_
