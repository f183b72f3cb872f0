// Times in protobuf's wire format: google.protobuf.Timestamp and Duration.

#ifndef TIMECACHED_SERVER_BASE_WIRE_TIME_H_
#define TIMECACHED_SERVER_BASE_WIRE_TIME_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "server/base/clock.h"
#include "server/base/wire_writer.h"

namespace timecache::server {

// A time as a google.protobuf.Timestamp.
struct TimeParts {
  int64_t seconds;
  int32_t nanos;
};
inline TimeParts PartsOfTime(int64_t time_us) {
  int64_t seconds = time_us / kMicrosPerSecond;
  int64_t micros = time_us % kMicrosPerSecond;
  if (micros < 0) {
    --seconds;
    micros += kMicrosPerSecond;
  }
  return {seconds, static_cast<int32_t>(micros) * 1'000};
}

namespace wire {

inline constexpr uint8_t kSecondsTag = WireTag(1, kVarint);
inline constexpr uint8_t kNanosTag = WireTag(2, kVarint);

inline char* WriteSeconds(int64_t seconds, char* at) {
  const auto value = static_cast<uint64_t>(seconds);
  const uint64_t last = value >> 28;
  if (last == 0 || last >= 0x80) return WriteNumber(kSecondsTag, value, at);
  // Five bytes, from 1978 to 3058: four groups, and what is left in the last.
  auto groups = static_cast<uint32_t>(Spread(value & 0x0fffffff)) | 0x80808080;
  at = WriteByte(static_cast<uint8_t>(last), at) - sizeof groups;
  std::memcpy(at, &groups, sizeof groups);
  return WriteByte(kSecondsTag, at);
}

inline Varint NanosOf(TimeParts time) {
  return Varint(static_cast<uint32_t>(time.nanos));
}

// A Timestamp or a positive Duration, its nanos given as a varint, too. There
// even if it is 0. At most kMaxTimeBytes.
inline char* WriteTime(uint8_t tag, TimeParts time, Varint nanos, char* at) {
  const char* const end = at;
  if (time.nanos != 0) at = WriteByte(kNanosTag, WriteVarint(nanos, at));
  at = WriteSeconds(time.seconds, at);
  const auto length = static_cast<uint8_t>(end - at);
  return WriteByte(tag, WriteByte(length, at));
}
inline char* WriteTime(uint8_t tag, int64_t time_us, char* at) {
  const TimeParts time = PartsOfTime(time_us);
  return WriteTime(tag, time, NanosOf(time), at);
}
// Tag, length; tag and seconds; tag and nanos, which are less than 2^35.
inline constexpr size_t kMaxTimeBytes = 2 + (1 + kMaxVarintBytes) + (1 + 5);

// What WriteTime wrote, without its tag and length.
inline int64_t ReadTimeUs(absl::string_view time) {
  int64_t time_us = 0;
  const char* at = time.data();
  while (at != time.data() + time.size()) {
    const auto tag = static_cast<uint8_t>(*at++);
    uint64_t value;
    at = GetVarint(at, &value);
    time_us += tag == kSecondsTag
                   ? static_cast<int64_t>(value) * kMicrosPerSecond
                   : static_cast<int64_t>(value) / 1'000;
  }
  return time_us;
}

}  // namespace wire
}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_WIRE_TIME_H_
