// The unsettled events of a consumer group that is being rebuilt.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_KEPT_EVENTS_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_KEPT_EVENTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/event_batch.h"
#include "server/engine/store/selected_events.h"

namespace timecache::server {

// A batch, and which of its events are kept.
struct KeptBatch {
  std::shared_ptr<const EventBatch> batch;
  // The number of its first event, or one below that.
  uint64_t first = 0;
  // The number of each less `first`, in order; empty: they follow each other.
  std::vector<uint32_t> places;
  // Which are not kept; empty: all are.
  std::vector<bool> settled;
  int kept = 0;

  uint64_t number(int i) const {
    return first + (places.empty() ? static_cast<uint64_t>(i)
                                   : places[static_cast<size_t>(i)]);
  }
  bool keeps(int i) const {
    return settled.empty() || !settled[static_cast<size_t>(i)];
  }
  // The index of the first event whose number is not below this; size() if
  // there is none.
  int IndexFrom(uint64_t number) const;
  void Settle(int i);
};

// Takes less memory than the events of a working group, which have an entry
// each: batches are shared with the log, until half of one is settled. Not
// thread-safe. Append is O(1), all else O(log batches) and the events that are
// named.
class KeptEvents {
 public:
  explicit KeptEvents(absl::string_view map) : map_(map) {}

  // A batch after all others, whose events before number `from` are not kept.
  void Append(uint64_t first, const SelectedEvents& batch, uint64_t from);
  // One event. Costs least in the order of their numbers. No change if it is
  // kept.
  void Insert(uint64_t number, const ExpiredEvent& event, const Death& death);
  // Those from `first` to before `end` are not kept any more.
  void Remove(uint64_t first, uint64_t end);
  // None is kept from this one on.
  void CutFrom(uint64_t number);
  // How many are kept from this one on.
  uint64_t CountFrom(uint64_t number) const;
  void Visit(uint64_t first, uint64_t end,
             absl::FunctionRef<void(uint64_t number)> visit) const;
  uint64_t size() const { return size_; }

  std::vector<KeptBatch> Take();

 private:
  using Batches = std::map<uint64_t, KeptBatch>;

  // The first that may have an event from this number on.
  template <typename Map>
  static auto FirstFrom(Map* batches, uint64_t number);
  bool FitsOpen(uint64_t number, const ExpiredEvent& event,
                const Death& death) const;
  void Seal();

  const std::string map_;
  // By a number that is not above the first event's, and above all events of
  // the batch before.
  Batches batches_;
  uint64_t size_ = 0;
  // The batch that Insert still adds to, and its place; null if there is none.
  std::shared_ptr<EventBatch> open_;
  uint64_t open_first_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_KEPT_EVENTS_H_
