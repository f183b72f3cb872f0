#include "server/engine/store/event_batch.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "server/base/check.h"

namespace timecache::server {
namespace {

size_t PayloadBytes(const ExpiredEvent& event) {
  return event.key.size() + event.value.size();
}

}  // namespace

std::shared_ptr<const EventBatch> EventBatch::FromEncoded(
    absl::string_view map, const Death& death, absl::string_view encoded) {
  const auto batch = std::make_shared<EventBatch>(map, death);
  if (encoded.empty()) return batch;
  batch->SetCapacity(encoded.size());
  std::memcpy(batch->data_.get(), encoded.data(), encoded.size());
  while (!encoded.empty()) {
    const size_t bytes = batch->encoding_.SizeOf(encoded);
    if (bytes == 0) return nullptr;
    batch->AddEncoded(bytes);
    encoded.remove_prefix(bytes);
  }
  batch->ShrinkToFit();
  return batch;
}

// Counts the next event, whose bytes are there.
void EventBatch::AddEncoded(size_t bytes) {
  offsets_.push_back(static_cast<uint32_t>(used_));
  used_ += bytes;
  const ExpiredEvent added = event(size() - 1);
  common_ =
      size() == 1 ? added.key.size() : CommonBytes(common_prefix(), added.key);
  payload_bytes_ += PayloadBytes(added);
}

std::shared_ptr<const EventBatch> EventBatch::Select(
    absl::Span<const int> events) const {
  const std::shared_ptr<EventBatch> batch = NewLike();
  batch->offsets_.reserve(events.size());
  for (const int i : events) batch->Add(event(i));
  batch->ShrinkToFit();
  return batch;
}

std::shared_ptr<const EventBatch> EventBatch::Part(int from, int end) const {
  std::vector<int> events(static_cast<size_t>(end - from));
  std::iota(events.begin(), events.end(), from);
  return Select(events);
}

absl::string_view EventBatch::encoded(int i) const {
  const size_t begin = offsets_[static_cast<size_t>(i)];
  const size_t end =
      i + 1 < size() ? offsets_[static_cast<size_t>(i) + 1] : used_;
  return encoded().substr(begin, end - begin);
}

void EventBatch::Reserve(int64_t events, int64_t payload_bytes) {
  const size_t most = std::min(static_cast<size_t>(events),
                               static_cast<size_t>(kMaxEventBatchEvents));
  offsets_.reserve(most);
  SetCapacity(
      most * encoding_.MaxOverhead() +
      std::min(static_cast<size_t>(payload_bytes), kMaxEventBatchBytes));
  Charge();
}

void EventBatch::SetCapacity(size_t bytes) {
  char* const data = static_cast<char*>(std::realloc(data_.get(), bytes));
  TIMECACHED_CHECK(data != nullptr);
  // realloc has freed the old one, if it moved.
  static_cast<void>(data_.release());
  data_.reset(data);
  capacity_ = bytes;
}

bool EventBatch::HasRoomFor(const ExpiredEvent& event) const {
  return offsets_.empty() ||
         (offsets_.size() < kMaxEventBatchEvents &&
          payload_bytes_ + PayloadBytes(event) <= kMaxEventBatchBytes);
}

void EventBatch::Add(const ExpiredEvent& event) {
  const size_t most = used_ + encoding_.MaxBytes(event);
  if (most > capacity_) SetCapacity(std::max(most, 2 * capacity_));
  char* const to = data_.get() + used_;
  const char* const end = encoding_.Write(event, to);
  common_ = offsets_.empty() ? event.key.size()
                             : CommonBytes(common_prefix(), event.key);
  offsets_.push_back(static_cast<uint32_t>(used_));
  used_ += static_cast<size_t>(end - to);
  payload_bytes_ += PayloadBytes(event);
}

void EventBatch::ShrinkToFit() {
  if (used_ > 0 && used_ < capacity_) SetCapacity(used_);
  offsets_.shrink_to_fit();
  Charge();
}

int64_t EventBatch::bytes() const {
  return static_cast<int64_t>(sizeof(*this) + encoding_.memory_bytes() +
                              capacity_ +
                              offsets_.capacity() * sizeof(offsets_[0]));
}

}  // namespace timecache::server
