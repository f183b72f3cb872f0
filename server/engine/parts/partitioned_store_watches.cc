// The part of a PartitionedStore that opens watches.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/error.h"
#include "server/engine/parts/gather.h"
#include "server/engine/parts/merged_reader.h"
#include "server/engine/parts/partitioned_store.h"
#include "server/engine/parts/when_all_exist.h"
#include "server/engine/store/partitions.h"

namespace timecache::server {
namespace {

using Names = PartitionDirectory::Names;

// Whether `points` has those of this namespace as it is: all or none.
absl::Status CheckPoints(const std::string& name, const Names& maps,
                         const LogPoints& points) {
  if (points.count(name) == 0) return absl::OkStatus();
  const size_t count = maps == nullptr ? 1 : maps->size();
  bool whole = points.count(PartitionName(name, static_cast<int>(count))) == 0;
  for (size_t i = 1; i < count; ++i) {
    whole &= points.count(PartitionName(name, static_cast<int>(i))) > 0;
  }
  if (whole) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, Reason::kLogChanged,
      "the resume point is of another log, of a namespace of this name with "
      "another number of partitions: start again without it",
      {{"namespace", name}});
}

// Points are by the maps' own names.
std::vector<LogPoint> PointsOf(const std::string& name, size_t count,
                               const LogPoints& points) {
  std::vector<LogPoint> own;
  if (points.count(name) == 0) return own;
  for (size_t i = 0; i < count; ++i) {
    own.push_back(points.at(PartitionName(name, static_cast<int>(i))));
  }
  return own;
}

}  // namespace

// --- Readers of partitions.

absl::StatusOr<std::vector<PartitionedStore::Maps>> PartitionedStore::MapsOf(
    absl::Span<const std::string> names) const {
  std::vector<Maps> all;
  bool any = false;
  for (const std::string& name : names) {
    absl::StatusOr<Maps> maps = PartitionsOf(name);
    if (!maps.ok()) return maps.status();
    any |= *maps != nullptr;
    all.push_back(*std::move(maps));
  }
  if (!any) all.clear();
  return all;
}

void PartitionedStore::OpenParts(const Maps& maps,
                                 const std::shared_ptr<ReadyPartitions>& ready,
                                 const OpenMaps& open, Merge merge,
                                 ReaderDone done) {
  GatherAll<Readers>(
      maps->size(),
      [&](size_t i, DoneWith<Readers> done_of_part) {
        open({&(*maps)[i], 1}, ReadyPartitions::WakeOf(ready, i),
             std::move(done_of_part));
      },
      [maps, ready, merge = std::move(merge), done = std::move(done)](
          absl::StatusOr<std::vector<Readers>> opened) mutable {
        if (!opened.ok()) return done(opened.status());
        Readers parts;
        for (Readers& part : *opened) parts.push_back(std::move(part.front()));
        done(merge(std::move(parts), ready));
      });
}

void PartitionedStore::OpenEach(absl::Span<const std::string> names,
                                const std::vector<Maps>& all, const Wake& wake,
                                const OpenMaps& open,
                                const OpenMerged& open_merged,
                                DoneWith<Readers> done) {
  if (all.empty()) return open(names, wake, std::move(done));
  GatherAll<std::unique_ptr<EventReader>>(
      names.size(),
      [&](size_t i, ReaderDone done_of_name) {
        if (all[i] != nullptr) {
          return open_merged(names[i], all[i], std::move(done_of_name));
        }
        open(names.subspan(i, 1), wake,
             [done_of_name = std::move(done_of_name)](
                 absl::StatusOr<Readers> readers) mutable {
               if (!readers.ok()) return done_of_name(readers.status());
               done_of_name(std::move(readers->front()));
             });
      },
      std::move(done));
}

void PartitionedStore::OpenAtPoints(absl::Span<const std::string> names,
                                    const LogPoints& points, const Wake& wake,
                                    const OpenMaps& open,
                                    DoneWith<Readers> done) {
  const auto found = MapsOf(names);
  if (!found.ok()) return done(found.status());
  for (size_t i = 0; i < names.size() && !points.empty(); ++i) {
    absl::Status status =
        CheckPoints(names[i], found->empty() ? nullptr : (*found)[i], points);
    if (!status.ok()) return done(std::move(status));
  }
  OpenEach(
      names, *found, wake, open,
      [&](const std::string& name, const Maps& maps, ReaderDone done_of_name) {
        OpenParts(
            maps, std::make_shared<ReadyPartitions>(wake), open,
            [own = PointsOf(name, maps->size(), points)](
                Readers parts, std::shared_ptr<ReadyPartitions> ready) {
              return MergeLogs(std::move(parts), std::move(ready), own);
            },
            std::move(done_of_name));
      },
      std::move(done));
}

void PartitionedStore::OpenLogs(absl::Span<const std::string> names,
                                LogStart start, const LogPoints& points,
                                Wake wake, DoneWith<Readers> done) {
  OpenAtPoints(
      names, points, wake,
      [&](absl::Span<const std::string> maps, Wake wake_of_maps,
          DoneWith<Readers> done_of_maps) {
        maps_->OpenLogs(maps, start, points, std::move(wake_of_maps),
                        std::move(done_of_maps));
      },
      std::move(done));
}

void PartitionedStore::OpenChanges(absl::Span<const std::string> names,
                                   LogStart start, const LogPoints& points,
                                   Wake wake, DoneWith<Readers> done) {
  OpenAtPoints(
      names, points, wake,
      [&](absl::Span<const std::string> maps, Wake wake_of_maps,
          DoneWith<Readers> done_of_maps) {
        maps_->OpenChanges(maps, start, points, std::move(wake_of_maps),
                           std::move(done_of_maps));
      },
      std::move(done));
}

void PartitionedStore::OpenExpiring(absl::Span<const std::string> names,
                                    ExpiringOptions options, Wake wake,
                                    DoneWith<Readers> done) {
  const auto found = MapsOf(names);
  if (!found.ok()) return done(found.status());
  const OpenMaps open = [&](absl::Span<const std::string> maps,
                            Wake wake_of_maps, DoneWith<Readers> done_of_maps) {
    maps_->OpenExpiring(maps, options, std::move(wake_of_maps),
                        std::move(done_of_maps));
  };
  OpenEach(
      names, *found, wake, open,
      [&](const std::string& /*name*/, const Maps& maps,
          ReaderDone done_of_name) {
        OpenParts(maps, std::make_shared<ReadyPartitions>(wake), open,
                  MergeExpiring, std::move(done_of_name));
      },
      std::move(done));
}

// --- Members.

// No group is made unless all namespaces are there: the namespaces are opened
// one by one only where there are several.
void PartitionedStore::JoinGroups(absl::Span<const std::string> names,
                                  Membership membership, Wake wake,
                                  DoneWith<Readers> done) {
  const auto found = MapsOf(names);
  if (!found.ok()) return done(found.status());
  const bool check = !found->empty() && names.size() > 1;
  const auto join = [this, names, all = *found,
                     membership = std::move(membership),
                     wake = std::move(wake)](DoneWith<Readers> joined) {
    OpenEach(
        names, all, wake,
        [&](absl::Span<const std::string> maps, Wake wake_of_maps,
            DoneWith<Readers> done_of_maps) {
          maps_->JoinGroups(maps, membership, std::move(wake_of_maps),
                            std::move(done_of_maps));
        },
        [&](const std::string& name, const Maps& maps,
            ReaderDone done_of_name) {
          JoinPartitions(name, maps, membership, wake, std::move(done_of_name));
        },
        std::move(joined));
  };
  if (!check) return join(std::move(done));
  WhenAllExist(maps_, names,
               [join, done = std::move(done)](absl::Status status) mutable {
                 if (!status.ok()) return done(std::move(status));
                 join(std::move(done));
               });
}

// The streams of a group join each partition's group in the same order, so that
// one that is single_active has the same active stream in all of them.
void PartitionedStore::JoinPartitions(const std::string& name, const Maps& maps,
                                      Membership membership, const Wake& wake,
                                      ReaderDone done) {
  OneAtATime* const turns = GroupTurns({name, membership.group});
  turns->Run([this, maps, membership = std::move(membership), wake,
              done = std::move(done)](OneAtATime::End end) mutable {
    const GroupParts group(maps, membership.group);
    AlignGroup(group, [this, maps, membership = std::move(membership), wake,
                       done = std::move(done),
                       end = std::move(end)](absl::Status status) mutable {
      if (!status.ok()) {
        end();
        return done(std::move(status));
      }
      const auto ready = std::make_shared<ReadyPartitions>(wake);
      if (!membership.fetches) {
        membership.in_flight = std::make_shared<InFlightLimit>(
            membership.max_in_flight, [ready] { ready->Wake(0); });
      }
      membership.member_id = ++last_member_;
      OpenParts(
          maps, ready,
          [&](absl::Span<const std::string> map, Wake wake_of_map,
              DoneWith<Readers> joined) {
            maps_->JoinGroups(map, membership, std::move(wake_of_map),
                              std::move(joined));
          },
          [in_flight = membership.in_flight](
              Readers parts, std::shared_ptr<ReadyPartitions> woken) {
            return MergeMembers(std::move(parts), std::move(woken), in_flight);
          },
          [done = std::move(done), end = std::move(end)](
              absl::StatusOr<std::unique_ptr<EventReader>> reader) mutable {
            end();
            done(std::move(reader));
          });
    });
  });
}

}  // namespace timecache::server
