#include "server/rpc/watch/watch_source.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/rpc/watch/event_filters.h"
#include "server/rpc/watch/resume_token.h"

namespace timecache::server {
namespace {

// With a prefix the number includes events of other keys.
absl::Status LossError(const std::string& map, uint64_t lost, bool prefix) {
  return ErrorWithReason(
      absl::StatusCode::kOutOfRange, Reason::kResumePointTrimmed,
      absl::StrCat("namespace ", map, " no longer retains ", lost,
                   " events that this watch has not read",
                   prefix ? " (some of them, or all, perhaps of keys without "
                            "the prefix: that is not known)"
                          : "",
                   ": watch without "
                   "fail_on_loss, or start again without a resume token"),
      {{"namespace", map}, {"lost", absl::StrCat(lost)}});
}

}  // namespace

WatchSource::Reading WatchSource::Read(int64_t now_us, WatchMessage* message) {
  const bool in_group = !request_->group.empty();
  const bool stopped = in_group && draining_;
  EventChunk chunk = reader_->Read(now_us, stopped ? 0 : kMaxEventBatchEvents,
                                   kMaxMessageBytes);
  for (const LostEvents& lost : chunk.lost_events) {
    if (!lost.MayHave(request_->key_prefix)) chunk.lost -= lost.events;
  }
  if (chunk.lost > 0 && request_->fail_on_loss) {
    return {.more = false,
            .end = LossError(name_, chunk.lost, !request_->key_prefix.empty())};
  }
  if (!in_group && request_->lead_us == 0) {
    message->resume_token = chunk.points.empty()
                                ? EncodeResumeToken(name_, chunk.point)
                                : EncodeResumeToken(name_, chunk.points);
  }
  AddBatches(chunk, message);
  for (const Delivery& delivery : chunk.deliveries) {
    message->AddDelivery(delivery, request_->keys_only);
  }
  message->lost += chunk.lost;
  message->watermark_us = chunk.watermark_us;
  if (in_group) message->delivered_us = chunk.delivered_us;
  Reading reading;
  reading.more = chunk.more && !stopped;
  reading.news = chunk.all_delivered;
  if (chunk.closed) reading.end = reader_->WhyClosed();
  return reading;
}

void WatchSource::AddBatches(const EventChunk& chunk, WatchMessage* message) {
  for (size_t i = 0; i < chunk.batches.size(); ++i) {
    const auto& batch = chunk.batches[i];
    const PassedEvents passed = i < chunk.shared
                                    ? request_->filter->Apply(batch)
                                    : PassedEvents::Written(batch);
    message->Add(passed);
    if (passed->size() == 0) continue;
    unwritten_.emplace_back(batch->death_us(),
                            static_cast<uint64_t>(passed->size()));
  }
}

void WatchSource::OnWritten(int64_t now_us, int64_t since_us) {
  for (const auto& [death_us, events] : unwritten_) {
    reader_->CountDelivery(now_us - std::max(death_us, since_us), events);
  }
  unwritten_.clear();
}

}  // namespace timecache::server
