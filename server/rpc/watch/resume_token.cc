#include "server/rpc/watch/resume_token.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "server/base/error.h"
#include "server/engine/store/namespace_options.h"

namespace timecache::server {
namespace {

// Of one partition, and of several.
constexpr char kPlainVersion = 1;
constexpr char kPartitionsVersion = 2;
constexpr size_t kNumberBytes = 8;
constexpr size_t kPointBytes = 3 * kNumberBytes;

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

void PutPoint(const LogPoint& point, std::string* to) {
  PutNumber(point.log_id, to);
  PutNumber(point.next_event, to);
  PutNumber(static_cast<uint64_t>(point.watermark_us), to);
}

LogPoint GetPoint(absl::string_view* from) {
  LogPoint point;
  point.log_id = GetNumber(from);
  point.next_event = GetNumber(from);
  point.watermark_us = static_cast<int64_t>(GetNumber(from));
  return point;
}

std::string WithNameAndChecksum(std::string token, absl::string_view map) {
  token.append(map.data(), map.size());
  PutNumber(Checksum(token), &token);
  return token;
}

// How many points follow the version, which is taken away; 0: it is none.
size_t TakeVersion(absl::string_view* token) {
  if (token->empty()) return 0;
  const char version = token->front();
  token->remove_prefix(1);
  if (version == kPlainVersion) return 1;
  if (version != kPartitionsVersion || token->empty()) return 0;
  const auto points = static_cast<uint8_t>(token->front());
  token->remove_prefix(1);
  return points < 2 || points > kMaxPartitions ? 0 : points;
}

}  // namespace

std::string EncodeResumeToken(absl::string_view map, const LogPoint& point) {
  std::string token(1, kPlainVersion);
  PutPoint(point, &token);
  return WithNameAndChecksum(std::move(token), map);
}

std::string EncodeResumeToken(absl::string_view map,
                              absl::Span<const LogPoint> points) {
  std::string token(1, kPartitionsVersion);
  token.reserve(2 + points.size() * kPointBytes + map.size() + kNumberBytes);
  token.push_back(static_cast<char>(points.size()));
  for (const LogPoint& point : points) PutPoint(point, &token);
  return WithNameAndChecksum(std::move(token), map);
}

absl::StatusOr<ResumePoint> DecodeResumeToken(absl::string_view token) {
  const absl::Status malformed = InvalidField(
      "resume_tokens",
      "has one that is damaged or not of this service: send the bytes of "
      "the message's resume_token unchanged");
  if (token.size() <= kNumberBytes) return malformed;
  absl::string_view sum = token.substr(token.size() - kNumberBytes);
  token.remove_suffix(kNumberBytes);
  if (GetNumber(&sum) != Checksum(token)) return malformed;
  const size_t points = TakeVersion(&token);
  if (points == 0 || token.size() <= points * kPointBytes) return malformed;
  ResumePoint point;
  for (size_t i = 0; i < points; ++i) point.points.push_back(GetPoint(&token));
  point.map = std::string(token);
  if (!ValidateNamespaceName(point.map).ok()) return malformed;
  return point;
}

}  // namespace timecache::server
