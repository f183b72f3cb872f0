// The checked request of a WatchExpired, ConsumeExpired, WatchExpiring or
// WatchChanges call.

#ifndef TIMECACHED_SERVER_RPC_WATCH_WATCH_REQUEST_H_
#define TIMECACHED_SERVER_RPC_WATCH_WATCH_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/engine/store/store_types.h"
#include "server/rpc/call/message_limit.h"
#include "server/rpc/watch/event_filters.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::server {

// As the four requests in the proto, with their defaults.
struct WatchRequest {
  static constexpr int kMaxNamespaces = 64;
  static constexpr int64_t kMinHeartbeatUs = 10'000;
  static constexpr int64_t kMaxHeartbeatUs = 3'600 * kMicrosPerSecond;
  static constexpr int kMaxMaxInFlight = 65'536;

  std::vector<std::string> namespaces;
  // Of WatchChanges.
  bool changes = false;
  LogStart start = LogStart::kNow;
  std::string key_prefix;
  bool keys_only = false;
  // The two as the server applies them; set once the watch is to be opened.
  std::shared_ptr<const EventFilter> filter;
  int64_t heartbeat_us = kMicrosPerSecond;
  // By namespace.
  LogPoints resume_points;
  bool fail_on_loss = false;
  // Of WatchExpiring; else 0.
  int64_t lead_us = 0;
  // Of ConsumeExpired; else empty.
  std::string group;
  int max_in_flight = 1'000;
  size_t max_message_bytes = kDefaultMaxMessageBytes;
};

// INVALID_ARGUMENT that names the first field that is out of its range.
absl::StatusOr<WatchRequest> ToWatchRequest(
    const v1::WatchExpiredRequest& request);
absl::StatusOr<WatchRequest> ToWatchRequest(
    const v1::ConsumeExpiredRequest& request);
absl::StatusOr<WatchRequest> ToWatchRequest(
    const v1::WatchExpiringRequest& request);
absl::StatusOr<WatchRequest> ToWatchRequest(
    const v1::WatchChangesRequest& request);

// As FetchExpiredRequest, with its defaults.
struct FetchRequest {
  static constexpr int kMaxEvents = 8'192;
  static constexpr int64_t kMaxWaitUs = 60 * kMicrosPerSecond;

  std::string namespace_name;
  std::string group;
  LogStart start = LogStart::kNow;
  int max_events = 100;
  int64_t wait_us = 0;
  bool keys_only = false;
  size_t max_message_bytes = kDefaultMaxMessageBytes;
};

// As ToWatchRequest.
absl::StatusOr<FetchRequest> ToFetchRequest(
    const v1::FetchExpiredRequest& request);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_WATCH_REQUEST_H_
