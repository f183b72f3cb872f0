// The filters of watches, evaluated once for all watches with the same filter.

#ifndef TIMECACHED_SERVER_RPC_WATCH_EVENT_FILTERS_H_
#define TIMECACHED_SERVER_RPC_WATCH_EVENT_FILTERS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/edge/response/shared_bytes.h"
#include "server/engine/store/event_batch.h"

namespace timecache::server {

class EventFilters;

// The events that pass a filter.
struct PassedEvents {
  std::shared_ptr<const EventBatch> batch;
  // For `batch`, if it was encoded for watches; null if it is the filtered
  // batch itself, which others keep anyway.
  std::shared_ptr<SharedBytes> bytes;

  // The bytes encoded for watches.
  static PassedEvents Written(std::shared_ptr<const EventBatch> batch);
  const EventBatch* operator->() const { return batch.get(); }
};

// A key prefix and whether values are left out. Thread-safe.
class EventFilter : public std::enable_shared_from_this<EventFilter> {
 public:
  using BatchRef = std::shared_ptr<const EventBatch>;

  // The events of `batch` that pass; the batch itself if all of it does.
  PassedEvents Apply(const BatchRef& batch) const;

 private:
  friend class EventFilters;
  EventFilter(EventFilters* filters, absl::string_view key_prefix,
              bool keys_only)
      : filters_(filters), key_prefix_(key_prefix), keys_only_(keys_only) {}

  EventFilters* const filters_;
  const std::string key_prefix_;
  const bool keys_only_;
};

// The filters in use, by content, and the results of the last batches for
// filters that several watches share: a thousand such watches filter and encode
// each batch once. Results are dropped in the order of their last use.
//
// Thread-safe. Must outlive its filters.
class EventFilters {
 public:
  // Bytes of the kept results, besides those that messages refer to.
  static constexpr int64_t kMaxBytes = int64_t{16} << 20;
  static constexpr size_t kMaxResults = 4096;

  EventFilters() = default;
  // Aborts the process if a filter is left.
  ~EventFilters();
  EventFilters(const EventFilters&) = delete;
  EventFilters& operator=(const EventFilters&) = delete;

  std::shared_ptr<const EventFilter> Find(absl::string_view key_prefix,
                                          bool keys_only)
      ABSL_LOCKS_EXCLUDED(mu_);

  struct Statistics {
    size_t filters = 0;
    size_t results = 0;
    int64_t bytes = 0;
    // Batches that were filtered, and that were found filtered.
    uint64_t filtered = 0;
    uint64_t found = 0;
  };
  Statistics GetStatistics() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class EventFilter;
  using BatchRef = EventFilter::BatchRef;
  // The address of a batch and of a filter. Weak references identify an entry's
  // objects, as addresses are reused.
  using Key = std::pair<const void*, const void*>;
  struct Result {
    Key key;
    std::weak_ptr<const EventBatch> batch;
    std::weak_ptr<const EventFilter> filter;
    PassedEvents filtered;
    int64_t bytes;
  };
  using Results = std::list<Result>;

  PassedEvents Apply(const EventFilter& filter, const BatchRef& batch)
      ABSL_LOCKS_EXCLUDED(mu_);
  PassedEvents FindResult(const EventFilter& filter, const BatchRef& batch)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Keep(const EventFilter& filter, const BatchRef& batch,
            const PassedEvents& filtered) ABSL_LOCKS_EXCLUDED(mu_);
  void Drop(Results::iterator result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Delete(const EventFilter* filter) ABSL_LOCKS_EXCLUDED(mu_);

  mutable absl::Mutex mu_;
  absl::flat_hash_map<std::pair<std::string, bool>,
                      std::weak_ptr<const EventFilter>>
      filters_ ABSL_GUARDED_BY(mu_);
  // The one that was used last comes first.
  Results results_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<Key, Results::iterator> by_key_ ABSL_GUARDED_BY(mu_);
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t filtered_count_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t found_count_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_EVENT_FILTERS_H_
