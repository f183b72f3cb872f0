#include "server/rpc/watch/expiring_source.h"

#include <utility>

#include "server/rpc/watch/event_filters.h"

namespace timecache::server {

ExpiringSource::ExpiringSource(std::string name, const WatchRequest* request,
                               std::unique_ptr<ExpiringReader> reader)
    : name_(std::move(name)), request_(request), reader_(std::move(reader)) {}

WatchSource::Reading ExpiringSource::Read(int64_t now_us,
                                          WatchMessage* message) {
  const ExpiringChunk chunk = reader_->Read(now_us, kMaxMessageBytes);
  for (size_t i = 0; i < chunk.batches.size(); ++i) {
    const auto& batch = chunk.batches[i];
    message->Add(i < chunk.shared ? request_->filter->Apply(batch, name_)
                                  : PassedEvents::Written(batch));
  }
  message->watermark_us = chunk.watermark_us;
  Reading reading;
  reading.more = chunk.more;
  if (chunk.closed) reading.end = reader_->WhyClosed();
  return reading;
}

void ExpiringSource::RefreshWatermark(int64_t now_us, int64_t max_age_us) {
  reader_->RefreshWatermark(now_us, max_age_us);
}

int64_t ExpiringSource::NextDueUs(int64_t /*now_us*/) {
  return reader_->NextDueUs();
}

}  // namespace timecache::server
