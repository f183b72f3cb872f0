#include "server/engine/expiry/change_feed.h"

#include <algorithm>
#include <utility>

namespace timecache::server {

ChangeFeed::ChangeFeed(std::string map, const NamespaceOptions& options)
    : map_(std::move(map)),
      max_buffer_bytes_(static_cast<int64_t>(kMaxBufferBytes) /
                        options.num_shards),
      log_(options.change_retention_us, options.change_retention_bytes,
           /*first_event=*/1, /*id=*/0, ExpiryLog::Content::kChanges) {
  for (int i = 0; i < options.num_shards; ++i) buffers_.emplace_back(this);
}

// The feed may end with it.
ChangeFeed::Cursor::~Cursor() { feed_->readers_.fetch_sub(1); }

void ChangeFeed::Subscribe(LogStart start, int64_t now_us,
                           std::function<void()> wake, Cursor* cursor) {
  cursor->cursor_ =
      log_.Subscribe(start, now_us, /*pending=*/0, std::move(wake));
}

absl::Status ChangeFeed::Resume(const LogPoint& point,
                                std::function<void()> wake, Cursor* cursor) {
  auto resumed = log_.Resume(point, /*pending=*/0, std::move(wake));
  if (!resumed.ok()) return resumed.status();
  cursor->cursor_ = *std::move(resumed);
  return absl::OkStatus();
}

void ChangeFeed::Publish(int64_t now_us) {
  log_.AdvanceWatermark(now_us);
  if (unwoken_.exchange(false)) log_.Wake();
}

int64_t ChangeFeed::NextDueUs(int64_t now_us) const {
  const int64_t trim_us = log_.NextTrimUs(now_us);
  return filled_.load() > 0 || unwoken_.load()
             ? std::min(trim_us, FlushDueUs(now_us))
             : trim_us;
}

std::shared_ptr<EventBatch> ChangeFeed::NewBatch() const {
  return std::make_shared<EventBatch>(map_, Death{.cause = Cause::kChanged});
}

void ChangeFeed::AppendToLog(std::shared_ptr<EventBatch> batch,
                             int64_t now_us) {
  batch->ShrinkToFit();
  log_.AppendChanges(std::move(batch), now_us);
  unwoken_.store(true);
}

void ChangeFeed::AtomicBuffer::Add(const EntryView& change) {
  NotBefore(change.put_us);
  EntryView timed = change;
  timed.put_us = time_us_;
  if (batch_ != nullptr && !batch_->HasRoomFor(timed)) {
    feed_->AppendToLog(std::move(batch_), time_us_);
  }
  if (batch_ == nullptr) {
    batch_ = feed_->NewBatch();
    // As if all were like the first: most are.
    const size_t bytes = timed.key.size() + timed.value.size();
    batch_->Reserve(expected_, expected_ * static_cast<int64_t>(bytes));
  }
  batch_->Add(timed);
}

ChangeFeed::AtomicBuffer::~AtomicBuffer() {
  if (batch_ != nullptr) feed_->AppendToLog(std::move(batch_), time_us_);
}

int64_t ChangeFeed::Buffer::Add(const EntryView& change) {
  if (atomic_ != nullptr) {
    // What happened to the key before.
    if (batch_ != nullptr) MoveToLog(change.put_us);
    atomic_->Add(change);
    return feed_->FlushDueUs(change.put_us);
  }
  EntryView timed = change;
  // After every watermark that did not wait for it.
  timed.put_us = std::max(change.put_us, least_us_);
  bool first = batch_ == nullptr;
  if (!first && (batch_->payload_bytes() >= feed_->max_buffer_bytes_ ||
                 !batch_->HasRoomFor(timed))) {
    MoveToLog(timed.put_us);
  }
  if (batch_ == nullptr) {
    batch_ = feed_->NewBatch();
    feed_->filled_.fetch_add(1);
  }
  batch_->Add(timed);
  return first ? feed_->FlushDueUs(change.put_us) : kNeverUs;
}

void ChangeFeed::Buffer::Flush(int64_t now_us) {
  if (batch_ != nullptr) MoveToLog(now_us);
  least_us_ = std::max(least_us_, now_us + 1);
}

void ChangeFeed::Buffer::MoveToLog(int64_t now_us) {
  feed_->AppendToLog(std::move(batch_), now_us);
  batch_ = nullptr;
  feed_->filled_.fetch_sub(1);
}

void ChangeFeed::Buffer::BeginAtomic(size_t changes,
                                     std::unique_ptr<AtomicWatch>* batch) {
  if (*batch == nullptr) *batch = std::make_unique<AtomicBuffer>(feed_);
  atomic_ = static_cast<AtomicBuffer*>(batch->get());
  atomic_->Expect(changes, least_us_);
}

// Later changes of its keys have a later place in the log, and no earlier time.
void ChangeFeed::Buffer::EndAtomic() {
  least_us_ = std::max(least_us_, atomic_->time_us());
  atomic_ = nullptr;
}

}  // namespace timecache::server
