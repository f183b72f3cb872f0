// What Client::Gather collects under a key.

#ifndef TIMECACHE_GATHERED_PARTS_H_
#define TIMECACHE_GATHERED_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace timecache {

struct GatheredPart {
  std::string name;  // 1 to 256 B.
  std::string value;
};

// The parts collected so far, and the expected ones: a number, or names.
struct GatheredParts {
  std::vector<GatheredPart> parts = {};  // In the order of arrival.
  uint32_t expected_parts = 0;
  std::vector<std::string> expected_names = {};  // In bytewise order.
};

}  // namespace timecache

#endif  // TIMECACHE_GATHERED_PARTS_H_
