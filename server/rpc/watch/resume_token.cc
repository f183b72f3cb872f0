#include "server/rpc/watch/resume_token.h"

#include <cstdint>

#include "server/base/error.h"
#include "server/engine/store/namespace_options.h"

namespace timecache::server {
namespace {

constexpr char kTokenVersion = 1;
constexpr size_t kNumberBytes = 8;
// Version, three numbers and the checksum.
constexpr size_t kFixedBytes = 1 + 4 * kNumberBytes;

// FNV-1a: detects accidents, not attacks; a forged token gains nothing.
uint64_t Checksum(absl::string_view bytes) {
  uint64_t sum = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    sum = (sum ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  }
  return sum;
}

void PutNumber(uint64_t number, std::string* to) {
  for (size_t i = 0; i < kNumberBytes; ++i) {
    to->push_back(static_cast<char>(number >> (8 * i)));
  }
}

uint64_t GetNumber(absl::string_view* from) {
  uint64_t number = 0;
  for (size_t i = 0; i < kNumberBytes; ++i) {
    number |= uint64_t{static_cast<uint8_t>((*from)[i])} << (8 * i);
  }
  from->remove_prefix(kNumberBytes);
  return number;
}

}  // namespace

std::string EncodeResumeToken(absl::string_view map, const LogPoint& point) {
  std::string token(1, kTokenVersion);
  token.reserve(kFixedBytes + map.size());
  PutNumber(point.log_id, &token);
  PutNumber(point.next_event, &token);
  PutNumber(static_cast<uint64_t>(point.watermark_us), &token);
  token.append(map.data(), map.size());
  PutNumber(Checksum(token), &token);
  return token;
}

absl::StatusOr<ResumePoint> DecodeResumeToken(absl::string_view token) {
  const absl::Status malformed = InvalidField(
      "resume_tokens",
      "has one that is damaged or not of this service: send the bytes of "
      "the message's resume_token unchanged");
  if (token.size() <= kFixedBytes || token[0] != kTokenVersion) {
    return malformed;
  }
  absl::string_view sum = token.substr(token.size() - kNumberBytes);
  token.remove_suffix(kNumberBytes);
  if (GetNumber(&sum) != Checksum(token)) return malformed;
  token.remove_prefix(1);
  ResumePoint point;
  point.point.log_id = GetNumber(&token);
  point.point.next_event = GetNumber(&token);
  point.point.watermark_us = static_cast<int64_t>(GetNumber(&token));
  point.map = std::string(token);
  if (!ValidateNamespaceName(point.map).ok()) return malformed;
  return point;
}

}  // namespace timecache::server
