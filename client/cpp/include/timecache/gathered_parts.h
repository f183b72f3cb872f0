// What Client::Gather collects under a key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace timecache {

struct GatheredPart {
  std::string name;  // 1 to 256 B.
  std::string value;
};

// The parts that have come, and what was expected: a number, or names.
struct GatheredParts {
  std::vector<GatheredPart> parts = {};  // In the order in which they came.
  uint32_t expected_parts = 0;
  std::vector<std::string> expected_names = {};  // In bytewise order.
};

}  // namespace timecache
