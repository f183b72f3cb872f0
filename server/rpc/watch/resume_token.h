// The opaque tokens with which a watch resumes at the position of another one.

#ifndef TIMECACHED_SERVER_RPC_WATCH_RESUME_TOKEN_H_
#define TIMECACHED_SERVER_RPC_WATCH_RESUME_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/expiry_types.h"

namespace timecache::server {

// A position in the log of one namespace.
struct ResumePoint {
  std::string map;
  LogPoint point;
};

// 33 bytes and the name: a version, the point, a checksum, the name.
std::string EncodeResumeToken(absl::string_view map, const LogPoint& point);

// INVALID_ARGUMENT about resume_tokens for bytes that no server has issued.
absl::StatusOr<ResumePoint> DecodeResumeToken(absl::string_view token);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_RESUME_TOKEN_H_
