#include "server/service/lead_source.h"

#include <utility>

#include "server/service/event_codec.h"

namespace timecache {

std::unique_ptr<WatchSource> LeadSource::Open(std::shared_ptr<TimeCacheMap> map,
                                              const WatchRequest* request,
                                              std::function<void()> wake) {
  return std::unique_ptr<WatchSource>(
      new LeadSource(std::move(map), request, std::move(wake)));
}

LeadSource::LeadSource(std::shared_ptr<TimeCacheMap> map,
                       const WatchRequest* request, std::function<void()> wake)
    : request_(request),
      map_(std::move(map)),
      cursor_(map_->SubscribeUpcoming(request->lead_us, std::move(wake))) {}

WatchSource::Reading LeadSource::Read(int64_t now_us, WatchMessage* message) {
  const Upcoming::Chunk chunk = cursor_->Read(now_us, kMaxMessageBytes);
  for (const auto& batch : chunk.batches) {
    message->Add(
        Filter(batch, map_->name(), request_->key_prefix, request_->keys_only));
  }
  message->watermark_us = chunk.watermark_us;
  Reading reading;
  reading.more = chunk.more;
  if (chunk.closed) reading.end = NamespaceDeleted(map_->name());
  return reading;
}

void LeadSource::RefreshWatermark(int64_t /*now_us*/, int64_t /*max_age_us*/) {
  cursor_->Refresh();
}

int64_t LeadSource::NextDueUs(int64_t /*now_us*/) {
  return cursor_->NextDueUs();
}

}  // namespace timecache
