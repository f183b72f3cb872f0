#include "server/rpc/watch/event_filters.h"

#include <utility>

#include "server/base/check.h"
#include "server/rpc/watch/event_codec.h"

namespace timecache::server {
namespace {

// Whether both refer to the same object, alive or not.
template <typename T, typename U>
bool IsSame(const T& a, const U& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

PassedEvents PassedEvents::Written(std::shared_ptr<const EventBatch> batch) {
  auto bytes =
      std::make_shared<SharedBytes>(batch, batch->encoded(), batch->bytes());
  return {std::move(batch), std::move(bytes)};
}

PassedEvents EventFilter::Apply(const BatchRef& batch) const {
  return filters_->Apply(*this, batch);
}

EventFilters::~EventFilters() {
  absl::MutexLock lock(&mu_);
  TIMECACHED_CHECK(filters_.empty());
}

std::shared_ptr<const EventFilter> EventFilters::Find(
    absl::string_view key_prefix, bool keys_only) {
  absl::MutexLock lock(&mu_);
  auto& found = filters_[{std::string(key_prefix), keys_only}];
  if (auto filter = found.lock()) return filter;
  const std::shared_ptr<const EventFilter> filter(
      new EventFilter(this, key_prefix, keys_only),
      [this](const EventFilter* last) { Delete(last); });
  found = filter;
  return filter;
}

void EventFilters::Delete(const EventFilter* filter) {
  {
    absl::MutexLock lock(&mu_);
    const auto it = filters_.find({filter->key_prefix_, filter->keys_only_});
    // Another one may have taken its place.
    if (it != filters_.end() && it->second.expired()) filters_.erase(it);
  }
  delete filter;
}

PassedEvents EventFilters::Apply(const EventFilter& filter,
                                 const BatchRef& batch) {
  const bool passes_all = filter.key_prefix_.empty() && !filter.keys_only_;
  // One for the watch that asks.
  const bool shared = !passes_all && filter.weak_from_this().use_count() > 1;
  if (shared) {
    PassedEvents found = FindResult(filter, batch);
    if (found.batch != nullptr) return found;
  }
  BatchRef passed = Filter(batch, filter.key_prefix_, filter.keys_only_);
  if (passed == batch) return {std::move(passed), nullptr};
  PassedEvents filtered = PassedEvents::Written(std::move(passed));
  if (shared) Keep(filter, batch, filtered);
  return filtered;
}

PassedEvents EventFilters::FindResult(const EventFilter& filter,
                                      const BatchRef& batch) {
  absl::MutexLock lock(&mu_);
  const auto it = by_key_.find({batch.get(), &filter});
  if (it == by_key_.end()) return {};
  const Results::iterator result = it->second;
  if (!IsSame(result->batch, batch) ||
      !IsSame(result->filter, filter.weak_from_this())) {
    Drop(result);
    return {};
  }
  results_.splice(results_.begin(), results_, result);
  ++found_count_;
  return result->filtered;
}

void EventFilters::Keep(const EventFilter& filter, const BatchRef& batch,
                        const PassedEvents& filtered) {
  const Key key = {batch.get(), &filter};
  const int64_t bytes = filtered->bytes();
  absl::MutexLock lock(&mu_);
  ++filtered_count_;
  const auto it = by_key_.find(key);
  if (it != by_key_.end()) Drop(it->second);
  results_.push_front({key, batch, filter.weak_from_this(), filtered, bytes});
  by_key_[key] = results_.begin();
  bytes_ += bytes;
  while (bytes_ > kMaxBytes || results_.size() > kMaxResults) {
    Drop(std::prev(results_.end()));
  }
}

void EventFilters::Drop(Results::iterator result) {
  bytes_ -= result->bytes;
  by_key_.erase(result->key);
  results_.erase(result);
}

EventFilters::Statistics EventFilters::GetStatistics() const {
  absl::MutexLock lock(&mu_);
  return {filters_.size(), results_.size(), bytes_, filtered_count_,
          found_count_};
}

}  // namespace timecache::server
