// Aborts the process if an invariant is violated: a wrong answer would be
// worse.

#ifndef TIMECACHED_SERVER_BASE_CHECK_H_
#define TIMECACHED_SERVER_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

// Checked in every build. Costs a predicted branch.
#define TIMECACHED_CHECK(condition)                                    \
  do {                                                                 \
    if (!(condition)) [[unlikely]] {                                   \
      std::fprintf(stderr, "timecached: bug at %s:%d: %s\n", __FILE__, \
                   __LINE__, #condition);                              \
      std::abort();                                                    \
    }                                                                  \
  } while (false)

#endif  // TIMECACHED_SERVER_BASE_CHECK_H_
