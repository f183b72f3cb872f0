#include "server/service/watch/log_source.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"
#include "server/service/watch/resume_token.h"

namespace timecache {
namespace {

absl::Status LossError(const std::string& map, uint64_t lost) {
  return ErrorWithReason(
      absl::StatusCode::kOutOfRange, Reason::kResumePointTrimmed,
      absl::StrCat("namespace ", map, " no longer retains ", lost,
                   " events that this watch has not read: watch without "
                   "fail_on_loss, or begin anew without a resume token"),
      {{"namespace", map}, {"lost", absl::StrCat(lost)}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<WatchSource>> LogSource::Open(
    std::shared_ptr<TimeCacheMap> map, const WatchRequest* request,
    int64_t now_us, std::function<void()> wake) {
  std::unique_ptr<ExpiryLog::Cursor> cursor;
  const auto point = request->resume_points.find(map->name());
  if (point == request->resume_points.end()) {
    cursor = map->Subscribe(request->start, now_us, std::move(wake));
  } else {
    auto resumed = map->Resume(point->second, now_us, std::move(wake));
    if (!resumed.ok()) {
      return WithMetadata(resumed.status(), "namespace", map->name());
    }
    cursor = *std::move(resumed);
  }
  return std::unique_ptr<WatchSource>(
      new LogSource(std::move(map), request, std::move(cursor)));
}

LogSource::LogSource(std::shared_ptr<TimeCacheMap> map,
                     const WatchRequest* request,
                     std::unique_ptr<ExpiryLog::Cursor> cursor)
    : request_(request), map_(std::move(map)), cursor_(std::move(cursor)) {}

WatchSource::Reading LogSource::Read(int64_t /*now_us*/,
                                     WatchMessage* message) {
  const ExpiryLog::Chunk chunk = cursor_->Read(kMaxMessageBytes);
  if (chunk.lost > 0 && request_->fail_on_loss) {
    return {.more = false, .end = LossError(map_->name(), chunk.lost)};
  }
  for (const auto& batch : chunk.batches) {
    const auto passed = request_->filter->Apply(batch, map_->name());
    message->Add(passed);
    if (passed->size() == 0) continue;
    unwritten_.emplace_back(batch->death_us(),
                            static_cast<uint64_t>(passed->size()));
  }
  message->lost += chunk.lost;
  message->watermark_us = chunk.watermark_us;
  message->resume_token = EncodeResumeToken(map_->name(), chunk.point);
  Reading reading;
  reading.more = chunk.more;
  if (chunk.closed) reading.end = NamespaceDeleted(map_->name());
  return reading;
}

void LogSource::OnWritten(int64_t now_us, int64_t since_us) {
  for (const auto& [death_us, events] : unwritten_) {
    map_->CountDelivery(now_us - std::max(death_us, since_us), events);
  }
  unwritten_.clear();
}

void LogSource::RefreshWatermark(int64_t now_us, int64_t max_age_us) {
  map_->RefreshWatermark(now_us, max_age_us);
}

}  // namespace timecache
