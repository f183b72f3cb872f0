#include "server/engine/store.h"

namespace timecache {

void LocalStore::Execute(absl::string_view name,
                         absl::Span<const Operation> operations,
                         absl::Span<Result> results, Done done) {
  const auto map = registry_->Find(name);
  if (map.ok()) {
    const int64_t now_us = clock_->NowUs();
    if (operations.size() == 1) {
      (*map)->Apply(operations[0], now_us, &results[0]);
    } else {
      (*map)->ApplyBatch(operations, now_us, results);
    }
  }
  done(map.status());
}

void LocalStore::GetSize(absl::string_view name, TimeCacheMap::Size* size,
                         Done done) {
  const auto map = registry_->Find(name);
  if (map.ok()) *size = (*map)->GetSize(clock_->NowUs());
  done(map.status());
}

void LocalStore::Scan(absl::string_view name, absl::string_view prefix,
                      int max_entries, int64_t max_bytes,
                      TimeCacheMap::ScanPlace* place, bool* more,
                      const TimeCacheMap::Visitor& visit, Done done) {
  const auto map = registry_->Find(name);
  if (map.ok()) {
    *more = (*map)->Scan(prefix, clock_->NowUs(), max_entries, max_bytes, place,
                         visit);
  }
  done(map.status());
}

}  // namespace timecache
