#include "server/service/watch/watch_request.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"
#include "server/engine/map/options.h"
#include "server/service/call/convert.h"
#include "server/service/watch/resume_token.h"

namespace timecache {
namespace {

absl::Status SetNamespaces(const v1::WatchExpiredRequest& from,
                           WatchRequest* to) {
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

absl::Status SetStart(const v1::WatchExpiredRequest& from, WatchRequest* to) {
  if (!v1::WatchStart_IsValid(from.start())) {
    return InvalidField("start", absl::StrCat("has no value ", from.start()));
  }
  if (from.start() == v1::WATCH_START_EARLIEST) {
    to->start = ExpiryLog::Start::kEarliest;
  }
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
    if (!to->resume_points.emplace(point->map, point->point).second) {
      return InvalidField(
          "resume_tokens",
          absl::StrCat("has two of namespace ", point->map, ": give the last"));
    }
  }
  to->fail_on_loss = from.fail_on_loss();
  return absl::OkStatus();
}

absl::Status SetFilter(const v1::WatchExpiredRequest& from, WatchRequest* to) {
  if (from.key_prefix().size() > kMaxKeyBytes) {
    return InvalidField("key_prefix",
                        absl::StrCat("must be at most ", kMaxKeyBytes,
                                     " bytes, not ", from.key_prefix().size()));
  }
  to->key_prefix = from.key_prefix();
  to->keys_only = from.keys_only();
  return absl::OkStatus();
}

absl::Status SetHeartbeat(const v1::WatchExpiredRequest& from,
                          WatchRequest* to) {
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

absl::Status SetLeadTime(const v1::WatchExpiredRequest& from,
                         WatchRequest* to) {
  if (!from.has_lead_time()) return absl::OkStatus();
  const absl::StatusOr<int64_t> lead_us =
      ToMicros(from.lead_time(), "lead_time");
  if (!lead_us.ok()) return lead_us.status();
  if (*lead_us < kMinTtlUs || *lead_us > kMaxTtlUs) {
    return InvalidField("lead_time", "must be between 1ms and 10 years");
  }
  const auto not_with = [](absl::string_view other) {
    return InvalidField("lead_time", absl::StrCat("does not go with ", other));
  };
  if (!from.group().empty()) return not_with("group");
  if (from.resume_tokens_size() > 0) return not_with("resume_tokens");
  if (from.fail_on_loss()) return not_with("fail_on_loss");
  if (from.start() != v1::WATCH_START_UNSPECIFIED) return not_with("start");
  to->lead_us = *lead_us;
  return absl::OkStatus();
}

absl::Status SetGroup(const v1::WatchExpiredRequest& from, WatchRequest* to) {
  if (from.group().empty()) {
    if (!from.has_max_in_flight()) return absl::OkStatus();
    return InvalidField("max_in_flight", "goes with group only");
  }
  if (!ValidateNamespaceName(from.group()).ok()) {
    return InvalidField(
        "group", "must be 1 to 63 characters, [a-z0-9]([-a-z0-9.]*[a-z0-9])?");
  }
  const auto not_with = [](absl::string_view other) {
    return InvalidField("group", absl::StrCat("does not go with ", other));
  };
  if (!from.key_prefix().empty()) return not_with("key_prefix");
  if (from.resume_tokens_size() > 0) return not_with("resume_tokens");
  if (from.fail_on_loss()) return not_with("fail_on_loss");
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

absl::Status SetMessageLimit(const v1::WatchExpiredRequest& from,
                             WatchRequest* to) {
  const absl::StatusOr<size_t> bytes = ToMaxMessageBytes(from);
  if (!bytes.ok()) return bytes.status();
  to->max_message_bytes = *bytes;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WatchRequest> ToWatchRequest(
    const v1::WatchExpiredRequest& request) {
  WatchRequest to;
  for (const auto set : {SetNamespaces, SetStart, SetFilter, SetHeartbeat,
                         SetLeadTime, SetGroup, SetMessageLimit}) {
    absl::Status status = set(request, &to);
    if (!status.ok()) return status;
  }
  return to;
}

}  // namespace timecache
