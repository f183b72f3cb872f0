#include "server/rpc/watch/watch_request.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/proto_time.h"
#include "server/base/error.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/partitions.h"
#include "server/rpc/watch/resume_token.h"

namespace timecache::server {
namespace {

template <typename Request>
absl::Status SetNamespaces(const Request& from, WatchRequest* to) {
  const int count = from.namespaces_size();
  if (count == 0 || count > WatchRequest::kMaxNamespaces) {
    return InvalidField("namespaces", absl::StrCat("must be 1 to ",
                                                   WatchRequest::kMaxNamespaces,
                                                   " names, not ", count));
  }
  const std::set<std::string> unique(from.namespaces().begin(),
                                     from.namespaces().end());
  if (unique.size() != static_cast<size_t>(count)) {
    return InvalidField("namespaces", "must name each namespace once");
  }
  to->namespaces.assign(from.namespaces().begin(), from.namespaces().end());
  return absl::OkStatus();
}

template <typename Request>
absl::Status SetStart(const Request& from, WatchRequest* to) {
  if (!v1::WatchStart_IsValid(from.start())) {
    return InvalidField("start", absl::StrCat("has no value ", from.start()));
  }
  if (from.start() == v1::WATCH_START_EARLIEST) {
    to->start = LogStart::kEarliest;
  }
  return absl::OkStatus();
}

template <typename Request>
absl::Status SetResumePoints(const Request& from, WatchRequest* to) {
  if (from.resume_tokens_size() > WatchRequest::kMaxNamespaces) {
    return InvalidField(
        "resume_tokens",
        absl::StrCat("must be at most ", WatchRequest::kMaxNamespaces, ", not ",
                     from.resume_tokens_size()));
  }
  for (const std::string& token : from.resume_tokens()) {
    absl::StatusOr<ResumePoint> point = DecodeResumeToken(token);
    if (!point.ok()) return point.status();
    if (std::count(to->namespaces.begin(), to->namespaces.end(), point->map) ==
        0) {
      return InvalidField("resume_tokens",
                          absl::StrCat("has one of namespace ", point->map,
                                       ", which namespaces does not name"));
    }
    if (to->resume_points.count(point->map) > 0) {
      return InvalidField("resume_tokens",
                          absl::StrCat("has two of namespace ", point->map,
                                       ": give the latest one"));
    }
    for (size_t i = 0; i < point->points.size(); ++i) {
      to->resume_points.emplace(PartitionName(point->map, static_cast<int>(i)),
                                point->points[i]);
    }
  }
  to->fail_on_loss = from.fail_on_loss();
  return absl::OkStatus();
}

template <typename Request>
absl::Status SetKeyPrefix(const Request& from, WatchRequest* to) {
  if (from.key_prefix().size() > kMaxKeyBytes) {
    return InvalidField("key_prefix",
                        absl::StrCat("must be at most ", kMaxKeyBytes,
                                     " bytes, not ", from.key_prefix().size()));
  }
  to->key_prefix = from.key_prefix();
  return absl::OkStatus();
}

// The fields that all requests have: options of the stream.
template <typename Request>
absl::Status SetMessages(const Request& from, WatchRequest* to) {
  to->keys_only = from.keys_only();
  const absl::StatusOr<size_t> bytes = ToMaxMessageBytes(from);
  if (!bytes.ok()) return bytes.status();
  to->max_message_bytes = *bytes;
  if (!from.has_heartbeat_interval()) return absl::OkStatus();
  const absl::StatusOr<int64_t> interval_us =
      ToMicros(from.heartbeat_interval(), "heartbeat_interval");
  if (!interval_us.ok()) return interval_us.status();
  if (*interval_us < WatchRequest::kMinHeartbeatUs ||
      *interval_us > WatchRequest::kMaxHeartbeatUs) {
    return InvalidField("heartbeat_interval", "must be between 10ms and 1h");
  }
  to->heartbeat_us = *interval_us;
  return absl::OkStatus();
}

absl::Status SetLeadTime(const v1::WatchExpiringRequest& from,
                         WatchRequest* to) {
  if (!from.has_lead_time()) return InvalidField("lead_time", "must be set");
  const absl::StatusOr<int64_t> lead_us =
      ToMicros(from.lead_time(), "lead_time");
  if (!lead_us.ok()) return lead_us.status();
  if (*lead_us < kMinTtlUs || *lead_us > kMaxTtlUs) {
    return InvalidField("lead_time", "must be between 1ms and 10 years");
  }
  to->lead_us = *lead_us;
  return absl::OkStatus();
}

absl::Status CheckGroupName(const std::string& group) {
  if (ValidateNamespaceName(group).ok()) return absl::OkStatus();
  return InvalidField(
      "group", "must be 1 to 63 characters, [a-z0-9]([-a-z0-9.]*[a-z0-9])?");
}

absl::Status SetMembership(const v1::ConsumeExpiredRequest& from,
                           WatchRequest* to) {
  absl::Status status = CheckGroupName(from.group());
  if (!status.ok()) return status;
  to->group = from.group();
  if (!from.has_max_in_flight()) return absl::OkStatus();
  if (from.max_in_flight() == 0 ||
      from.max_in_flight() > uint32_t{WatchRequest::kMaxMaxInFlight}) {
    return InvalidField(
        "max_in_flight",
        absl::StrCat("must be 1 to ", WatchRequest::kMaxMaxInFlight, ", not ",
                     from.max_in_flight()));
  }
  to->max_in_flight = static_cast<int>(from.max_in_flight());
  return absl::OkStatus();
}

// Each sets a part, in this order.
template <typename Request, typename... Setters>
absl::StatusOr<WatchRequest> Convert(const Request& from, Setters... setters) {
  WatchRequest to;
  absl::Status status;
  (void)((status = setters(from, &to), status.ok()) && ...);
  if (!status.ok()) return status;
  return to;
}

}  // namespace

absl::StatusOr<WatchRequest> ToWatchRequest(
    const v1::WatchExpiredRequest& request) {
  using Request = v1::WatchExpiredRequest;
  return Convert(request, SetNamespaces<Request>, SetStart<Request>,
                 SetResumePoints<Request>, SetKeyPrefix<Request>,
                 SetMessages<Request>);
}

absl::StatusOr<WatchRequest> ToWatchRequest(
    const v1::ConsumeExpiredRequest& request) {
  using Request = v1::ConsumeExpiredRequest;
  return Convert(request, SetNamespaces<Request>, SetStart<Request>,
                 SetMembership, SetMessages<Request>);
}

absl::StatusOr<WatchRequest> ToWatchRequest(
    const v1::WatchExpiringRequest& request) {
  using Request = v1::WatchExpiringRequest;
  return Convert(request, SetNamespaces<Request>, SetLeadTime,
                 SetKeyPrefix<Request>, SetMessages<Request>);
}

absl::StatusOr<WatchRequest> ToWatchRequest(
    const v1::WatchChangesRequest& request) {
  using Request = v1::WatchChangesRequest;
  absl::StatusOr<WatchRequest> to = Convert(
      request, SetNamespaces<Request>, SetStart<Request>,
      SetResumePoints<Request>, SetKeyPrefix<Request>, SetMessages<Request>);
  if (to.ok()) to->changes = true;
  return to;
}

absl::StatusOr<FetchRequest> ToFetchRequest(
    const v1::FetchExpiredRequest& request) {
  FetchRequest to;
  WatchRequest start;
  absl::Status status = CheckGroupName(request.group());
  if (status.ok()) status = SetStart(request, &start);
  if (!status.ok()) return status;
  to.namespace_name = request.namespace_();
  to.group = request.group();
  to.start = start.start;
  to.keys_only = request.keys_only();
  const absl::StatusOr<size_t> bytes = ToMaxMessageBytes(request);
  if (!bytes.ok()) return bytes.status();
  to.max_message_bytes = *bytes;
  if (request.has_max_events()) {
    if (request.max_events() == 0 ||
        request.max_events() > uint32_t{FetchRequest::kMaxEvents}) {
      return InvalidField(
          "max_events", absl::StrCat("must be 1 to ", FetchRequest::kMaxEvents,
                                     ", not ", request.max_events()));
    }
    to.max_events = static_cast<int>(request.max_events());
  }
  if (!request.has_wait()) return to;
  const absl::StatusOr<int64_t> wait_us = ToMicros(request.wait(), "wait");
  if (!wait_us.ok()) return wait_us.status();
  if (*wait_us < 0 || *wait_us > FetchRequest::kMaxWaitUs) {
    return InvalidField("wait", "must be between 0 and 1min");
  }
  to.wait_us = *wait_us;
  return to;
}

}  // namespace timecache::server
