// What passes the check of a WatchExpiredRequest is within every bound that the
// streams rely on.

#include "server/engine/error.h"
#include "server/engine/map/options.h"
#include "server/service/watch/watch_request.h"
#include "tests/fuzz/fuzz.h"
#include "timecache/v1/timecache.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace timecache;
  using fuzz::Require;
  v1::WatchExpiredRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return 0;
  const absl::StatusOr<WatchRequest> watch = ToWatchRequest(request);
  if (!watch.ok()) {
    Require(absl::IsInvalidArgument(watch.status()), watch.status().ToString());
    Require(FieldOf(watch.status()).has_value(), "the refusal names a field");
    return 0;
  }
  Require(!watch->namespaces.empty() &&
              watch->namespaces.size() <= WatchRequest::kMaxNamespaces,
          "namespaces");
  Require(watch->resume_points.size() <= watch->namespaces.size(),
          "resume points");
  Require(watch->key_prefix.size() <= kMaxKeyBytes, "prefix");
  Require(watch->heartbeat_us >= WatchRequest::kMinHeartbeatUs &&
              watch->heartbeat_us <= WatchRequest::kMaxHeartbeatUs,
          "heartbeat");
  Require(watch->lead_us == 0 ||
              (watch->lead_us >= kMinTtlUs && watch->lead_us <= kMaxTtlUs),
          "lead time");
  Require(watch->max_in_flight >= 1 &&
              watch->max_in_flight <= WatchRequest::kMaxMaxInFlight,
          "in flight");
  Require(watch->group.empty() ||
              (ValidateNamespaceName(watch->group).ok() &&
               watch->key_prefix.empty() && watch->resume_points.empty() &&
               watch->lead_us == 0),
          "group");
  return 0;
}
