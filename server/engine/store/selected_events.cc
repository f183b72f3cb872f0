#include "server/engine/store/selected_events.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace timecache::server {

int SelectedEvents::IndexFrom(int place) const {
  if (batch == nullptr) return 0;
  if (places == nullptr) return std::min(place, batch->size());
  return static_cast<int>(std::lower_bound(places->begin(), places->end(),
                                           static_cast<uint32_t>(place)) -
                          places->begin());
}

SelectedEvents SelectedEvents::From(int place) const {
  if (place == 0) return *this;
  SelectedEvents rest;
  rest.size = size - place;
  const int index = IndexFrom(place);
  if (index == count()) return rest;
  rest.batch = index == 0 ? batch : batch->Part(index, batch->size());
  if (places == nullptr) return rest;
  std::vector<uint32_t> less(places->begin() + index, places->end());
  for (uint32_t& each : less) each -= static_cast<uint32_t>(place);
  rest.places = std::make_shared<const std::vector<uint32_t>>(std::move(less));
  return rest;
}

SelectedEvents SelectByPrefix(const std::shared_ptr<const EventBatch>& batch,
                              absl::string_view key_prefix) {
  const absl::string_view common = batch->common_prefix();
  if (absl::StartsWith(common, key_prefix)) return batch;
  SelectedEvents selected;
  selected.size = batch->size();
  if (!absl::StartsWith(key_prefix, common)) return selected;
  std::vector<int> indexes;
  for (int i = 0; i < batch->size(); ++i) {
    if (absl::StartsWith(batch->key(i), key_prefix)) indexes.push_back(i);
  }
  if (indexes.empty()) return selected;
  selected.batch = batch->Select(indexes);
  selected.places = std::make_shared<const std::vector<uint32_t>>(
      indexes.begin(), indexes.end());
  return selected;
}

void Selections::Make(const std::shared_ptr<const EventBatch>& batch) {
  if (made_.try_emplace(batch.get(), SelectByPrefix(batch, key_prefix_))
          .second) {
    kept_.push_back(batch);
  }
}

SelectedEvents Selections::Of(
    const std::shared_ptr<const EventBatch>& batch) const {
  if (key_prefix_.empty()) return batch;
  const auto it = made_.find(batch.get());
  return it != made_.end() ? it->second : SelectByPrefix(batch, key_prefix_);
}

}  // namespace timecache::server
