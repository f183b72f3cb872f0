// A reader of a slot's maps, which ends when this node does not serve the slot any more.

#ifndef TIMECACHED_SERVER_PEER_SLOT_READER_H_
#define TIMECACHED_SERVER_PEER_SLOT_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/base/clock.h"
#include "server/engine/store/expiry_types.h"
#include "server/engine/store/readers.h"
#include "server/peer/slot_map.h"

namespace timecache::server {

// Passes on what `reader` reads while the slot is served. From then on it is closed, with
// UNAVAILABLE (NOT_OWNER), where it stood: so a watch that goes on by its token at the
// next owner loses nothing. It is woken for that, beyond what EventReader says of wakes.
// Keeps the slot's maps, and reads by their clock.
class SlotReader final : public EventReader {
 public:
  enum class Of : uint8_t { kLog, kGroup };
  // `slots`, not owned, must outlive it.
  SlotReader(SlotMap* slots, size_t slot, std::shared_ptr<Store> maps, Of of,
             std::unique_ptr<EventReader> reader, std::function<void()> wake);
  ~SlotReader() override;
  SlotReader(const SlotReader&) = delete;
  SlotReader& operator=(const SlotReader&) = delete;

  using EventReader::Read;
  EventChunk Read(int64_t now_us, int max_events, int64_t max_bytes,
                  bool at_least_one) override;
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override;
  bool refreshes_later() const override { return reader_->refreshes_later(); }
  absl::Status WhyClosed() const override;
  int64_t NextDueUs() const override;
  void CountDelivery(int64_t lateness_us, uint64_t events) override;
  void StopReading() override { reader_->StopReading(); }
  void Leave(int64_t now_us, StreamEnd end) override {
    reader_->Leave(NowOf(now_us), end);
  }

 private:
  // By the maps' clock.
  int64_t NowOf(int64_t now_us) const {
    return clock_ == nullptr ? now_us : clock_->NowUs();
  }
  EventChunk ReadServed(int64_t now_us, int max_events, int64_t max_bytes,
                        bool at_least_one);

  SlotMap& slots_;
  const size_t slot_;
  // The reader ends before these.
  const std::shared_ptr<Store> maps_;
  const std::unique_ptr<EventReader> reader_;
  const Clock* const clock_;
  const uint64_t wake_;
  // Where it stood after the last Read.
  EventChunk place_;
  // Whether that is known; of a group nobody asks.
  bool begun_;
  bool lost_ = false;
};

// The error of calls and readers of a slot that another node serves; with the metadata
// owner_address if that is known.
absl::Status SlotNotServed(const SlotMap& slots, size_t slot);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_SLOT_READER_H_
