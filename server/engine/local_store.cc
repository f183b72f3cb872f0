#include "server/engine/local_store.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/error.h"
#include "server/engine/local_readers.h"

namespace timecache::server {
namespace {

// Maps of a list that are looked at together.
constexpr size_t kListStep = 256;
// A page of namespaces with their statistics, which lock each shard, ends
// behind so many.
constexpr int kMaxListedShards = 4'096;

using MapOr = absl::StatusOr<std::shared_ptr<TimeCacheMap>>;
using GroupOr = absl::StatusOr<std::shared_ptr<ConsumerGroup>>;

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

GroupInfo Describe(const TimeCacheMap& map, const ConsumerGroup& group,
                   bool include_statistics = false) {
  GroupInfo info;
  info.namespace_name = map.name();
  info.name = group.name();
  info.options = group.options();
  info.created_by = group.created_by();
  if (include_statistics) {
    info.statistics =
        std::make_unique<const GroupStatistics>(group.GetStatistics());
  }
  return info;
}

void Refuse(const absl::Status& error, absl::Span<Result> results) {
  for (Result& result : results) {
    result.Clear();
    result.status = error;
  }
}

// Counts operations that the change log of `map` has refused.
void CountRefused(const absl::Status& error, uint64_t operations,
                  TimeCacheMap* map) {
  const std::optional<Reason> reason = ReasonOf(error);
  if (reason == Reason::kDiskFull) {
    map->CountRefused(LimitHit::kDiskFull, operations);
  } else if (reason == Reason::kJournalBacklog) {
    map->CountRefused(LimitHit::kJournalBacklog, operations);
  }
}

// Calls `done` with `answer` once all reported changes of `map` are stored, or
// those that `waits` waits for.
template <typename Done, typename T>
void WhenKept(
    std::shared_ptr<TimeCacheMap> map, Done done, T answer,
    void (ChangeLog::*waits)(ChangeLog::Done) = &ChangeLog::WhenAllKept) {
  ChangeLog* const log = map->change_log();
  if (log == nullptr) return done(std::move(answer));
  // The log is the map's.
  (log->*waits)([map = std::move(map), done = std::move(done),
                 answer = std::move(answer)](absl::Status status) mutable {
    if (status.ok()) return done(std::move(answer));
    CountRefused(status, 1, map.get());
    done(std::move(status));
  });
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

// Finds the map if a change of its description or its groups could be stored:
// such a change is refused before it is made, or not at all.
MapOr FindToChange(const Registry& registry, absl::string_view name) {
  MapOr map = registry.Find(name);
  if (!map.ok()) return map;
  if (ChangeLog* const log = (*map)->change_log()) {
    if (absl::Status status = log->CheckRoom(); !status.ok()) {
      CountRefused(status, 1, map->get());
      return status;
    }
  }
  return map;
}

// Whether the rate limit permits the one operation that a call counts as.
absl::Status AdmitOne(TimeCacheMap* map, int64_t now_us) {
  return map->Admit(1, now_us) == 1 ? absl::OkStatus() : map->RateError(now_us);
}

}  // namespace

// --- Entries.

void LocalStore::Execute(absl::string_view name,
                         absl::Span<const Operation> operations,
                         absl::Span<Result> results, BatchProgress* progress,
                         Done done) {
  const auto map = registry_->Find(name);
  if (!map.ok()) return done(map.status());
  const int64_t now_us = clock_->NowUs();
  BatchProgress whole;
  BatchProgress& at = progress != nullptr ? *progress : whole;
  if (!at.admitted.has_value()) {
    at.admitted = (*map)->Admit(operations.size(), now_us);
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
    } while (progress == nullptr && !at.done);
  } else {
    ApplyReads(map->get(), operations, now_us, room, results, &at);
  }
  if (log == nullptr) return done(absl::OkStatus());
  results = results.subspan(first, at.reached - first);
  uint64_t position = 0;
  for (const Result& result : results) {
    if (!result.waits) position = std::max(position, result.position);
  }
  log->WhenKept(position, [map = *map, results, done = std::move(done)](
                              const absl::Status& status) mutable {
    if (!status.ok()) RefuseUnkept(status, map.get(), results);
    done(absl::OkStatus());
  });
}

void LocalStore::GetSize(absl::string_view name, DoneWith<NamespaceSize> done) {
  const auto map = registry_->Find(name);
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
  const auto map = registry_->Find(name);
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
  const MapOr map = registry_->Create(name, options);
  if (!map.ok()) return done(map.status());
  NamespaceInfo info = Describe(map->get(), *clock_);
  info.warnings = registry_->Warnings(name);
  WhenKept(*map, std::move(done), std::move(info));
}

void LocalStore::GetNamespace(absl::string_view name, bool include_statistics,
                              DoneWith<NamespaceInfo> done) {
  const MapOr map = registry_->Find(name);
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
  MapOr map = FindToChange(*registry_, name);
  if (map.ok()) map = registry_->Update(name, change);
  if (!map.ok()) return done(map.status());
  NamespaceInfo info = Describe(map->get(), *clock_);
  info.warnings = registry_->Warnings(name);
  WhenKept(*map, std::move(done), std::move(info));
}

void LocalStore::DeleteNamespace(absl::string_view name, Done done) {
  std::shared_ptr<TimeCacheMap> deleted;
  absl::Status status = registry_->Delete(name, &deleted);
  if (!status.ok()) return done(std::move(status));
  WhenKept(std::move(deleted), std::move(done), std::move(status));
}

void LocalStore::RotateNamespace(absl::string_view name,
                                 DoneWith<int64_t> done) {
  const MapOr map = FindToChange(*registry_, name);
  if (!map.ok()) return done(map.status());
  const int64_t died = (*map)->Rotate(clock_->NowUs());
  WhenKept(*map, std::move(done), died);
}

void LocalStore::GetDeaths(absl::string_view name, DeathsQuery query,
                           DoneWith<DeathsAhead> done) {
  const MapOr map = registry_->Find(name);
  if (!map.ok()) return done(map.status());
  done((*map)->GetDeaths(query, clock_->NowUs()));
}

// --- Consumer groups.

void LocalStore::CreateGroup(GroupName name, NewGroup group,
                             DoneWith<GroupInfo> done) {
  const MapOr map = FindToChange(*registry_, name.namespace_name);
  if (!map.ok()) return done(map.status());
  const GroupOr created = (*map)->groups().Create(
      name.name, group.options, group.start, clock_->NowUs(), group.created_by);
  if (!created.ok()) return done(created.status());
  WhenKept(*map, std::move(done), Describe(**map, **created));
}

void LocalStore::GetGroup(GroupName name, bool include_statistics,
                          DoneWith<GroupInfo> done) {
  const MapOr map = registry_->Find(name.namespace_name);
  if (!map.ok()) return done(map.status());
  const GroupOr group = (*map)->groups().Find(name.name);
  if (!group.ok()) return done(group.status());
  done(Describe(**map, **group, include_statistics));
}

void LocalStore::ListGroups(absl::string_view namespace_name, ListQuery query,
                            DoneWith<Page<GroupInfo>> done) {
  const MapOr map = registry_->Find(namespace_name);
  if (!map.ok()) return done(map.status());
  Page<GroupInfo> page;
  for (const auto& group : (*map)->groups().List()) {
    if (group->name() <= query.after) continue;
    if (query.visible && !query.visible(group->name())) continue;
    if (page.items.size() == query.most) {
      page.more = true;
      break;
    }
    page.items.push_back(Describe(**map, *group, query.include_statistics));
  }
  done(std::move(page));
}

void LocalStore::UpdateGroup(GroupName name, OptionsChange<GroupOptions> change,
                             DoneWith<GroupInfo> done) {
  const MapOr map = FindToChange(*registry_, name.namespace_name);
  if (!map.ok()) return done(map.status());
  const GroupOr group = (*map)->groups().Update(name.name, change);
  if (!group.ok()) return done(group.status());
  WhenKept(*map, std::move(done), Describe(**map, **group));
}

void LocalStore::DeleteGroup(GroupName name, Done done) {
  const MapOr map = registry_->Find(name.namespace_name);
  if (!map.ok()) return done(map.status());
  absl::Status status = (*map)->groups().Delete(name.name);
  WhenKept(*map, std::move(done), std::move(status));
}

void LocalStore::Settle(GroupName name,
                        absl::Span<const Settlement> settlements,
                        absl::Span<SettleResult> results, Done done) {
  const MapOr map = registry_->Find(name.namespace_name);
  if (!map.ok()) return done(map.status());
  if (ChangeLog* const log = (*map)->change_log()) {
    if (absl::Status status = log->CheckBacklog(); !status.ok()) {
      CountRefused(status, settlements.size(), map->get());
      return done(std::move(status));
    }
  }
  absl::Status status =
      (*map)->groups().Settle(name.name, settlements, clock_->NowUs(), results);
  for (const SettleResult& result : results) {
    if (!result.status.ok()) CountRefused(result.status, 1, map->get());
  }
  WhenKept(*map, std::move(done), std::move(status));
}

// --- Watches.

namespace {

using Maps = std::vector<std::shared_ptr<TimeCacheMap>>;

// Calls `done` with the readers once all reported changes of these maps are
// stored.
void WhenKept(Maps maps, Store::Readers readers,
              Store::DoneWith<Store::Readers> done) {
  while (!maps.empty() && maps.back()->change_log() == nullptr) maps.pop_back();
  if (maps.empty()) return done(std::move(readers));
  const std::shared_ptr<TimeCacheMap> map = std::move(maps.back());
  maps.pop_back();
  map->change_log()->WhenAllKept(
      [map, maps = std::move(maps), readers = std::move(readers),
       done = std::move(done)](absl::Status status) mutable {
        if (!status.ok()) {
          CountRefused(status, 1, map.get());
          return done(std::move(status));
        }
        WhenKept(std::move(maps), std::move(readers), std::move(done));
      });
}

// Completes with the result of `open` for each of the namespaces, all or none,
// once all reported changes of the `changed` maps are stored, to which `open`
// may add.
template <typename Open>
void OpenEach(const Registry& registry, absl::Span<const std::string> names,
              Store::DoneWith<Store::Readers> done, const Open& open,
              const Maps& changed = {}) {
  Maps maps;
  for (const std::string& name : names) {
    MapOr map = registry.Find(name);
    if (!map.ok()) return done(map.status());
    maps.push_back(*std::move(map));
  }
  Store::Readers readers;
  for (const auto& map : maps) {
    absl::StatusOr<std::unique_ptr<EventReader>> reader = open(map);
    if (!reader.ok()) return done(reader.status());
    readers.push_back(*std::move(reader));
  }
  WhenKept(changed, std::move(readers), std::move(done));
}

}  // namespace

void LocalStore::OpenLogs(absl::Span<const std::string> names, LogStart start,
                          const LogPoints& points, Wake wake,
                          DoneWith<Readers> done) {
  OpenEach(*registry_, names, std::move(done),
           [&](std::shared_ptr<TimeCacheMap> map) {
             return OpenLogReader(std::move(map), start, points,
                                  clock_->NowUs(), wake);
           });
}

void LocalStore::JoinGroups(absl::Span<const std::string> names,
                            Membership membership, Wake wake,
                            DoneWith<Readers> done) {
  Maps creates;
  OpenEach(
      *registry_, names, std::move(done),
      [&](const std::shared_ptr<TimeCacheMap>& map)
          -> absl::StatusOr<std::unique_ptr<EventReader>> {
        if (!map->groups().Find(membership.group).ok()) {
          MapOr room = FindToChange(*registry_, map->name());
          if (!room.ok()) return room.status();
          creates.push_back(map);
        }
        return JoinGroupReader(map, membership, clock_->NowUs(), wake);
      },
      creates);
}

void LocalStore::OpenExpiring(absl::Span<const std::string> names,
                              ExpiringOptions options, Wake wake,
                              DoneWith<Readers> done) {
  OpenEach(*registry_, names, std::move(done),
           [&](std::shared_ptr<TimeCacheMap> map) {
             return OpenExpiringReader(std::move(map), options, wake);
           });
}

// --- Of this process.

StoreUsage LocalStore::GetUsage() const {
  const RegistryLimits limits = registry_->limits();
  const auto maps = registry_->List();
  StoreUsage usage;
  usage.namespaces = static_cast<int64_t>(maps.size());
  usage.max_namespaces = limits.max_namespaces;
  for (const auto& map : maps) {
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
