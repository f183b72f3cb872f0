#include "server/base/wire_reader.h"

namespace timecache::server {

LongVarint ReadLongVarint(const char* at, const char* end, int max_bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 7 * max_bytes && at != end; shift += 7) {
    const auto byte = static_cast<uint8_t>(*at++);
    // The tenth byte has room for one bit.
    if (shift == 63 && byte > 1) break;
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return {value, at};
  }
  return {0, nullptr};
}

}  // namespace timecache::server
