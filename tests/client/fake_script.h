// What a FakeService says.

#ifndef TIMECACHED_TESTS_CLIENT_FAKE_SCRIPT_H_
#define TIMECACHED_TESTS_CLIENT_FAKE_SCRIPT_H_

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/support/status.h"
#include "timecache/v1/data.pb.h"
#include "timecache/v1/errors.pb.h"

namespace timecache {

// Of entries that are put with none of their own.
inline constexpr absl::Duration kFakeTtl = absl::Seconds(30);
// How long a call that hangs, or a watch, looks away from its caller at most.
inline constexpr std::chrono::milliseconds kFakeLook{1};

// An error as the server makes it: code, message, and an ErrorInfo with the
// reason and what more it says.
grpc::Status MakeError(grpc::StatusCode code, const std::string& message,
                       v1::ErrorReason reason,
                       const std::map<std::string, std::string>& metadata = {});
// Of a server that has reasons which this version does not know.
grpc::Status MakeLaterError(
    grpc::StatusCode code, const std::string& message,
    const std::string& reason,
    const std::map<std::string, std::string>& metadata = {});

// As ReasonName says it.
inline std::string Name(v1::ErrorReason reason) {
  return v1::ErrorReason_Name(reason);
}

grpc::Status NamespaceNotFound(const std::string& name);

// A batch of one event, died at `death_unix_s`, or of none without a key. Its
// resume token is "<ns>@<watermark_unix_s>".
v1::WatchExpiredResponse MakeBatch(const std::string& ns,
                                   const std::string& key, int death_unix_s,
                                   int watermark_unix_s);

// The token of a delivery, and the event that it names.
std::string TokenOf(uint64_t event_id, uint32_t attempt, uint32_t returns = 0);
uint64_t EventIdOf(const v1::Settlement& settlement);

// An event as a member of a group is given it.
v1::WatchExpiredResponse MakeDelivery(const std::string& ns,
                                      const std::string& key, uint64_t event_id,
                                      uint32_t attempt);

// What one call of WatchExpired or its likes does: its messages, as far as they
// go in its kind of message (events are puts in WatchChanges), then how it ends.
struct WatchScript {
  std::vector<v1::WatchExpiredResponse> messages = {};
  // Called before each message, with its index, and before the end or the
  // silence. May wait.
  std::function<void(size_t message)> before = {};
  grpc::Status end = grpc::Status::OK;
  // Instead of ending, stay silent until the caller leaves.
  bool hang = false;
};

// How a SettleExpired call ends. The response has a result for each settlement
// already, which says that it was settled.
using OnSettleFunction =
    std::function<grpc::Status(const v1::SettleExpiredRequest& request,
                               v1::SettleExpiredResponse* response)>;

// What one call of Scan does.
struct ScanScript {
  v1::ScanResponse page = {};
  grpc::Status end = grpc::Status::OK;
};

// What each Pipeline call does: so many answers, then how it ends.
struct PipelineScript {
  int answers_max = INT32_MAX;
  grpc::Status end = grpc::Status::OK;
  // Answer with a result too few.
  bool forget_a_result = false;
};

}  // namespace timecache

#endif  // TIMECACHED_TESTS_CLIENT_FAKE_SCRIPT_H_
