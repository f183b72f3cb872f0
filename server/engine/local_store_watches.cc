// The part of a LocalStore that is about consumer groups and watches.

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/change_waits.h"
#include "server/engine/local_readers.h"
#include "server/engine/local_store.h"

namespace timecache::server {
namespace {

using GroupOr = absl::StatusOr<std::shared_ptr<ConsumerGroup>>;

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

}  // namespace

// --- Consumer groups.

void LocalStore::CreateGroup(GroupName name, NewGroup group,
                             DoneWith<GroupInfo> done) {
  const MapOr map = WithRoom(Find(name.namespace_name));
  if (!map.ok()) return done(map.status());
  const GroupOr created = (*map)->groups().Create(
      name.name, group.options, group.start, clock_->NowUs(), group.created_by);
  if (!created.ok()) return done(created.status());
  WhenKept(*map, std::move(done), Describe(**map, **created));
}

void LocalStore::GetGroup(GroupName name, bool include_statistics,
                          DoneWith<GroupInfo> done) {
  const MapOr map = Find(name.namespace_name);
  if (!map.ok()) return done(map.status());
  const GroupOr group = (*map)->groups().Find(name.name);
  if (!group.ok()) return done(group.status());
  done(Describe(**map, **group, include_statistics));
}

void LocalStore::ListGroups(absl::string_view namespace_name, ListQuery query,
                            DoneWith<Page<GroupInfo>> done) {
  const MapOr map = Find(namespace_name);
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
  const MapOr map = WithRoom(Find(name.namespace_name));
  if (!map.ok()) return done(map.status());
  const GroupOr group = (*map)->groups().Update(name.name, change);
  if (!group.ok()) return done(group.status());
  WhenKept(*map, std::move(done), Describe(**map, **group));
}

void LocalStore::SeekGroup(GroupName name, LogPosition position, bool drop,
                           DoneWith<SeekResult> done) {
  const MapOr map = WithRoom(Find(name.namespace_name));
  if (!map.ok()) return done(map.status());
  const absl::StatusOr<SeekResult> moved =
      (*map)->groups().Seek(name.name, position, drop, clock_->NowUs());
  if (!moved.ok()) return done(moved.status());
  WhenKept(*map, std::move(done), *moved);
}

void LocalStore::ListUnsettled(GroupName name, UnsettledQuery query,
                               DoneWith<UnsettledPage> done) {
  const MapOr map = Find(name.namespace_name);
  if (!map.ok()) return done(map.status());
  const GroupOr group = (*map)->groups().Find(name.name);
  if (!group.ok()) return done(group.status());
  done((*group)->List(query));
}

void LocalStore::DeleteGroup(GroupName name, Done done) {
  const MapOr map = Find(name.namespace_name);
  if (!map.ok()) return done(map.status());
  absl::Status status = (*map)->groups().Delete(name.name);
  WhenKept(*map, std::move(done), std::move(status));
}

void LocalStore::ListMembers(GroupName name,
                             DoneWith<std::vector<MemberInfo>> done) {
  const MapOr map = Find(name.namespace_name);
  if (!map.ok()) return done(map.status());
  const auto group = (*map)->groups().Find(name.name);
  if (!group.ok()) return done(group.status());
  done((*group)->ListMembers());
}

void LocalStore::Settle(GroupName name,
                        absl::Span<const Settlement> settlements,
                        absl::Span<SettleResult> results, Done done) {
  const MapOr map = Find(name.namespace_name);
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
template <typename Find, typename Open>
void OpenEach(const Find& find, absl::Span<const std::string> names,
              Store::DoneWith<Store::Readers> done, const Open& open,
              const Maps& changed = {}) {
  Maps maps;
  for (const std::string& name : names) {
    MapOr map = find(name);
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
  OpenEach([this](absl::string_view name) { return Find(name); }, names,
           std::move(done),
           [&](std::shared_ptr<TimeCacheMap> map) {
             return OpenLogReader(std::move(map), start, points,
                                  clock_->NowUs(), wake);
           });
}

void LocalStore::OpenChanges(absl::Span<const std::string> names,
                             LogStart start, const LogPoints& points, Wake wake,
                             DoneWith<Readers> done) {
  OpenEach([this](absl::string_view name) { return Find(name); }, names,
           std::move(done),
           [&](std::shared_ptr<TimeCacheMap> map) {
             return OpenChangeReader(std::move(map), start, points,
                                     clock_->NowUs(), wake);
           });
}

void LocalStore::JoinGroups(absl::Span<const std::string> names,
                            Membership membership, Wake wake,
                            DoneWith<Readers> done) {
  Maps creates;
  OpenEach([this](absl::string_view name) { return Find(name); }, names,
           std::move(done),
           [&](const std::shared_ptr<TimeCacheMap>& map)
               -> absl::StatusOr<std::unique_ptr<EventReader>> {
             if (!map->groups().Find(membership.group).ok()) {
               MapOr room = WithRoom(map);
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
  OpenEach([this](absl::string_view name) { return Find(name); }, names,
           std::move(done),
           [&](std::shared_ptr<TimeCacheMap> map) {
             return OpenExpiringReader(std::move(map), options, wake);
           });
}

}  // namespace timecache::server
