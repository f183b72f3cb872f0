#include "tests/support/delivery/delivery_watcher.h"

#include <algorithm>
#include <utility>

#include "gtest/gtest.h"
#include "server/base/error.h"

namespace timecache::server {

void DeliveryWatcher::Connect(ExpiryLog::Start start, int64_t now_us) {
  cursor_ = nullptr;
  places_.clear();
  now_ = Place();
  began_.reset();
  more_ = false;
  end_before_ = events_->end();
  cursor_ = map_->Subscribe(start, now_us, [this] { woken_ = true; });
  if (start == ExpiryLog::Start::kNow) {
    began_ = end_before_;
    now_.watermark_us = now_us;
  } else if (retained_ != nullptr) {
    began_ = retained_->oldest();
  }
  now_.position = began_.value_or(0);
  // The first Read comes by itself.
  woken_ = true;
}

void DeliveryWatcher::Resume(int64_t now_us, size_t reads_before) {
  cursor_ = nullptr;
  ASSERT_LT(reads_before, places_.size());
  places_.resize(places_.size() - reads_before);
  now_ = places_.back();
  more_ = false;
  end_before_ = events_->end();
  auto resumed = map_->Resume(now_.point, now_us, [this] { woken_ = true; });
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  cursor_ = *std::move(resumed);
  woken_ = true;
}

void DeliveryWatcher::CheckLost(uint64_t lost) const {
  if (retained_ == nullptr) {
    ASSERT_TRUE(lost == 0 || now_.position + lost <= end_before_)
        << "lost what died while it was there";
    return;
  }
  const uint64_t oldest = retained_->oldest();
  ASSERT_EQ(lost, oldest > now_.position ? oldest - now_.position : 0);
}

void DeliveryWatcher::Read(int64_t max_bytes) {
  woken_ = false;
  const ExpiryLog::Chunk chunk = cursor_->Read(max_bytes);
  if (!began_.has_value()) {
    uint64_t told = chunk.lost;
    for (const auto& batch : chunk.batches) {
      told += static_cast<uint64_t>(batch->size());
    }
    began_ = now_.position = chunk.point.next_event - told;
  }
  ASSERT_NO_FATAL_FAILURE(CheckLost(chunk.lost));
  now_.position += chunk.lost;
  now_.lost += chunk.lost;
  int64_t encoded_bytes = 0;
  for (const auto& batch : chunk.batches) {
    ASSERT_GT(batch->size(), 0);
    ASSERT_GT(batch->death_us(), now_.watermark_us)
        << "events after a watermark that promised them";
    encoded_bytes += static_cast<int64_t>(batch->encoded().size());
    for (int i = 0; i < batch->size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(
          events_->CheckEvent(now_.position, batch->event(i), batch->death()));
      ++now_.position;
      ++now_.delivered;
    }
  }
  ASSERT_TRUE(chunk.batches.size() <= 1 || encoded_bytes <= max_bytes);
  ASSERT_GE(chunk.watermark_us, now_.watermark_us) << "the watermark went back";
  now_.watermark_us = chunk.watermark_us;
  ASSERT_LE(events_->EndAt(now_.watermark_us), std::max(now_.position, *began_))
      << "the watermark promises what was not told";
  ASSERT_EQ(chunk.point.next_event, now_.position);
  ASSERT_EQ(chunk.point.watermark_us, now_.watermark_us);
  ASSERT_EQ(now_.delivered + now_.lost, now_.position - *began_);
  more_ = chunk.more;
  if (retained_ != nullptr) {
    ASSERT_EQ(more_, now_.position < retained_->end());
  }
  now_.point = chunk.point;
  places_.push_back(now_);
  if (places_.size() > kMaxPlaces) places_.pop_front();
}

void DeliveryWatcher::ReadToTheEnd() {
  do {
    ASSERT_NO_FATAL_FAILURE(Read(1 << 20));
  } while (more_);
  ASSERT_EQ(now_.position, events_->end());
  ASSERT_EQ(now_.delivered + now_.lost, events_->end() - *began_);
}

void DeliveryWatcher::CheckRefusedPoints(int64_t now_us) const {
  const auto resume = [&](uint64_t log_id, uint64_t next_event) {
    ExpiryLog::Point point = places_.back().point;
    point.log_id += log_id;
    point.next_event = next_event;
    return map_->Resume(point, now_us, [] {}).status();
  };
  const uint64_t end = events_->end();
  const absl::Status other = resume(1, now_.position);
  ASSERT_EQ(other.code(), absl::StatusCode::kFailedPrecondition) << other;
  ASSERT_EQ(ReasonOf(other), Reason::kLogChanged) << other;
  const absl::Status ahead = resume(0, end + 1);
  ASSERT_EQ(ahead.code(), absl::StatusCode::kOutOfRange) << ahead;
  ASSERT_EQ(ReasonOf(ahead), Reason::kResumePointAhead) << ahead;
  ASSERT_TRUE(resume(0, end).ok());
}

void DeliveryWatcher::CheckWoken() const {
  if (!connected() || retained_ == nullptr) return;
  ASSERT_TRUE(woken_ || more_ || now_.position >= retained_->end())
      << "nobody told it of " << retained_->end() - now_.position << " events";
}

void DeliveryWatcher::CheckClosed() {
  ASSERT_TRUE(woken_) << "nobody told it of the end";
  const ExpiryLog::Chunk chunk = cursor_->Read(1);
  ASSERT_TRUE(chunk.closed && chunk.batches.empty() && chunk.lost == 0);
}

}  // namespace timecache::server
