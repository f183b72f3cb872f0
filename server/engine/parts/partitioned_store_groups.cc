// The part of a PartitionedStore that is about consumer groups.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "server/base/error.h"
#include "server/engine/parts/gather.h"
#include "server/engine/parts/group_parts.h"
#include "server/engine/parts/partitioned_store.h"
#include "server/engine/store/stale_names.h"

namespace timecache::server {
namespace {

bool IsNoGroup(const absl::Status& status) {
  return ReasonOf(status) == Reason::kGroupNotFound;
}

// A group that some partitions do not have is one that expired there first, or
// is being made or deleted.
absl::Status UnlessNoGroup(absl::Status status) {
  return IsNoGroup(status) ? absl::OkStatus() : std::move(status);
}

// Ends the turn before `done` is called.
template <typename T>
Store::DoneWith<T> EndingTurn(OneAtATime::End end, Store::DoneWith<T> done) {
  return [end = std::move(end),
          done = std::move(done)](absl::StatusOr<T> result) mutable {
    end();
    done(std::move(result));
  };
}

// Where a position is in a partition.
LogPosition InPartition(const LogPosition& position, size_t partition) {
  if (position.points.empty()) return position;
  return LogPosition::At(position.points[partition]);
}

absl::Status CheckPosition(const LogPosition& position, size_t partitions) {
  if (position.kind != LogPosition::Kind::kPoint) return absl::OkStatus();
  const size_t points = position.points.empty() ? 1 : position.points.size();
  if (points == partitions) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, Reason::kLogChanged,
      "the resume point is of another log, of a namespace of this name with "
      "another number of partitions: start again without it");
}

GroupInfo WithSum(GroupInfo info, std::vector<absl::StatusOr<GroupInfo>> parts,
                  size_t from) {
  if (info.statistics == nullptr) return info;
  auto sum = std::make_unique<GroupStatistics>(*info.statistics);
  for (size_t i = from; i < parts.size(); ++i) {
    if (parts[i].ok()) AddTo(*parts[i]->statistics, sum.get());
  }
  info.statistics = std::move(sum);
  return info;
}

}  // namespace

OneAtATime* PartitionedStore::GroupTurns(GroupName name) {
  return &group_turns_[absl::HashOf(name.namespace_name, name.name) %
                       group_turns_.size()];
}

// --- Making and deleting.

void PartitionedStore::DeleteOthers(const GroupParts& group, Done done) {
  GatherStatus(
      group.count() - 1,
      [&](size_t i, Done done_of_part) {
        maps_->DeleteGroup(group.In(i + 1),
                           [done_of_part = std::move(done_of_part)](
                               absl::Status status) mutable {
                             done_of_part(UnlessNoGroup(std::move(status)));
                           });
      },
      [group, done = std::move(done)](absl::Status status) mutable {
        done(std::move(status));
      });
}

void PartitionedStore::AlignGroup(const GroupParts& group, Done done) {
  CollectAll<GroupInfo>(
      group.count(),
      [&](size_t i, DoneWith<GroupInfo> found) {
        maps_->GetGroup(group.In(i), /*include_statistics=*/false,
                        std::move(found));
      },
      [this, group, done = std::move(done)](
          std::vector<absl::StatusOr<GroupInfo>> found) mutable {
        std::vector<size_t> others;
        for (size_t i = 0; i < found.size(); ++i) {
          absl::Status status = UnlessNoGroup(found[i].status());
          if (!status.ok()) return done(std::move(status));
          if (found[i].ok() != found.front().ok()) others.push_back(i);
        }
        if (others.empty()) return done(absl::OkStatus());
        if (!found.front().ok()) return DeleteOthers(group, std::move(done));
        MakeMissing(group, others, *found.front(), std::move(done));
      });
}

// What has died there since the group expired counts as lost.
void PartitionedStore::MakeMissing(const GroupParts& group,
                                   const std::vector<size_t>& partitions,
                                   const GroupInfo& first, Done done) {
  GatherAll<GroupInfo>(
      partitions.size(),
      [&](size_t i, DoneWith<GroupInfo> made) {
        maps_->CreateGroup(group.In(partitions[i]),
                           {.options = first.options,
                            .start = {},
                            .created_by = first.created_by},
                           std::move(made));
      },
      [group, done = std::move(done)](
          const absl::StatusOr<std::vector<GroupInfo>>& made) mutable {
        done(made.status());
      });
}

void PartitionedStore::CreateGroup(GroupName name, NewGroup group,
                                   DoneWith<GroupInfo> done) {
  const absl::StatusOr<Maps> found = PartitionsOf(name.namespace_name);
  if (!found.ok()) return done(found.status());
  const Maps& maps = *found;
  absl::Status status =
      CheckPosition(group.start, maps == nullptr ? 1 : maps->size());
  if (!status.ok()) return done(std::move(status));
  if (maps == nullptr) {
    return maps_->CreateGroup(name, std::move(group), std::move(done));
  }
  GroupTurns(name)->Run([this, parts = GroupParts(maps, name.name),
                         group = std::move(group),
                         done = std::move(done)](OneAtATime::End end) mutable {
    AlignGroup(parts, [this, parts, group = std::move(group),
                       ended = EndingTurn(std::move(end), std::move(done))](
                          absl::Status aligned) mutable {
      if (!aligned.ok()) return ended(std::move(aligned));
      MakeGroup(parts, std::move(group), std::move(ended));
    });
  });
}

// Where the other partitions have it, so has partition 0: its error is right.
void PartitionedStore::MakeGroup(const GroupParts& group, NewGroup made,
                                 DoneWith<GroupInfo> done) {
  const auto make = [this, group, made = std::move(made)](
                        size_t i, DoneWith<GroupInfo> made_there) {
    NewGroup part = made;
    part.start = InPartition(made.start, i);
    maps_->CreateGroup(group.In(i), std::move(part), std::move(made_there));
  };
  GatherAll<GroupInfo>(
      group.count() - 1,
      [&](size_t i, DoneWith<GroupInfo> made_there) {
        make(i + 1, std::move(made_there));
      },
      [this, group, make, done = std::move(done)](
          const absl::StatusOr<std::vector<GroupInfo>>& others) mutable {
        auto end = [this, group, done = std::move(done)](
                       absl::StatusOr<GroupInfo> first) mutable {
          if (first.ok() || ReasonOf(first.status()) == Reason::kGroupExists) {
            return done(std::move(first));
          }
          DeleteOthers(group, [error = first.status(), done = std::move(done)](
                                  const absl::Status& /*undone*/) mutable {
            done(std::move(error));
          });
        };
        if (!others.ok()) return end(others.status());
        make(0, std::move(end));
      });
}

void PartitionedStore::DeleteGroup(GroupName name, Done done) {
  const absl::StatusOr<Maps> found = PartitionsOf(name.namespace_name);
  if (!found.ok()) return done(found.status());
  const Maps& maps = *found;
  if (maps == nullptr) return maps_->DeleteGroup(name, std::move(done));
  GroupTurns(name)->Run([this, parts = GroupParts(maps, name.name),
                         done = std::move(done)](OneAtATime::End end) mutable {
    maps_->DeleteGroup(
        parts.In(0), [this, parts, end = std::move(end),
                      done = std::move(done)](absl::Status status) mutable {
          Done ended = [end = std::move(end),
                        done = std::move(done)](absl::Status deleted) mutable {
            end();
            done(std::move(deleted));
          };
          if (!status.ok()) return ended(std::move(status));
          DeleteOthers(parts, std::move(ended));
        });
  });
}

// --- Describing and changing.

void PartitionedStore::GetGroup(GroupName name, bool include_statistics,
                                DoneWith<GroupInfo> done) {
  const absl::StatusOr<Maps> found = PartitionsOf(name.namespace_name);
  if (!found.ok()) return done(found.status());
  const Maps& maps = *found;
  if (maps == nullptr) {
    return maps_->GetGroup(name, include_statistics, std::move(done));
  }
  if (!include_statistics) {
    return maps_->GetGroup(
        {maps->front(), name.name}, include_statistics,
        [maps, done = std::move(done)](absl::StatusOr<GroupInfo> info) mutable {
          done(std::move(info));
        });
  }
  CollectAll<GroupInfo>(
      maps->size(),
      [&](size_t i, DoneWith<GroupInfo> found) {
        maps_->GetGroup({(*maps)[i], name.name}, include_statistics,
                        std::move(found));
      },
      [maps, done = std::move(done)](
          std::vector<absl::StatusOr<GroupInfo>> parts) mutable {
        if (!parts.front().ok()) return done(parts.front().status());
        GroupInfo first = *std::move(parts.front());
        done(WithSum(std::move(first), std::move(parts), 1));
      });
}

void PartitionedStore::ListGroups(absl::string_view namespace_name,
                                  ListQuery query,
                                  DoneWith<Page<GroupInfo>> done) {
  const absl::StatusOr<Maps> found = PartitionsOf(namespace_name);
  if (!found.ok()) return done(found.status());
  const Maps& maps = *found;
  if (maps == nullptr) {
    return maps_->ListGroups(namespace_name, std::move(query), std::move(done));
  }
  const bool sums = query.include_statistics;
  maps_->ListGroups(
      maps->front(), std::move(query),
      [this, maps, sums,
       done = std::move(done)](absl::StatusOr<Page<GroupInfo>> listed) mutable {
        if (!sums || !listed.ok() || listed->items.empty()) {
          return done(std::move(listed));
        }
        const auto page = std::make_shared<Page<GroupInfo>>(*std::move(listed));
        const size_t others = maps->size() - 1;
        CollectAll<GroupInfo>(
            page->items.size() * others,
            [&](size_t i, DoneWith<GroupInfo> found) {
              maps_->GetGroup(
                  {(*maps)[1 + i % others], page->items[i / others].name},
                  /*include_statistics=*/true, std::move(found));
            },
            [maps, page, others, done = std::move(done)](
                std::vector<absl::StatusOr<GroupInfo>> parts) mutable {
              for (size_t i = 0; i < page->items.size(); ++i) {
                std::vector<absl::StatusOr<GroupInfo>> own;
                for (size_t k = i * others; k < (i + 1) * others; ++k) {
                  own.push_back(std::move(parts[k]));
                }
                page->items[i] =
                    WithSum(std::move(page->items[i]), std::move(own), 0);
              }
              done(std::move(*page));
            });
      });
}

void PartitionedStore::UpdateGroup(GroupName name,
                                   OptionsChange<GroupOptions> change,
                                   DoneWith<GroupInfo> done) {
  const absl::StatusOr<Maps> found = PartitionsOf(name.namespace_name);
  if (!found.ok()) return done(found.status());
  const Maps& maps = *found;
  if (maps == nullptr) {
    return maps_->UpdateGroup(name, std::move(change), std::move(done));
  }
  GroupTurns(name)->Run([this, parts = GroupParts(maps, name.name),
                         change = std::move(change),
                         done = std::move(done)](OneAtATime::End end) mutable {
    maps_->UpdateGroup(
        parts.In(0), std::move(change),
        [this, parts, ended = EndingTurn(std::move(end), std::move(done))](
            absl::StatusOr<GroupInfo> first) mutable {
          if (!first.ok()) return ended(std::move(first));
          UpdateOthers(parts, *std::move(first), std::move(ended));
        });
  });
}

void PartitionedStore::UpdateOthers(const GroupParts& group, GroupInfo first,
                                    DoneWith<GroupInfo> done) {
  const auto info = std::make_shared<GroupInfo>(std::move(first));
  GatherStatus(
      group.count() - 1,
      [&](size_t i, Done done_of_part) {
        maps_->UpdateGroup(
            group.In(i + 1),
            [info](GroupOptions* options) {
              *options = info->options;
              return absl::OkStatus();
            },
            [done_of_part = std::move(done_of_part)](
                const absl::StatusOr<GroupInfo>& updated) mutable {
              done_of_part(UnlessNoGroup(updated.status()));
            });
      },
      [group, info,
       done = std::move(done)](const absl::Status& status) mutable {
        if (!status.ok()) return done(status);
        done(std::move(*info));
      });
}

// Partition 0 first: where the position is refused, nothing has moved.
void PartitionedStore::SeekGroup(GroupName name, LogPosition position,
                                 bool drop, DoneWith<SeekResult> done) {
  const absl::StatusOr<Maps> found = PartitionsOf(name.namespace_name);
  if (!found.ok()) return done(found.status());
  const Maps& maps = *found;
  absl::Status status =
      CheckPosition(position, maps == nullptr ? 1 : maps->size());
  if (!status.ok()) return done(std::move(status));
  if (maps == nullptr) {
    return maps_->SeekGroup(name, std::move(position), drop, std::move(done));
  }
  LogPosition first = InPartition(position, 0);
  maps_->SeekGroup(
      {maps->front(), name.name}, std::move(first), drop,
      [this, parts = GroupParts(maps, name.name),
       position = std::move(position), drop,
       done = std::move(done)](absl::StatusOr<SeekResult> moved) mutable {
        if (!moved.ok()) return done(std::move(moved));
        SeekOthers(parts, position, drop, *moved, std::move(done));
      });
}

void PartitionedStore::SeekOthers(const GroupParts& group,
                                  const LogPosition& position, bool drop,
                                  SeekResult first, DoneWith<SeekResult> done) {
  GatherAll<SeekResult>(
      group.count() - 1,
      [&](size_t i, DoneWith<SeekResult> moved) {
        maps_->SeekGroup(group.In(i + 1), InPartition(position, i + 1), drop,
                         [moved = std::move(moved)](
                             absl::StatusOr<SeekResult> result) mutable {
                           if (IsNoGroup(result.status())) {
                             result = SeekResult();
                           }
                           moved(std::move(result));
                         });
      },
      [group, first, done = std::move(done)](
          const absl::StatusOr<std::vector<SeekResult>>& others) mutable {
        if (!others.ok()) return done(others.status());
        for (const SeekResult& other : *others) {
          first.unsettled += other.unsettled;
          first.dropped += other.dropped;
        }
        done(first);
      });
}

void PartitionedStore::ListMembers(GroupName name,
                                   DoneWith<std::vector<MemberInfo>> done) {
  const absl::StatusOr<Maps> found = PartitionsOf(name.namespace_name);
  if (!found.ok()) return done(found.status());
  const Maps& maps = *found;
  if (maps == nullptr) return maps_->ListMembers(name, std::move(done));
  CollectAll<std::vector<MemberInfo>>(
      maps->size(),
      [&](size_t i, DoneWith<std::vector<MemberInfo>> listed) {
        maps_->ListMembers({(*maps)[i], name.name}, std::move(listed));
      },
      [maps, done = std::move(done)](
          std::vector<absl::StatusOr<std::vector<MemberInfo>>> parts) mutable {
        if (!parts.front().ok()) return done(parts.front().status());
        std::vector<std::vector<MemberInfo>> lists;
        for (auto& part : parts) {
          if (part.ok()) lists.push_back(*std::move(part));
        }
        done(MergeMemberInfos(lists));
      });
}

// --- Unsettled events.

void PartitionedStore::ListUnsettled(GroupName name, UnsettledQuery query,
                                     DoneWith<UnsettledPage> done) {
  const absl::StatusOr<Maps> found = PartitionsOf(name.namespace_name);
  if (!found.ok()) return done(found.status());
  const Maps& maps = *found;
  const size_t partitions = maps == nullptr ? 1 : maps->size();
  if (static_cast<size_t>(query.partition) >= partitions) {
    return done(InvalidField("page_token",
                             "must be the next_page_token of a previous page"));
  }
  if (maps == nullptr) {
    return maps_->ListUnsettled(name, std::move(query), std::move(done));
  }
  ListPart(maps, name, std::move(query), {}, std::move(done));
}

// A page goes on with the next partition while it has room: but for a prefix,
// for which a partition may be searched long.
void PartitionedStore::ListPart(Maps maps, GroupName name, UnsettledQuery query,
                                UnsettledPage page,
                                DoneWith<UnsettledPage> done) {
  UnsettledQuery part = query;
  part.most -= static_cast<int>(page.events.size());
  const GroupName group = {(*maps)[static_cast<size_t>(query.partition)],
                           name.name};
  maps_->ListUnsettled(
      group, std::move(part),
      [this, maps, name, query = std::move(query), page = std::move(page),
       done = std::move(done)](absl::StatusOr<UnsettledPage> listed) mutable {
        const bool first = query.partition == 0;
        if (!first && IsNoGroup(listed.status())) listed = UnsettledPage();
        if (!listed.ok()) return done(std::move(listed));
        page.next_partition = query.partition;
        if (!page.events.empty() &&
            PageBytes(page, query.include_values) +
                    PageBytes(*listed, query.include_values) >
                kMaxUnsettledBytes) {
          page.next = query.from;
          return done(std::move(page));
        }
        for (UnsettledInfo& event : listed->events) {
          event.delivery.partition = static_cast<uint8_t>(query.partition);
          page.events.push_back(std::move(event));
        }
        page.next = listed->next;
        if (page.next.has_value() ||
            static_cast<size_t>(query.partition) + 1 == maps->size()) {
          return done(std::move(page));
        }
        page.next = 0;
        page.next_partition = ++query.partition;
        query.from = 0;
        const bool full = static_cast<int>(page.events.size()) >= query.most;
        if (full || !query.key_prefix.empty()) return done(std::move(page));
        ListPart(std::move(maps), name, std::move(query), std::move(page),
                 std::move(done));
      });
}

void PartitionedStore::Settle(GroupName name,
                              absl::Span<const Settlement> settlements,
                              absl::Span<SettleResult> results, Done done) {
  const absl::StatusOr<Maps> found = PartitionsOf(name.namespace_name);
  if (!found.ok()) return done(found.status());
  const Maps& maps = *found;
  if (maps == nullptr) {
    return maps_->Settle(name, settlements, results, std::move(done));
  }
  if (settlements.empty()) {
    return maps_->Settle(
        {maps->front(), name.name}, settlements, results,
        [maps, done = std::move(done)](absl::Status status) mutable {
          done(std::move(status));
        });
  }
  using Parts = std::vector<SettlementsOfPart>;
  const auto parts = std::make_shared<Parts>();
  std::vector<size_t> partitions;
  {
    Parts all = SplitSettlements(settlements, maps->size());
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].places.empty()) continue;
      partitions.push_back(i);
      parts->push_back(std::move(all[i]));
    }
  }
  struct Tried {
    absl::Status status;
  };
  CollectAll<Tried>(
      parts->size(),
      [&](size_t i, DoneWith<Tried> tried) {
        SettlementsOfPart& part = (*parts)[i];
        maps_->Settle({(*maps)[partitions[i]], name.name}, part.settlements,
                      absl::MakeSpan(part.results),
                      [tried = std::move(tried)](absl::Status status) mutable {
                        tried(Tried{std::move(status)});
                      });
      },
      [maps, parts, results, done = std::move(done)](
          std::vector<absl::StatusOr<Tried>> tried) mutable {
        bool any = false;
        for (size_t i = 0; i < parts->size(); ++i) {
          SettlementsOfPart& part = (*parts)[i];
          const absl::Status& status = tried[i]->status;
          any |= status.ok();
          for (size_t k = 0; k < part.places.size(); ++k) {
            if (!status.ok()) part.results[k] = {.status = status};
            results[part.places[k]] = std::move(part.results[k]);
          }
        }
        if (any) return done(absl::OkStatus());
        // Others than stale names say more: some of it may be settled.
        absl::Status* why = &tried.front()->status;
        for (auto& each : tried) {
          if (!IsStale(each->status)) why = &each->status;
        }
        done(std::move(*why));
      });
}

}  // namespace timecache::server
