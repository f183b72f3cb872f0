#include "server/rpc/watch/group_source.h"

#include <utility>

#include "server/rpc/watch/event_codec.h"

namespace timecache::server {
namespace {

// The event alone, encoded again.
Delivery InWireFormat(const Delivery& delivery, absl::string_view map) {
  auto batch =
      std::make_shared<EventBatch>(map, delivery.batch->death(), WireFormat());
  batch->Add(delivery.event());
  return {std::move(batch), 0, delivery.event_id, delivery.attempt,
          delivery.returns};
}

}  // namespace

GroupSource::GroupSource(std::string name, bool keys_only,
                         std::unique_ptr<GroupReader> reader)
    : name_(std::move(name)),
      keys_only_(keys_only),
      reader_(std::move(reader)) {}

WatchSource::Reading GroupSource::Read(int64_t now_us, WatchMessage* message) {
  const int max_events = draining_ ? 0 : kMaxEventBatchEvents;
  const GroupChunk chunk = reader_->Take(now_us, max_events, kMaxMessageBytes);
  for (const Delivery& delivery : chunk.deliveries) {
    if (delivery.batch->format() == WireFormat()) {
      message->AddDelivery(delivery, keys_only_);
    } else {
      message->AddDelivery(InWireFormat(delivery, name_), keys_only_);
    }
  }
  message->lost += chunk.lost;
  message->watermark_us = chunk.watermark_us;
  Reading reading;
  reading.more = chunk.more && !draining_;
  if (chunk.closed) reading.end = reader_->WhyClosed();
  return reading;
}

void GroupSource::RefreshWatermark(int64_t now_us, int64_t max_age_us) {
  reader_->RefreshWatermark(now_us, max_age_us);
}

}  // namespace timecache::server
