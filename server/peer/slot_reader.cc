#include "server/peer/slot_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace timecache::server {

absl::Status SlotNotServed(const SlotMap& slots, size_t slot) {
  ErrorMetadata metadata;
  std::string owner = slots.OwnerAddress(slot);
  if (!owner.empty()) metadata["owner_address"] = std::move(owner);
  return ErrorWithReason(
      absl::StatusCode::kUnavailable, Reason::kNotOwner,
      absl::StrCat("this node does not serve slot ", slot,
                   " of the cluster, which the namespace, or a partition of "
                   "it, is in: try again"),
      metadata);
}

SlotReader::SlotReader(SlotMap* slots, size_t slot, std::shared_ptr<Store> maps,
                       Of of, std::unique_ptr<EventReader> reader,
                       std::function<void()> wake)
    : slots_(*slots),
      slot_(slot),
      maps_(std::move(maps)),
      reader_(std::move(reader)),
      clock_(slots_.ClockOf(slot, *maps_)),
      wake_(slots_.WhenServedNoMore(slot, *maps_, std::move(wake))),
      begun_(of == Of::kGroup) {}

SlotReader::~SlotReader() { slots_.Forget(slot_, wake_); }

EventChunk SlotReader::Read(int64_t now_us, int max_events, int64_t max_bytes,
                            bool at_least_one) {
  if (!std::exchange(begun_, true)) {
    // Where it stands at the start, if it ends before it has read anything.
    EventChunk first = ReadServed(now_us, 0, 0, false);
    const bool content = !first.batches.empty() || !first.deliveries.empty() ||
                         first.lost > 0 || first.all_delivered || first.closed;
    if (content) {
      first.more = !first.closed;
      return first;
    }
  }
  return ReadServed(now_us, max_events, max_bytes, at_least_one);
}

EventChunk SlotReader::ReadServed(int64_t now_us, int max_events,
                                  int64_t max_bytes, bool at_least_one) {
  EventChunk chunk;
  if (!lost_) {
    chunk = reader_->Read(NowOf(now_us), max_events, max_bytes, at_least_one);
    // Afterwards: what was read is of a time at which the slot was served.
    lost_ = !slots_.Serves(slot_, *maps_);
  }
  if (lost_) {
    chunk = place_;
    chunk.closed = true;
    return chunk;
  }
  place_.watermark_us = chunk.watermark_us;
  place_.delivered_us = chunk.delivered_us;
  place_.arrived_us = chunk.arrived_us;
  place_.point = chunk.point;
  place_.points = chunk.points;
  return chunk;
}

void SlotReader::RefreshWatermark(int64_t now_us, int64_t max_age_us) {
  if (!lost_) reader_->RefreshWatermark(NowOf(now_us), max_age_us);
}

absl::Status SlotReader::WhyClosed() const {
  return lost_ ? SlotNotServed(slots_, slot_) : reader_->WhyClosed();
}

int64_t SlotReader::NextDueUs() const {
  return lost_ ? kNeverUs : reader_->NextDueUs();
}

void SlotReader::CountDelivery(int64_t lateness_us, uint64_t events) {
  reader_->CountDelivery(lateness_us, events);
}

}  // namespace timecache::server
