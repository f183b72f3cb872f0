#include <utility>

#include "client/cpp/src/data/convert.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "timecache/channel.h"
#include "timecache/client.h"

namespace timecache {

// Not repeated: the server may have given its events to the first attempt.
absl::StatusOr<FetchedEvents> Client::FetchExpired(
    std::string_view group, const FetchOptions& options,
    const CallOptions& call) const {
  v1::FetchExpiredRequest request;
  request.set_namespace_(options_.default_namespace);
  request.set_group(std::string(group));
  request.set_start(options.start == WatchStart::kEarliest
                        ? v1::WATCH_START_EARLIEST
                        : v1::WATCH_START_NOW);
  if (options.max_events) request.set_max_events(*options.max_events);
  if (options.wait) *request.mutable_wait() = ToProto(*options.wait);
  request.set_keys_only(options.keys_only);
  request.set_max_message_bytes(
      options.max_message_bytes.value_or(kMaxMessageBytes));
  CallOptions with_wait = call;
  if (!call.timeout) {
    with_wait.timeout =
        options_.timeout + options.wait.value_or(absl::ZeroDuration());
  }
  auto response = Call(core_->endpoints, &Endpoint::cache,
                       &v1::TimeCacheService::Stub::FetchExpired, request,
                       CallPlan(options_, with_wait, Repeat::kUnsafe));
  if (!response.ok()) return response.status();
  FetchedEvents fetched = {
      .watermark = FromProto(response->watermark()),
      .delivered_watermark = FromProto(response->delivered_watermark()),
      .lost = response->lost()};
  fetched.events.reserve(static_cast<size_t>(response->events_size()));
  for (v1::ExpiredEvent& event : *response->mutable_events()) {
    if (event.omitted_value_bytes() > 0) ++fetched.omitted_values;
    fetched.events.push_back(FromProto(std::move(event)));
  }
  return fetched;
}

}  // namespace timecache
