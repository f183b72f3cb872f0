#include "server/rpc/watch/log_source.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
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

LogSource::LogSource(std::string name, const WatchRequest* request,
                     std::unique_ptr<LogReader> reader)
    : name_(std::move(name)), request_(request), reader_(std::move(reader)) {}

WatchSource::Reading LogSource::Read(int64_t /*now_us*/,
                                     WatchMessage* message) {
  LogChunk chunk = reader_->Read(kMaxMessageBytes);
  for (const LostEvents& lost : chunk.lost_events) {
    if (!lost.MayHave(request_->key_prefix)) chunk.lost -= lost.events;
  }
  if (chunk.lost > 0 && request_->fail_on_loss) {
    return {.more = false,
            .end = LossError(name_, chunk.lost, !request_->key_prefix.empty())};
  }
  for (const auto& batch : chunk.batches) {
    const auto passed = request_->filter->Apply(batch, name_);
    message->Add(passed);
    if (passed->size() == 0) continue;
    unwritten_.emplace_back(batch->death_us(),
                            static_cast<uint64_t>(passed->size()));
  }
  message->lost += chunk.lost;
  message->watermark_us = chunk.watermark_us;
  message->resume_token = EncodeResumeToken(name_, chunk.point);
  Reading reading;
  reading.more = chunk.more;
  if (chunk.closed) reading.end = reader_->WhyClosed();
  return reading;
}

void LogSource::OnWritten(int64_t now_us, int64_t since_us) {
  for (const auto& [death_us, events] : unwritten_) {
    reader_->CountDelivery(now_us - std::max(death_us, since_us), events);
  }
  unwritten_.clear();
}

void LogSource::RefreshWatermark(int64_t now_us, int64_t max_age_us) {
  reader_->RefreshWatermark(now_us, max_age_us);
}

}  // namespace timecache::server
