// The part of a PartitionedStore that is about namespaces.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/parts/gather.h"
#include "server/engine/parts/merged_descriptions.h"
#include "server/engine/parts/partitioned_store.h"
#include "server/engine/store/partitions.h"

namespace timecache::server {
namespace {

using Names = PartitionDirectory::Names;

// Whether a creation that ended so may have left a map, which is not another one.
bool MayHaveCreated(const absl::Status& status) {
  return !absl::IsAlreadyExists(status);
}

// Deletes those of the maps that may have been created, the first one before the
// others. `created` are the outcomes of the last maps.
void UndoCreation(Store* maps, const Names& names,
                  const std::vector<absl::Status>& created, Store::Done done) {
  const size_t first = names->size() - created.size();
  GatherStatus(
      created.size(),
      [&](size_t i, Store::Done done_of_part) {
        if (!MayHaveCreated(created[i])) return done_of_part(absl::OkStatus());
        maps->DeleteNamespace(
            (*names)[first + i],
            [names, done_of_part = std::move(done_of_part)](
                const absl::Status& /*none, or for later*/) mutable {
              done_of_part(absl::OkStatus());
            });
      },
      std::move(done));
}

// Gives all partitions the options of the first, until they have those that it has
// then: other updates may have come between.
void SpreadOptions(Store* maps, const Names& names,
                   const NamespaceOptions& options, Store::Done done) {
  GatherAll<NamespaceInfo>(
      names->size() - 1,
      [&](size_t i, Store::DoneWith<NamespaceInfo> done_of_part) {
        maps->UpdateNamespace((*names)[i + 1],
                              [options](NamespaceOptions* to) {
                                *to = options;
                                return absl::OkStatus();
                              },
                              std::move(done_of_part));
      },
      [maps, names, options, done = std::move(done)](
          const absl::StatusOr<std::vector<NamespaceInfo>>& infos) mutable {
        if (!infos.ok()) return done(infos.status());
        maps->GetNamespace((*names)[0], /*include_statistics=*/false,
                           [maps, names, options, done = std::move(done)](
                               absl::StatusOr<NamespaceInfo> first) mutable {
                             if (!first.ok()) return done(first.status());
                             if (first->options == options) {
                               return done(absl::OkStatus());
                             }
                             SpreadOptions(maps, names, first->options,
                                           std::move(done));
                           });
      });
}

// Adds the statistics of the other partitions to those of a page.
void AddStatistics(Store* maps, const PartitionDirectory& directory,
                   Page<NamespaceInfo> page,
                   Store::DoneWith<Page<NamespaceInfo>> done) {
  struct Call {
    size_t item;
    std::string map;
  };
  auto calls = std::make_shared<std::vector<Call>>();
  int shards = 0;
  for (size_t i = 0; i < page.items.size(); ++i) {
    const NamespaceOptions& options = page.items[i].options;
    if (shards >= kMaxListedShards) {
      page.items.resize(i);
      page.more = true;
      break;
    }
    shards += options.num_shards * options.num_partitions;
    if (options.num_partitions == 1) continue;
    const Names names =
        directory.NamesOf(page.items[i].name, options.num_partitions);
    for (size_t part = 1; part < names->size(); ++part) {
      calls->push_back({i, (*names)[part]});
    }
  }
  if (calls->empty()) return done(std::move(page));
  CollectAll<NamespaceInfo>(
      calls->size(),
      [&](size_t i, Store::DoneWith<NamespaceInfo> done_of_part) {
        maps->GetNamespace((*calls)[i].map, /*include_statistics=*/true,
                           std::move(done_of_part));
      },
      [calls, page = std::move(page), done = std::move(done)](
          std::vector<absl::StatusOr<NamespaceInfo>> infos) mutable {
        for (size_t i = 0; i < infos.size(); ++i) {
          // Deleted meanwhile.
          if (!infos[i].ok()) continue;
          NamespaceInfo& item = page.items[(*calls)[i].item];
          std::vector<NamespaceInfo> both;
          both.push_back(std::move(item));
          both.push_back(*std::move(infos[i]));
          item = MergeInfos(std::move(both));
        }
        done(std::move(page));
      });
}

}  // namespace

void PartitionedStore::CreateNamespace(absl::string_view name,
                                       NamespaceOptions options,
                                       DoneWith<NamespaceInfo> done) {
  if (const auto names = PartitionsOf(name); !names.ok()) {
    return done(names.status());
  }
  // Others are refused.
  if (options.num_partitions < 2 || options.num_partitions > kMaxPartitions) {
    return maps_->CreateNamespace(name, std::move(options), std::move(done));
  }
  Names names = directory_->NamesOf(name, options.num_partitions);
  lifecycle_.Run([this, names = std::move(names), options = std::move(options),
                  done = std::move(done)](OneAtATime::End end) mutable {
    CreatePartitions(names, options,
                     [done = std::move(done), end = std::move(end)](
                         absl::StatusOr<NamespaceInfo> info) mutable {
                       end();
                       done(std::move(info));
                     });
  });
}

// The last ones at the same time; when all are stored, the first.
void PartitionedStore::CreatePartitions(const Names& names,
                                        const NamespaceOptions& options,
                                        DoneWith<NamespaceInfo> done) {
  const auto undo = [this, names](const std::vector<absl::Status>& created,
                                  absl::Status error,
                                  DoneWith<NamespaceInfo> failed) {
    UndoCreation(maps_, names, created,
                 [error = std::move(error), failed = std::move(failed)](
                     const absl::Status& /*always OK*/) mutable {
                   failed(std::move(error));
                 });
  };
  const size_t count = names->size();
  CollectAll<NamespaceInfo>(
      count - 1,
      [&](size_t i, DoneWith<NamespaceInfo> done_of_part) {
        maps_->CreateNamespace((*names)[count - 1 - i], options,
                               std::move(done_of_part));
      },
      [this, names, options, undo, done = std::move(done)](
          std::vector<absl::StatusOr<NamespaceInfo>> infos) mutable {
        std::vector<absl::Status> created;
        absl::Status error;
        for (auto info = infos.rbegin(); info != infos.rend(); ++info) {
          created.push_back(info->status());
        }
        for (const auto& info : infos) error.Update(info.status());
        if (!error.ok()) {
          return undo(created, std::move(error), std::move(done));
        }
        maps_->CreateNamespace(
            (*names)[0], options,
            [undo, created = std::move(created), done = std::move(done)](
                absl::StatusOr<NamespaceInfo> first) mutable {
              if (first.ok()) return done(std::move(first));
              created.insert(created.begin(), first.status());
              undo(created, first.status(), std::move(done));
            });
      });
}

void PartitionedStore::GetNamespace(absl::string_view name,
                                    bool include_statistics,
                                    DoneWith<NamespaceInfo> done) {
  const auto names = PartitionsOf(name);
  if (!names.ok()) return done(names.status());
  if (*names == nullptr || !include_statistics) {
    return maps_->GetNamespace(name, include_statistics, std::move(done));
  }
  const Names& maps = *names;
  GatherAll<NamespaceInfo>(
      maps->size(),
      [&](size_t i, DoneWith<NamespaceInfo> done_of_part) {
        maps_->GetNamespace((*maps)[i], /*include_statistics=*/true,
                            std::move(done_of_part));
      },
      [maps, done = std::move(done)](
          absl::StatusOr<std::vector<NamespaceInfo>> infos) mutable {
        if (!infos.ok()) return done(infos.status());
        done(MergeInfos(*std::move(infos)));
      });
}

void PartitionedStore::ListNamespaces(ListQuery query,
                                      DoneWith<Page<NamespaceInfo>> done) {
  query.namespaces_only = true;
  if (!query.include_statistics) {
    return maps_->ListNamespaces(std::move(query), std::move(done));
  }
  maps_->ListNamespaces(
      std::move(query), [this, done = std::move(done)](
                            absl::StatusOr<Page<NamespaceInfo>> page) mutable {
        if (!page.ok()) return done(std::move(page));
        AddStatistics(maps_, *directory_, *std::move(page), std::move(done));
      });
}

void PartitionedStore::UpdateNamespace(absl::string_view name,
                                       OptionsChange<NamespaceOptions> change,
                                       DoneWith<NamespaceInfo> done) {
  const auto names = PartitionsOf(name);
  if (!names.ok()) return done(names.status());
  if (*names == nullptr) {
    return maps_->UpdateNamespace(name, std::move(change), std::move(done));
  }
  const Names& maps = *names;
  maps_->UpdateNamespace(
      (*maps)[0], std::move(change),
      [this, maps,
       done = std::move(done)](absl::StatusOr<NamespaceInfo> info) mutable {
        if (!info.ok()) return done(std::move(info));
        const NamespaceOptions options = info->options;
        SpreadOptions(maps_, maps, options,
                      [info = *std::move(info),
                       done = std::move(done)](absl::Status status) mutable {
                        if (!status.ok()) return done(std::move(status));
                        done(std::move(info));
                      });
      });
}

void PartitionedStore::DeleteNamespace(absl::string_view name, Done done) {
  const auto names = PartitionsOf(name);
  if (!names.ok()) return done(names.status());
  if (*names == nullptr) return maps_->DeleteNamespace(name, std::move(done));
  lifecycle_.Run([this, name = std::string(name),
                  done = std::move(done)](OneAtATime::End end) mutable {
    DeletePartitions(name, [done = std::move(done),
                            end = std::move(end)](absl::Status status) mutable {
      end();
      done(std::move(status));
    });
  });
}

// The first one; when that is stored, the others at the same time.
void PartitionedStore::DeletePartitions(const std::string& name, Done done) {
  Names names = directory_->PartitionsOf(name);
  // Deleted meanwhile: and maybe another one was made.
  if (names == nullptr) names = PartitionNames(name, 1);
  const std::string& first = (*names)[0];
  maps_->DeleteNamespace(
      first, [this, names = std::move(names),
              done = std::move(done)](absl::Status deleted) mutable {
        if (absl::IsNotFound(deleted) || names->size() == 1) {
          return done(std::move(deleted));
        }
        GatherStatus(
            names->size() - 1,
            [&](size_t i, Done done_of_part) {
              maps_->DeleteNamespace((*names)[i + 1], std::move(done_of_part));
            },
            [names, deleted = std::move(deleted),
             done = std::move(done)](const absl::Status& others) mutable {
              deleted.Update(others);
              done(std::move(deleted));
            });
      });
}

void PartitionedStore::RotateNamespace(absl::string_view name,
                                       DoneWith<int64_t> done) {
  const auto names = PartitionsOf(name);
  if (!names.ok()) return done(names.status());
  if (*names == nullptr) return maps_->RotateNamespace(name, std::move(done));
  const Names& maps = *names;
  GatherAll<int64_t>(
      maps->size(),
      [&](size_t i, DoneWith<int64_t> done_of_part) {
        maps_->RotateNamespace((*maps)[i], std::move(done_of_part));
      },
      [maps, done = std::move(done)](
          absl::StatusOr<std::vector<int64_t>> died) mutable {
        if (!died.ok()) return done(died.status());
        int64_t sum = 0;
        for (const int64_t each : *died) sum += each;
        done(sum);
      });
}

// Twice: when something dies, then how much.
void PartitionedStore::GetDeaths(absl::string_view name, DeathsQuery query,
                                 DoneWith<DeathsAhead> done) {
  const auto names = PartitionsOf(name);
  if (!names.ok()) return done(names.status());
  if (*names == nullptr) return maps_->GetDeaths(name, query, std::move(done));
  using All = absl::StatusOr<std::vector<DeathsAhead>>;
  const auto ask = [maps = maps_, names = *names](
                       const DeathsQuery& of_part,
                       DoneWith<All::value_type> all) {
    GatherAll<DeathsAhead>(
        names->size(),
        [&](size_t i, DoneWith<DeathsAhead> done_of_part) {
          maps->GetDeaths((*names)[i], of_part, std::move(done_of_part));
        },
        [names, all = std::move(all)](All deaths) mutable {
          all(std::move(deaths));
        });
  };
  DeathsQuery range = query;
  range.max_bars = 1;
  ask(range, [ask, query, done = std::move(done)](All ranges) mutable {
    if (!ranges.ok()) return done(ranges.status());
    const auto common = CommonBars(query, *ranges);
    if (!common.has_value()) return done(MergeDeaths(*ranges));
    ask(*common, [done = std::move(done)](All deaths) mutable {
      if (!deaths.ok()) return done(deaths.status());
      done(MergeDeaths(*deaths));
    });
  });
}

void PartitionedStore::GetHotKeys(absl::string_view name, size_t max_keys,
                                  DoneWith<HotKeys> done) {
  const auto names = PartitionsOf(name);
  if (!names.ok()) return done(names.status());
  if (*names == nullptr) {
    return maps_->GetHotKeys(name, max_keys, std::move(done));
  }
  const Names& maps = *names;
  GatherAll<HotKeys>(
      maps->size(),
      [&](size_t i, DoneWith<HotKeys> done_of_part) {
        maps_->GetHotKeys((*maps)[i], max_keys, std::move(done_of_part));
      },
      [maps, max_keys, done = std::move(done)](
          absl::StatusOr<std::vector<HotKeys>> keys) mutable {
        if (!keys.ok()) return done(keys.status());
        done(MergeHotKeys(*std::move(keys), max_keys));
      });
}

}  // namespace timecache::server
