#include "server/engine/local_store.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/engine/change_waits.h"
#include "server/engine/store/atomic.h"
#include "server/engine/store/partitions.h"
#include "server/engine/store/stale_names.h"

namespace timecache::server {
namespace {

// Maps of a list that are looked at together.
constexpr size_t kListStep = 256;

NamespaceInfo Describe(TimeCacheMap* map, const Clock& clock,
                       bool include_statistics = false) {
  NamespaceInfo info;
  info.name = map->name();
  info.options = map->options();
  if (include_statistics) {
    info.statistics = std::make_unique<const NamespaceStatistics>(
        map->GetStatistics(clock.NowUs()));
  }
  return info;
}

void Refuse(const absl::Status& error, absl::Span<Result> results) {
  for (Result& result : results) {
    result.Clear();
    result.status = error;
  }
}

// Of operations that were applied, fails those whose keys have changes that
// could not be stored.
void RefuseUnkept(const absl::Status& error, TimeCacheMap* map,
                  absl::Span<Result> results) {
  uint64_t refused = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].waits || !results[i].status.ok() ||
        map->change_log()->IsKept(results[i].position)) {
      continue;
    }
    Refuse(error, results.subspan(i, 1));
    ++refused;
  }
  CountRefused(error, refused, map);
}

// While the log has no room, only reads are applied.
void ApplyReads(TimeCacheMap* map, absl::Span<const Operation> operations,
                int64_t now_us, const absl::Status& error,
                absl::Span<Result> results, BatchProgress* progress) {
  const bool sliding = map->options().sliding;
  uint64_t refused = 0;
  for (size_t i = progress->begun; i < operations.size(); ++i) {
    if (i < progress->reached && !results[i].waits) continue;
    if (Writes(operations[i], sliding)) {
      Refuse(error, results.subspan(i, 1));
      ++refused;
    } else {
      map->Apply(operations[i], now_us, &results[i]);
    }
  }
  progress->reached = operations.size();
  progress->done = true;
  CountRefused(error, refused, map);
}

// The same of an atomic batch that writes. Returns whether it does.
bool RefuseWrites(TimeCacheMap* map, absl::Span<const Operation> operations,
                  const absl::Status& error, absl::Span<Result> results) {
  const bool sliding = map->options().sliding;
  uint64_t refused = 0;
  for (size_t i = 0; i < operations.size(); ++i) {
    results[i].Clear();
    if (!Writes(operations[i], sliding)) continue;
    results[i].status = error;
    ++refused;
  }
  if (refused == 0) return false;
  AbortOthers(results);
  CountRefused(error, refused, map);
  return true;
}

void Apply(TimeCacheMap* map, absl::Span<const Operation> operations,
           int64_t now_us, absl::Span<Result> results,
           BatchProgress* progress) {
  if (operations.size() > 1) {
    return map->ApplyBatch(operations, now_us, results, progress);
  }
  if (!operations.empty()) map->Apply(operations[0], now_us, &results[0]);
  progress->reached = operations.size();
  progress->done = true;
}

// Whether the rate limit permits the one operation that a call counts as.
absl::Status AdmitOne(TimeCacheMap* map, int64_t now_us) {
  return map->Admit(1, now_us) == 1 ? absl::OkStatus() : map->RateError(now_us);
}

// Of a namespace that has not as many partitions as its caller believes.
absl::Status StaleCount(absl::string_view namespace_name) {
  return MarkStale(ErrorWithReason(
      absl::StatusCode::kNotFound, Reason::kNamespaceNotFound,
      absl::StrCat("namespace ", namespace_name,
                   " was made anew, with another number of partitions")));
}

// Whether a map that is to be made is called by what its options say.
bool IsCalledBy(absl::string_view name, const NamespaceOptions& options) {
  const int count = PlaceOf(name).count;
  return options.num_partitions == (count == 0 ? 1 : count);
}

}  // namespace

MapOr LocalStore::Find(absl::string_view name) const {
  if (names_ == Names::kOfMaps) return registry_->Find(name);
  const absl::string_view map_name = MapNameOf(name);
  MapOr map = registry_->Find(map_name);
  const PartitionPlace place = PlaceOf(name);
  if (map.ok()) {
    const int count = place.count == 0 ? 1 : place.count;
    if ((*map)->num_partitions() == count) return map;
    return StaleCount(place.namespace_name);
  }
  if (!absl::IsNotFound(map.status())) return map;
  return MarkStale(map.status());
}

// --- Entries.

void LocalStore::Execute(absl::string_view name,
                         absl::Span<const Operation> operations,
                         absl::Span<Result> results, BatchProgress* progress,
                         Done done) {
  const auto map = Find(name);
  if (!map.ok()) return done(map.status());
  const int64_t now_us = clock_->NowUs();
  BatchProgress whole;
  whole.in_turns = false;
  BatchProgress& at = progress != nullptr ? *progress : whole;
  if (!at.admitted.has_value()) {
    const bool letter = operations.size() == 1 && operations[0].letter;
    at.admitted = letter ? 1 : (*map)->Admit(operations.size(), now_us);
    if (*at.admitted < operations.size()) {
      Refuse((*map)->RateError(now_us), results.subspan(*at.admitted));
    }
  }
  operations = operations.subspan(0, *at.admitted);
  results = results.subspan(0, *at.admitted);
  const size_t first = at.begun;
  ChangeLog* const log = (*map)->change_log();
  const absl::Status room =
      log == nullptr ? absl::OkStatus() : log->CheckRoom();
  if (room.ok()) {
    do {
      Apply(map->get(), operations, now_us, results, &at);
    } while (!at.in_turns && !at.done);
  } else {
    ApplyReads(map->get(), operations, now_us, room, results, &at);
  }
  if (log == nullptr) return done(absl::OkStatus());
  results = results.subspan(first, at.reached - first);
  uint64_t position = 0;
  for (const Result& result : results) {
    if (!result.waits) position = std::max(position, result.position);
  }
  if (at.done && at.on_applied && !log->IsKept(position)) at.on_applied();
  log->WhenKept(position, [map = *map, results, done = std::move(done)](
                              const absl::Status& status) mutable {
    if (!status.ok()) RefuseUnkept(status, map.get(), results);
    done(absl::OkStatus());
  });
}

void LocalStore::ExecuteAtomic(absl::string_view name,
                               absl::Span<const Operation> operations,
                               absl::Span<Result> results, Done done) {
  const auto map = Find(name);
  if (!map.ok()) return done(map.status());
  const int64_t now_us = clock_->NowUs();
  if (!(*map)->AdmitAll(operations.size(), now_us)) {
    Refuse((*map)->RateError(now_us, operations.size()), results);
    return done(absl::OkStatus());
  }
  ChangeLog* const log = (*map)->change_log();
  if (log != nullptr) {
    const absl::Status room = log->CheckRoom();
    if (!room.ok() && RefuseWrites(map->get(), operations, room, results)) {
      return done(absl::OkStatus());
    }
  }
  absl::Status status = (*map)->ApplyAtomic(operations, now_us, results);
  if (!status.ok() || log == nullptr) return done(std::move(status));
  uint64_t position = 0;
  for (const Result& result : results) {
    position = std::max(position, result.position);
  }
  log->WhenKept(position,
                [map = *map, position, results,
                 done = std::move(done)](const absl::Status& kept) mutable {
                  if (!kept.ok() && !map->change_log()->IsKept(position)) {
                    CountRefused(kept, results.size(), map.get());
                    Refuse(kept, results);
                  }
                  done(absl::OkStatus());
                });
}

void LocalStore::GetSize(absl::string_view name, DoneWith<NamespaceSize> done) {
  const auto map = Find(name);
  if (!map.ok()) return done(map.status());
  const int64_t now_us = clock_->NowUs();
  absl::Status admitted = AdmitOne(map->get(), now_us);
  if (!admitted.ok()) return done(std::move(admitted));
  const NamespaceSize size = (*map)->GetSize(now_us);
  WhenKept(*map, std::move(done), size, &ChangeLog::WhenEntriesKept);
}

void LocalStore::Scan(absl::string_view name, absl::string_view prefix,
                      int max_entries, int64_t max_bytes,
                      ScanPosition* position, bool* more, EntryVisitor visit,
                      Done done) {
  const auto map = Find(name);
  absl::Status status = map.status();
  if (status.ok()) {
    const int64_t now_us = clock_->NowUs();
    // A walk counts at its first step.
    if (!position->begun) status = AdmitOne(map->get(), now_us);
    if (status.ok()) status = (*map)->BeginScan(position);
    if (status.ok()) {
      *more =
          (*map)->Scan(prefix, now_us, max_entries, max_bytes, position, visit);
      return WhenKept(*map, std::move(done), absl::OkStatus(),
                      &ChangeLog::WhenEntriesKept);
    }
  }
  done(std::move(status));
}

// --- Namespaces.

void LocalStore::CreateNamespace(absl::string_view name,
                                 NamespaceOptions options,
                                 DoneWith<NamespaceInfo> done) {
  if (names_ == Names::kAddresses && !IsCalledBy(name, options)) {
    absl::Status status =
        ValidateNamespace(PlaceOf(name).namespace_name, options);
    if (status.ok()) {
      status = InvalidField("num_partitions", "is not that of the address");
    }
    return done(std::move(status));
  }
  const MapOr map = registry_->Create(MapNameOf(name), options);
  if (!map.ok()) return done(map.status());
  NamespaceInfo info = Describe(map->get(), *clock_);
  info.warnings = registry_->Warnings((*map)->name());
  WhenKept(*map, std::move(done), std::move(info));
}

void LocalStore::GetNamespace(absl::string_view name, bool include_statistics,
                              DoneWith<NamespaceInfo> done) {
  // By a namespace's name, however many partitions it has.
  const MapOr map =
      PlaceOf(name).count == 0 ? registry_->Find(name) : Find(name);
  if (!map.ok()) return done(map.status());
  done(Describe(map->get(), *clock_, include_statistics));
}

// Requests one more than the page holds, to detect the last page.
void LocalStore::ListNamespaces(ListQuery query,
                                DoneWith<Page<NamespaceInfo>> done) {
  Page<NamespaceInfo> page;
  std::string after = std::move(query.after);
  int shards = 0;
  for (;;) {
    const auto maps = registry_->ListAfter(after, kListStep);
    for (const auto& map : maps) {
      if (query.namespaces_only && map->partition() != 0) continue;
      if (query.visible && !query.visible(map->name())) continue;
      if (page.items.size() == query.most || shards >= kMaxListedShards) {
        page.more = true;
        return done(std::move(page));
      }
      page.items.push_back(
          Describe(map.get(), *clock_, query.include_statistics));
      if (query.include_statistics) {
        shards += page.items.back().options.num_shards;
      }
    }
    if (maps.size() < kListStep) return done(std::move(page));
    after = maps.back()->name();
  }
}

void LocalStore::UpdateNamespace(absl::string_view name,
                                 OptionsChange<NamespaceOptions> change,
                                 DoneWith<NamespaceInfo> done) {
  MapOr map = WithRoom(Find(name));
  if (map.ok()) map = registry_->Update((*map)->name(), change);
  if (!map.ok()) return done(map.status());
  NamespaceInfo info = Describe(map->get(), *clock_);
  info.warnings = registry_->Warnings((*map)->name());
  WhenKept(*map, std::move(done), std::move(info));
}

void LocalStore::DeleteNamespace(absl::string_view name, Done done) {
  const MapOr map = Find(name);
  if (!map.ok()) return done(map.status());
  std::shared_ptr<TimeCacheMap> deleted;
  absl::Status status = registry_->Delete((*map)->name(), &deleted);
  if (!status.ok()) return done(std::move(status));
  WhenKept(std::move(deleted), std::move(done), std::move(status));
}

void LocalStore::RotateNamespace(absl::string_view name,
                                 DoneWith<int64_t> done) {
  const MapOr map = WithRoom(Find(name));
  if (!map.ok()) return done(map.status());
  const int64_t died = (*map)->Rotate(clock_->NowUs());
  WhenKept(*map, std::move(done), died);
}

void LocalStore::GetDeaths(absl::string_view name, DeathsQuery query,
                           DoneWith<DeathsAhead> done) {
  const MapOr map = Find(name);
  if (!map.ok()) return done(map.status());
  done((*map)->GetDeaths(query, clock_->NowUs()));
}

void LocalStore::GetHotKeys(absl::string_view name, size_t max_keys,
                            DoneWith<HotKeys> done) {
  const MapOr map = Find(name);
  if (!map.ok()) return done(map.status());
  done((*map)->GetHotKeys(max_keys, clock_->NowUs()));
}

// --- Of this process.

StoreUsage LocalStore::GetUsage() const {
  const RegistryLimits limits = registry_->limits();
  const auto maps = registry_->List();
  StoreUsage usage;
  usage.max_namespaces = limits.max_namespaces;
  for (const auto& map : maps) {
    if (map->partition() == 0) ++usage.namespaces;
    const NamespaceSize size = map->CountedSize();
    usage.entries += size.entries;
    usage.bytes += size.bytes;
  }
  usage.max_entries = limits.max_entries;
  usage.max_bytes = limits.max_bytes;
  return usage;
}

void LocalStore::SetDeadLetterRight(DeadLetterRight right) {
  registry_->SetDeadLetterRight(std::move(right));
}

}  // namespace timecache::server
