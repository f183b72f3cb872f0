#include "server/engine/expiry_log.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/engine/check.h"
#include "server/engine/clock.h"

namespace timecache {
namespace {

// What stands before an event's key and value in a batch.
struct EventHeader {
  uint64_t version;
  int64_t put_us;
  int64_t deadline_us;
  uint32_t key_bytes;
  uint32_t value_bytes;
};

size_t EventBytes(const ExpiredEvent& event) {
  return sizeof(EventHeader) + event.key.size() + event.value.size();
}

}  // namespace

bool EventBatch::HasRoomFor(const ExpiredEvent& event) const {
  return offsets_.empty() ||
         (offsets_.size() < kMaxEventBatchEvents &&
          data_.size() + EventBytes(event) <= kMaxEventBatchBytes);
}

void EventBatch::Reserve(int64_t events, int64_t payload_bytes) {
  const size_t bytes = static_cast<size_t>(events) * sizeof(EventHeader) +
                       static_cast<size_t>(payload_bytes);
  data_.reserve(std::min(bytes, kMaxEventBatchBytes));
  offsets_.reserve(
      std::min<size_t>(static_cast<size_t>(events), kMaxEventBatchEvents));
}

void EventBatch::Add(const ExpiredEvent& event) {
  const EventHeader header = {event.version, event.put_us, event.deadline_us,
                              static_cast<uint32_t>(event.key.size()),
                              static_cast<uint32_t>(event.value.size())};
  offsets_.push_back(static_cast<uint32_t>(data_.size()));
  data_.append(reinterpret_cast<const char*>(&header), sizeof(header));
  data_.append(event.key.data(), event.key.size());
  data_.append(event.value.data(), event.value.size());
}

ExpiredEvent EventBatch::event(int i) const {
  const char* at = data_.data() + offsets_[static_cast<size_t>(i)];
  EventHeader header;
  std::memcpy(&header, at, sizeof(header));
  at += sizeof(header);
  return {absl::string_view(at, header.key_bytes),
          absl::string_view(at + header.key_bytes, header.value_bytes),
          header.version, header.put_us, header.deadline_us};
}

int64_t EventBatch::bytes() const {
  return static_cast<int64_t>(sizeof(*this) + data_.capacity() +
                              offsets_.capacity() * sizeof(offsets_[0]));
}

ExpiryLog::ExpiryLog(int64_t retention_us, int64_t retention_bytes)
    : retention_us_(retention_us), retention_bytes_(retention_bytes) {}

bool ExpiryLog::Wanted() const {
  absl::MutexLock lock(&mu_);
  return retention_us_ > 0 || !cursors_.empty();
}

void ExpiryLog::Append(std::shared_ptr<const EventBatch> batch, int64_t now_us,
                       int64_t watermark_us) {
  Dropped dropped;
  absl::MutexLock lock(&mu_);
  TIMECACHED_CHECK(retained_.empty() ||
                   retained_.back().batch->death_us() <= batch->death_us());
  bytes_ += batch->bytes();
  const uint64_t first_seq = next_seq_;
  next_seq_ += static_cast<uint64_t>(batch->size());
  retained_.push_back({first_seq, now_us, std::move(batch)});
  watermark_us_ = std::max(watermark_us_, watermark_us);
  TrimLocked(now_us, &dropped);
  WakeAll();
}

void ExpiryLog::Skip(uint64_t events) {
  absl::MutexLock lock(&mu_);
  next_seq_ += events;
}

void ExpiryLog::AdvanceWatermark(int64_t watermark_us) {
  absl::MutexLock lock(&mu_);
  watermark_us_ = std::max(watermark_us_, watermark_us);
}

int64_t ExpiryLog::watermark_us() const {
  absl::MutexLock lock(&mu_);
  return watermark_us_;
}

std::unique_ptr<ExpiryLog::Cursor> ExpiryLog::Subscribe(
    Start start, int64_t now_us, uint64_t pending, std::function<void()> wake) {
  auto cursor = std::unique_ptr<Cursor>(new Cursor(this, std::move(wake)));
  absl::MutexLock lock(&mu_);
  if (start == Start::kNow) {
    cursor->next_seq_ = next_seq_ + pending;
    cursor->watermark_us_ = now_us;
  } else {
    cursor->next_seq_ =
        retained_.empty() ? next_seq_ : retained_.front().first_seq;
    cursor->watermark_us_ = retained_.empty()
                                ? watermark_us_
                                : retained_.front().batch->death_us() - 1;
  }
  cursors_.insert(cursor.get());
  return cursor;
}

ExpiryLog::Cursor::~Cursor() {
  absl::MutexLock lock(&log_->mu_);
  log_->cursors_.erase(this);
}

ExpiryLog::Chunk ExpiryLog::Cursor::Read(int64_t max_bytes) {
  absl::MutexLock lock(&log_->mu_);
  return log_->ReadLocked(this, max_bytes);
}

ExpiryLog::Chunk ExpiryLog::ReadLocked(Cursor* cursor, int64_t max_bytes) {
  Chunk chunk;
  const uint64_t oldest =
      retained_.empty() ? next_seq_ : retained_.front().first_seq;
  if (cursor->next_seq_ < oldest) {
    chunk.lost = oldest - cursor->next_seq_;
    cursor->next_seq_ = oldest;
  }
  // The first retained batch that the cursor has not read.
  auto it = std::partition_point(
      retained_.begin(), retained_.end(),
      [&](const Retained& r) { return r.first_seq < cursor->next_seq_; });
  int64_t bytes = 0;
  int events = 0;
  for (; it != retained_.end(); ++it) {
    const EventBatch& batch = *it->batch;
    if (!chunk.batches.empty() &&
        (bytes + batch.bytes() > max_bytes ||
         events + batch.size() > kMaxEventBatchEvents)) {
      break;
    }
    bytes += batch.bytes();
    events += batch.size();
    chunk.batches.push_back(it->batch);
    cursor->next_seq_ = it->first_seq + static_cast<uint64_t>(batch.size());
  }
  chunk.more = it != retained_.end();
  const int64_t complete_us =
      chunk.more ? std::min(watermark_us_, it->batch->death_us() - 1)
                 : watermark_us_;
  cursor->watermark_us_ = std::max(cursor->watermark_us_, complete_us);
  chunk.watermark_us = cursor->watermark_us_;
  chunk.closed = closed_ && !chunk.more;
  return chunk;
}

void ExpiryLog::SetRetention(int64_t retention_us, int64_t retention_bytes,
                             int64_t now_us) {
  Dropped dropped;
  absl::MutexLock lock(&mu_);
  retention_us_ = retention_us;
  retention_bytes_ = retention_bytes;
  TrimLocked(now_us, &dropped);
}

void ExpiryLog::Trim(int64_t now_us) {
  Dropped dropped;
  absl::MutexLock lock(&mu_);
  TrimLocked(now_us, &dropped);
}

void ExpiryLog::DropOldest(Dropped* dropped) {
  bytes_ -= retained_.front().batch->bytes();
  dropped->push_back(std::move(retained_.front().batch));
  retained_.pop_front();
}

void ExpiryLog::TrimLocked(int64_t now_us, Dropped* dropped) {
  // The newest batch stays, however large it is: else nobody could ever read
  // it.
  while (retained_.size() > 1 && bytes_ > retention_bytes_) DropOldest(dropped);
  if (retained_.empty() ||
      retained_.front().appended_us + retention_us_ > now_us) {
    return;
  }
  // Age drops only what every cursor has read.
  uint64_t needed = next_seq_;
  for (const Cursor* cursor : cursors_)
    needed = std::min(needed, cursor->next_seq_);
  while (!retained_.empty() &&
         retained_.front().appended_us + retention_us_ <= now_us &&
         retained_.front().first_seq < needed) {
    DropOldest(dropped);
  }
}

int64_t ExpiryLog::NextTrimUs(int64_t now_us) const {
  absl::MutexLock lock(&mu_);
  if (retained_.empty()) return kNeverUs;
  const int64_t due_us = retained_.front().appended_us + retention_us_;
  return due_us > now_us ? due_us : now_us + kTrimRetryUs;
}

void ExpiryLog::WakeAll() {
  for (const Cursor* cursor : cursors_) cursor->wake_();
}

void ExpiryLog::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
  WakeAll();
}

ExpiryLog::Statistics ExpiryLog::GetStatistics() const {
  absl::MutexLock lock(&mu_);
  Statistics statistics;
  statistics.bytes = bytes_;
  statistics.cursors = static_cast<int64_t>(cursors_.size());
  if (!retained_.empty())
    statistics.events = next_seq_ - retained_.front().first_seq;
  return statistics;
}

}  // namespace timecache
