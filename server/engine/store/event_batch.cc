#include "server/engine/store/event_batch.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "server/base/check.h"

namespace timecache::server {
namespace {

// A header of fixed size, the key, the value.
class PlainFormat final : public EventFormat {
 public:
  std::string Frame(absl::string_view /*map*/,
                    const Death& /*death*/) const override {
    return "";
  }

  size_t MaxOverhead(absl::string_view /*frame*/) const override {
    return sizeof(Header);
  }

  char* Write(absl::string_view /*frame*/, const ExpiredEvent& event,
              char* to) const override {
    const Header header = {event.version,
                           event.put_us,
                           event.deadline_us,
                           event.create_us,
                           event.own_ttl_us,
                           static_cast<uint32_t>(event.value.size()),
                           static_cast<uint16_t>(event.key.size()),
                           event.parts};
    std::memcpy(to, &header, sizeof(header));
    to = std::copy(event.key.begin(), event.key.end(), to + sizeof(header));
    return std::copy(event.value.begin(), event.value.end(), to);
  }

  ExpiredEvent Read(absl::string_view /*frame*/,
                    const char* from) const override {
    Header header;
    std::memcpy(&header, from, sizeof(header));
    from += sizeof(header);
    return {absl::string_view(from, header.key_bytes),
            absl::string_view(from + header.key_bytes, header.value_bytes),
            header.version,
            header.put_us,
            header.deadline_us,
            header.parts,
            header.create_us,
            header.own_ttl_us};
  }

  // The event in Write's format, its id and the attempts.
  std::string WriteDeadLetter(absl::string_view frame,
                              const ExpiredEvent& event,
                              const DeadLetterNote& note) const override {
    const auto attempts = static_cast<uint32_t>(note.attempts);
    std::string out(sizeof(Header) + event.key.size() + event.value.size() +
                        sizeof(note.event_id) + sizeof(attempts),
                    '\0');
    char* const to = Write(frame, event, out.data());
    std::memcpy(to, &note.event_id, sizeof(note.event_id));
    std::memcpy(to + sizeof(note.event_id), &attempts, sizeof(attempts));
    return out;
  }

 private:
  struct Header {
    uint64_t version;
    int64_t put_us;
    int64_t deadline_us;
    int64_t create_us;
    int64_t own_ttl_us;
    uint32_t value_bytes;
    uint16_t key_bytes;
    bool parts;
  };
};

size_t PayloadBytes(const ExpiredEvent& event) {
  return event.key.size() + event.value.size();
}

}  // namespace

const EventFormat* EventFormat::Plain() {
  static const PlainFormat format;
  return &format;
}

EventBatch::EventBatch(absl::string_view map, const Death& death,
                       const EventFormat* format)
    : death_(death),
      format_(format),
      frame_(format->Frame(map, death)),
      max_overhead_(format->MaxOverhead(frame_)) {}

EventBatch::EventBatch(SameEvents, const EventBatch& other)
    : death_(other.death_),
      format_(other.format_),
      frame_(other.frame_),
      max_overhead_(other.max_overhead_) {}

std::shared_ptr<const EventBatch> EventBatch::Select(
    absl::Span<const int> events) const {
  const std::shared_ptr<EventBatch> batch(new EventBatch(SameEvents(), *this));
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
      most * max_overhead_ +
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
  const size_t most = used_ + max_overhead_ + PayloadBytes(event);
  if (most > capacity_) SetCapacity(std::max(most, 2 * capacity_));
  char* const to = data_.get() + used_;
  const char* const end = format_->Write(frame_, event, to);
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
  return static_cast<int64_t>(sizeof(*this) + frame_.capacity() + capacity_ +
                              offsets_.capacity() * sizeof(offsets_[0]));
}

}  // namespace timecache::server
