// Little-endian numbers in bytes.

#ifndef TIMECACHED_SERVER_BASE_CODING_H_
#define TIMECACHED_SERVER_BASE_CODING_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace timecache::server {

static_assert(std::endian::native == std::endian::little);

template <typename Number>
void PutNumber(std::string* to, Number number) {
  to->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Overwrites what is at `offset`, which must be within `to`.
template <typename Number>
void SetNumber(std::string* to, size_t offset, Number number) {
  std::memcpy(to->data() + offset, &number, sizeof(number));
}

// The number at `offset`, which must be within `from`.
template <typename Number>
Number NumberAt(absl::string_view from, size_t offset) {
  Number number;
  std::memcpy(&number, from.data() + offset, sizeof(number));
  return number;
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_CODING_H_
