// What passes the check of a request of WatchExpired, ConsumeExpired or
// WatchExpiring is within every bound that the streams rely on.

#include "server/base/error.h"
#include "server/engine/store/namespace_options.h"
#include "server/rpc/watch/watch_request.h"
#include "tests/fuzz/fuzz.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::server {
namespace {

using fuzz::Require;

// The bounds of what all of them have.
void CheckCommon(const WatchRequest& watch) {
  Require(!watch.namespaces.empty() &&
              watch.namespaces.size() <= WatchRequest::kMaxNamespaces,
          "namespaces");
  Require(watch.resume_points.size() <= watch.namespaces.size(),
          "resume points");
  Require(watch.key_prefix.size() <= kMaxKeyBytes, "prefix");
  Require(watch.heartbeat_us >= WatchRequest::kMinHeartbeatUs &&
              watch.heartbeat_us <= WatchRequest::kMaxHeartbeatUs,
          "heartbeat");
  Require(watch.max_in_flight >= 1 &&
              watch.max_in_flight <= WatchRequest::kMaxMaxInFlight,
          "in flight");
}

void Check(const v1::WatchExpiredRequest& /*request*/,
           const WatchRequest& watch) {
  Require(watch.group.empty() && watch.lead_us == 0, "what died");
}

void Check(const v1::ConsumeExpiredRequest& /*request*/,
           const WatchRequest& watch) {
  Require(ValidateNamespaceName(watch.group).ok() && watch.key_prefix.empty() &&
              watch.resume_points.empty() && !watch.fail_on_loss &&
              watch.lead_us == 0,
          "group");
}

void Check(const v1::WatchExpiringRequest& /*request*/,
           const WatchRequest& watch) {
  Require(watch.lead_us >= kMinTtlUs && watch.lead_us <= kMaxTtlUs,
          "lead time");
  Require(watch.group.empty() && watch.resume_points.empty() &&
              !watch.fail_on_loss && watch.start == LogStart::kNow,
          "what is going to die");
}

template <typename Request>
void CheckRequest(const uint8_t* data, size_t size) {
  Request request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return;
  const absl::StatusOr<WatchRequest> watch = ToWatchRequest(request);
  if (!watch.ok()) {
    Require(absl::IsInvalidArgument(watch.status()), watch.status().ToString());
    Require(FieldOf(watch.status()).has_value(), "the refusal names a field");
    return;
  }
  CheckCommon(*watch);
  Check(request, *watch);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  CheckRequest<v1::WatchExpiredRequest>(data, size);
  CheckRequest<v1::ConsumeExpiredRequest>(data, size);
  CheckRequest<v1::WatchExpiringRequest>(data, size);
  return 0;
}

}  // namespace timecache::server
