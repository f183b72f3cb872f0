#include "server/service/watch/group_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"
#include "server/service/watch/event_codec.h"

namespace timecache {
namespace {

// The event alone, written anew.
Delivery InWireFormat(const Delivery& delivery, absl::string_view map) {
  auto batch =
      std::make_shared<EventBatch>(map, delivery.batch->death(), WireFormat());
  batch->Add(delivery.event());
  return {std::move(batch), 0, delivery.event_id, delivery.attempt};
}

}  // namespace

absl::StatusOr<std::unique_ptr<WatchSource>> GroupSource::Open(
    std::shared_ptr<TimeCacheMap> map, const WatchRequest* request,
    const std::string& principal, int64_t now_us, std::function<void()> wake) {
  auto group = map->groups().FindOrCreate(request->group, request->start,
                                          now_us, principal);
  if (!group.ok()) {
    return WithMetadata(group.status(), "namespace", map->name());
  }
  auto member = (*group)->Join(request->max_in_flight, std::move(wake));
  return std::unique_ptr<WatchSource>(
      new GroupSource(std::move(map), *std::move(group), std::move(member),
                      request->keys_only));
}

GroupSource::GroupSource(std::shared_ptr<TimeCacheMap> map,
                         std::shared_ptr<ConsumerGroup> group,
                         std::unique_ptr<ConsumerGroup::Member> member,
                         bool keys_only)
    : map_(std::move(map)),
      group_(std::move(group)),
      member_(std::move(member)),
      keys_only_(keys_only) {}

WatchSource::Reading GroupSource::Read(int64_t now_us, WatchMessage* message) {
  const int max_events = draining_ ? 0 : kMaxEventBatchEvents;
  const ConsumerGroup::Chunk chunk =
      member_->Take(now_us, max_events, kMaxMessageBytes);
  for (const Delivery& delivery : chunk.deliveries) {
    if (delivery.batch->format() == WireFormat()) {
      message->AddDelivery(delivery, keys_only_);
    } else {
      message->AddDelivery(InWireFormat(delivery, map_->name()), keys_only_);
    }
  }
  message->lost += chunk.lost;
  message->watermark_us = chunk.watermark_us;
  Reading reading;
  reading.more = chunk.more && !draining_;
  if (chunk.closed) reading.end = WhyClosed();
  return reading;
}

void GroupSource::RefreshWatermark(int64_t now_us, int64_t max_age_us) {
  map_->RefreshWatermark(now_us, max_age_us);
}

// A group that is deleted is no longer found; a map that is deleted keeps its
// own.
absl::Status GroupSource::WhyClosed() const {
  const auto found = map_->groups().Find(group_->name());
  if (found.ok() && *found == group_) return NamespaceDeleted(map_->name());
  return ErrorWithReason(
      absl::StatusCode::kNotFound, Reason::kGroupNotFound,
      absl::StrCat("group ", group_->name(), " of namespace ", map_->name(),
                   " was deleted"));
}

}  // namespace timecache
