#include "server/base/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace timecache::server {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    }
    table[i] = crc;
  }
  return table;
}

uint32_t ByTable(uint32_t crc, absl::string_view data) {
  static constexpr std::array<uint32_t, 256> kTable = MakeTable();
  for (const char c : data) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ByInstruction(
    uint32_t crc, absl::string_view data) {
  uint64_t wide = crc;
  size_t i = 0;
  for (; i + sizeof(wide) <= data.size(); i += sizeof(wide)) {
    uint64_t word;
    std::memcpy(&word, data.data() + i, sizeof(word));
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; i < data.size(); ++i) {
    crc = _mm_crc32_u8(crc, static_cast<uint8_t>(data[i]));
  }
  return crc;
}
#endif

}  // namespace

uint32_t Crc32c(uint32_t crc, absl::string_view data) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ~ByInstruction(~crc, data);
#endif
  return ~ByTable(~crc, data);
}

}  // namespace timecache::server
