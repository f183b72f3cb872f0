#include "server/service/watch/expiring_source.h"

#include <utility>

#include "server/service/watch/event_filters.h"

namespace timecache {

absl::StatusOr<std::unique_ptr<WatchSource>> ExpiringSource::Open(
    std::shared_ptr<TimeCacheMap> map, const WatchRequest* request,
    int64_t max_watchers, std::function<void()> wake) {
  auto cursor = map->expiring().Subscribe(
      {request->lead_us, request->key_prefix, request->keys_only, max_watchers},
      std::move(wake));
  if (!cursor.ok()) return cursor.status();
  return std::unique_ptr<WatchSource>(
      new ExpiringSource(std::move(map), request, *std::move(cursor)));
}

ExpiringSource::ExpiringSource(std::shared_ptr<TimeCacheMap> map,
                               const WatchRequest* request,
                               std::unique_ptr<ExpiringCursor> cursor)
    : request_(request), map_(std::move(map)), cursor_(std::move(cursor)) {}

WatchSource::Reading ExpiringSource::Read(int64_t now_us,
                                          WatchMessage* message) {
  const ExpiringCursor::Chunk chunk = cursor_->Read(now_us, kMaxMessageBytes);
  for (size_t i = 0; i < chunk.batches.size(); ++i) {
    const auto& batch = chunk.batches[i];
    message->Add(i < chunk.shared ? request_->filter->Apply(batch, map_->name())
                                  : batch);
  }
  message->watermark_us = chunk.watermark_us;
  Reading reading;
  reading.more = chunk.more;
  if (chunk.closed) reading.end = NamespaceDeleted(map_->name());
  return reading;
}

void ExpiringSource::RefreshWatermark(int64_t now_us, int64_t max_age_us) {
  cursor_->Refresh(now_us, max_age_us);
}

int64_t ExpiringSource::NextDueUs(int64_t /*now_us*/) {
  return cursor_->NextDueUs();
}

}  // namespace timecache
