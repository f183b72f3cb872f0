#include "server/engine/store/traceparent.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "server/base/check.h"

namespace timecache::server {
namespace {

constexpr size_t kTraceAt = 3;
constexpr size_t kSpanAt = 36;
constexpr size_t kTraceFlagsAt = 53;

// Of what stands before a trace's three numbers, and between them.
constexpr absl::string_view kTraceShape =
    "00-________________________________-________________-__";
static_assert(kTraceShape.size() == kTraceTextBytes);

bool IsLowerHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

int HexValue(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

bool IsAllZero(absl::string_view digits) {
  return std::all_of(digits.begin(), digits.end(),
                     [](char c) { return c == '0'; });
}

}  // namespace

bool IsTraceparent(absl::string_view text) {
  if (text.size() != kTraceTextBytes) return false;
  for (size_t i = 0; i < kTraceTextBytes; ++i) {
    const char shape = kTraceShape[i];
    if (shape == '_' ? !IsLowerHex(text[i]) : text[i] != shape) return false;
  }
  return !IsAllZero(text.substr(kTraceAt, kSpanAt - 1 - kTraceAt)) &&
         !IsAllZero(text.substr(kSpanAt, kTraceFlagsAt - 1 - kSpanAt));
}

void PackTrace(absl::string_view trace, char* to) {
  if (trace.size() == kTraceBytes) {
    std::memmove(to, trace.data(), kTraceBytes);
    return;
  }
  TIMECACHED_CHECK(trace.size() == kTraceTextBytes);
  for (size_t i = 0; i < kTraceTextBytes; ++i) {
    if (kTraceShape[i] != '_') continue;
    *to++ = static_cast<char>(HexValue(trace[i]) << 4 | HexValue(trace[i + 1]));
    ++i;
  }
}

void FormatTrace(absl::string_view trace, char* to) {
  if (trace.size() == kTraceTextBytes) {
    std::memmove(to, trace.data(), kTraceTextBytes);
    return;
  }
  TIMECACHED_CHECK(trace.size() == kTraceBytes);
  const char* from = trace.data();
  for (size_t i = 0; i < kTraceTextBytes; ++i) {
    to[i] = kTraceShape[i];
    if (kTraceShape[i] != '_') continue;
    const auto byte = static_cast<uint8_t>(*from++);
    to[i] = "0123456789abcdef"[byte >> 4];
    to[++i] = "0123456789abcdef"[byte & 15];
  }
}

}  // namespace timecache::server
