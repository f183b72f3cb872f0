// The events of a batch whose keys begin with a prefix.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_SELECTED_EVENTS_H_
#define TIMECACHED_SERVER_ENGINE_STORE_SELECTED_EVENTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/event_batch.h"

namespace timecache::server {

struct SelectedEvents {
  SelectedEvents() = default;
  // All of a batch, which is one. NOLINTNEXTLINE(google-explicit-constructor)
  SelectedEvents(std::shared_ptr<const EventBatch> all)
      : size(all->size()), batch(std::move(all)) {}

  // The index of the first whose place is not below this one.
  int IndexFrom(int place) const;
  int count() const { return batch == nullptr ? 0 : batch->size(); }
  // The same of the rest of the whole batch, from this place on. Copies events,
  // unless it is 0.
  SelectedEvents From(int place) const;

  // Events of the whole batch.
  int size = 0;
  // The selected ones; null: there are none.
  std::shared_ptr<const EventBatch> batch;
  // The place of each in the whole batch; null: all are selected.
  std::shared_ptr<const std::vector<uint32_t>> places;
};

// O(1) if all keys, or none, begin with it by what they have in common,
// otherwise O(events), and a copy of those that do.
SelectedEvents SelectByPrefix(const std::shared_ptr<const EventBatch>& batch,
                              absl::string_view key_prefix);

// Selections that were made before, so that none is made under a lock. Not
// thread-safe.
class Selections {
 public:
  explicit Selections(absl::string_view key_prefix) : key_prefix_(key_prefix) {}

  const std::string& key_prefix() const { return key_prefix_; }
  void Make(const std::shared_ptr<const EventBatch>& batch);
  // Makes it, if it has not been made.
  SelectedEvents Of(const std::shared_ptr<const EventBatch>& batch) const;

 private:
  std::string key_prefix_;
  absl::flat_hash_map<const EventBatch*, SelectedEvents> made_;
  // So that no other batch has the address of one of them.
  std::vector<std::shared_ptr<const EventBatch>> kept_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_SELECTED_EVENTS_H_
