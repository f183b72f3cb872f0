// Numbers and bytes in values that recipes append to. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RECIPES_RECORD_BYTES_H_
#define TIMECACHED_CLIENT_CPP_SRC_RECIPES_RECORD_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace timecache {

// Little-endian, of a fixed size.
template <typename Number>
void AppendNumber(Number number, std::string* to) {
  for (size_t i = 0; i < sizeof(Number); ++i) {
    to->push_back(static_cast<char>(static_cast<uint64_t>(number) >> (8 * i)));
  }
}

// Each returns false, and changes nothing, where less is left.
template <typename Number>
bool TakeNumber(std::string_view* from, Number* number) {
  if (from->size() < sizeof(Number)) return false;
  uint64_t bits = 0;
  for (size_t i = 0; i < sizeof(Number); ++i) {
    bits |= uint64_t{static_cast<unsigned char>((*from)[i])} << (8 * i);
  }
  *number = static_cast<Number>(bits);
  from->remove_prefix(sizeof(Number));
  return true;
}

inline bool TakeBytes(std::string_view* from, size_t count,
                      std::string_view* bytes) {
  if (from->size() < count) return false;
  *bytes = from->substr(0, count);
  from->remove_prefix(count);
  return true;
}

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RECIPES_RECORD_BYTES_H_
