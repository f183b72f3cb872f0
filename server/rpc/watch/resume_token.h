// The opaque tokens with which a watch resumes at the position of another one.

#ifndef TIMECACHED_SERVER_RPC_WATCH_RESUME_TOKEN_H_
#define TIMECACHED_SERVER_RPC_WATCH_RESUME_TOKEN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/store/expiry_types.h"

namespace timecache::server {

// A position in the log of one namespace: in that of each of its partitions.
struct ResumePoint {
  std::string map;
  std::vector<LogPoint> points;
};

// The most bytes of one of one partition.
inline constexpr size_t kMaxPlainTokenBytes = 128;

// 33 bytes and the name: a version, the point, the name, a checksum.
std::string EncodeResumeToken(absl::string_view map, const LogPoint& point);
// Of several partitions, another version: 10 bytes, 24 for each of them, and the
// name.
std::string EncodeResumeToken(absl::string_view map,
                              absl::Span<const LogPoint> points);

// INVALID_ARGUMENT about resume_tokens for bytes that no server has issued.
absl::StatusOr<ResumePoint> DecodeResumeToken(absl::string_view token);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_RESUME_TOKEN_H_
