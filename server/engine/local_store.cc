#include <utility>

#include "server/engine/map/time_cache_map.h"
#include "server/engine/store.h"

namespace timecache {
namespace {

void Refuse(const absl::Status& error, absl::Span<Result> results) {
  for (Result& result : results) {
    result.Clear();
    result.status = error;
  }
}

// Whether the one operation that a call counts as may be.
absl::Status AdmitOne(TimeCacheMap* map, int64_t now_us) {
  return map->Admit(1, now_us) == 1 ? absl::OkStatus() : map->RateError(now_us);
}

}  // namespace

void LocalStore::Execute(absl::string_view name,
                         absl::Span<const Operation> operations,
                         absl::Span<Result> results, Done done) {
  const auto map = registry_->Find(name);
  if (map.ok()) {
    const int64_t now_us = clock_->NowUs();
    const size_t admitted = (*map)->Admit(operations.size(), now_us);
    if (admitted < operations.size()) {
      Refuse((*map)->RateError(now_us), results.subspan(admitted));
    }
    if (admitted == 1) {
      (*map)->Apply(operations[0], now_us, &results[0]);
    } else {
      (*map)->ApplyBatch(operations.subspan(0, admitted), now_us,
                         results.subspan(0, admitted));
    }
  }
  done(map.status());
}

void LocalStore::GetSize(absl::string_view name, MapSize* size, Done done) {
  const auto map = registry_->Find(name);
  absl::Status status = map.status();
  if (status.ok()) {
    const int64_t now_us = clock_->NowUs();
    status = AdmitOne(map->get(), now_us);
    if (status.ok()) *size = (*map)->GetSize(now_us);
  }
  done(std::move(status));
}

void LocalStore::Scan(absl::string_view name, absl::string_view prefix,
                      int max_entries, int64_t max_bytes, ScanPlace* place,
                      bool* more, const EntryVisitor& visit, Done done) {
  const auto map = registry_->Find(name);
  absl::Status status = map.status();
  if (status.ok()) {
    const int64_t now_us = clock_->NowUs();
    // A walk counts where it begins.
    if (place->begins()) status = AdmitOne(map->get(), now_us);
    if (status.ok()) {
      *more =
          (*map)->Scan(prefix, now_us, max_entries, max_bytes, place, visit);
    }
  }
  done(std::move(status));
}

}  // namespace timecache
