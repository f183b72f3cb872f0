// How far apart two words are, for "did you mean".

#ifndef TIMECACHED_SERVER_BASE_EDIT_DISTANCE_H_
#define TIMECACHED_SERVER_BASE_EDIT_DISTANCE_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace timecache {

// The number of edits that turn `a` into `b`: a letter inserted, removed or
// replaced, or two neighbours swapped. Takes the product of their lengths.
inline size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + !same});
      const bool swapped =
          i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) now[j] = std::min(now[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

}  // namespace timecache

#endif  // TIMECACHED_SERVER_BASE_EDIT_DISTANCE_H_
