// What a FakeService is told to say.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/support/status.h"
#include "timecache/v1/timecache.pb.h"

namespace timecache {

// Of entries that are put with none of their own.
inline constexpr absl::Duration kFakeTtl = absl::Seconds(30);

// An error as the server makes it: code, message, and an ErrorInfo with the
// reason.
grpc::Status MakeError(grpc::StatusCode code, const std::string& message,
                       const std::string& reason);

grpc::Status NamespaceNotFound(const std::string& name);

// A batch of one event, died at `death_unix_s` and delivered a second later.
v1::WatchExpiredResponse MakeBatch(const std::string& ns,
                                   const std::string& key, int death_unix_s,
                                   int watermark_unix_s);

// What one WatchExpired call does: its messages, then how it ends.
struct WatchScript {
  std::vector<v1::WatchExpiredResponse> messages = {};
  grpc::Status end = grpc::Status::OK;
  // Instead of ending, stay silent until the caller leaves.
  bool hang = false;
};

// What each Pipeline call does: so many answers, then how it ends.
struct PipelineScript {
  int answers_max = INT32_MAX;
  grpc::Status end = grpc::Status::OK;
  // Answer with a result too few.
  bool forget_a_result = false;
};

}  // namespace timecache
