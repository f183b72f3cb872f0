// Namespaces of several partitions over a store that knows maps alone.

#ifndef TIMECACHED_SERVER_ENGINE_PARTS_PARTITIONED_STORE_H_
#define TIMECACHED_SERVER_ENGINE_PARTS_PARTITIONED_STORE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/parts/one_at_a_time.h"
#include "server/engine/parts/ready_partitions.h"
#include "server/engine/store/partition_directory.h"
#include "server/engine/store/store.h"

namespace timecache::server {

// Implements Store on `maps`, in which each partition is a map of its own (see
// partitions.h), which is called as the directory says. What concerns a namespace of
// one partition is passed on as it is.
//
// Of a namespace of several:
//  - operations go to their keys' partitions, which take their share of a batch at
//    the same time; results are in the order of the operations. An atomic batch,
//    and what must be atomic, is in one partition: INVALID_ARGUMENT otherwise,
//    which tells of hash tags.
//  - sizes and statistics are sums, scans go through one partition after another. A
//    size counts as an operation of each, a walk as one of that in which it starts.
//  - options are the same in all of them; the map divides the limits. Partition 0
//    is made last and deleted first: a namespace exists if it does. A change is
//    answered when all have it. What was interrupted by a crash is finished or
//    undone by ReconcilePartitions.
//  - watches and members of groups read all partitions: see merged_reader.h.
class PartitionedStore final : public Store {
 public:
  // Neither is owned; both must outlive the store. Members of groups get numbers
  // behind `last_member`: where other stores make members of the same groups one
  // after the other, it must be behind all of theirs.
  PartitionedStore(Store* maps, const PartitionDirectory* directory,
                   uint64_t last_member = 0)
      : maps_(maps), directory_(directory), last_member_(last_member) {}

  using Store::Execute;
  void Execute(absl::string_view name, absl::Span<const Operation> operations,
               absl::Span<Result> results, BatchProgress* progress,
               Done done) override;
  void ExecuteAtomic(absl::string_view name,
                     absl::Span<const Operation> operations,
                     absl::Span<Result> results, Done done) override;
  void GetSize(absl::string_view name, DoneWith<NamespaceSize> done) override;
  void Scan(absl::string_view name, absl::string_view prefix, int max_entries,
            int64_t max_bytes, ScanPosition* position, bool* more,
            EntryVisitor visit, Done done) override;

  void CreateNamespace(absl::string_view name, NamespaceOptions options,
                       DoneWith<NamespaceInfo> done) override;
  void GetNamespace(absl::string_view name, bool include_statistics,
                    DoneWith<NamespaceInfo> done) override;
  void ListNamespaces(ListQuery query,
                      DoneWith<Page<NamespaceInfo>> done) override;
  void UpdateNamespace(absl::string_view name,
                       OptionsChange<NamespaceOptions> change,
                       DoneWith<NamespaceInfo> done) override;
  void DeleteNamespace(absl::string_view name, Done done) override;
  void RotateNamespace(absl::string_view name, DoneWith<int64_t> done) override;
  void GetDeaths(absl::string_view name, DeathsQuery query,
                 DoneWith<DeathsAhead> done) override;
  void GetHotKeys(absl::string_view name, size_t max_keys,
                  DoneWith<HotKeys> done) override;

  void CreateGroup(GroupName name, NewGroup group,
                   DoneWith<GroupInfo> done) override;
  void GetGroup(GroupName name, bool include_statistics,
                DoneWith<GroupInfo> done) override;
  void ListGroups(absl::string_view namespace_name, ListQuery query,
                  DoneWith<Page<GroupInfo>> done) override;
  void UpdateGroup(GroupName name, OptionsChange<GroupOptions> change,
                   DoneWith<GroupInfo> done) override;
  void SeekGroup(GroupName name, LogPosition position, bool drop,
                 DoneWith<SeekResult> done) override;
  void ListUnsettled(GroupName name, UnsettledQuery query,
                     DoneWith<UnsettledPage> done) override;
  void DeleteGroup(GroupName name, Done done) override;
  void ListMembers(GroupName name,
                   DoneWith<std::vector<MemberInfo>> done) override;
  void Settle(GroupName name, absl::Span<const Settlement> settlements,
              absl::Span<SettleResult> results, Done done) override;

  void OpenLogs(absl::Span<const std::string> names, LogStart start,
                const LogPoints& points, Wake wake,
                DoneWith<Readers> done) override;
  void OpenChanges(absl::Span<const std::string> names, LogStart start,
                   const LogPoints& points, Wake wake,
                   DoneWith<Readers> done) override;
  void JoinGroups(absl::Span<const std::string> names, Membership membership,
                  Wake wake, DoneWith<Readers> done) override;
  void OpenExpiring(absl::Span<const std::string> names,
                    ExpiringOptions options, Wake wake,
                    DoneWith<Readers> done) override;

  StoreUsage GetUsage() const override;
  void SetDeadLetterRight(DeadLetterRight right) override;

 private:
  using Maps = PartitionDirectory::Names;

  // The maps of a namespace that has several; null for one that has one, or does not
  // exist. INVALID_ARGUMENT for a name that no client may give.
  absl::StatusOr<PartitionDirectory::Names> PartitionsOf(
      absl::string_view name) const;
  void CreatePartitions(const PartitionDirectory::Names& names,
                        const NamespaceOptions& options,
                        DoneWith<NamespaceInfo> done);
  void DeletePartitions(const std::string& name, Done done);

  // --- Of groups. A group is in a namespace if it is in partition 0, where it is
  // made last and deleted first.

  // One in all partitions. What the names view lives as long as this.
  struct GroupParts {
    GroupParts(Maps maps_of_namespace, absl::string_view group)
        : maps(std::move(maps_of_namespace)),
          name(std::make_shared<const std::string>(group)) {}

    size_t count() const { return maps->size(); }
    GroupName In(size_t partition) const { return {(*maps)[partition], *name}; }

    Maps maps;
    std::shared_ptr<const std::string> name;
  };
  // Calls that make, change or delete a group, and joins, come one after the
  // other: in each partition in the same order.
  OneAtATime* GroupTurns(GroupName name);
  // Makes the other partitions have the group if partition 0 does, with its
  // options, and not have it if not. That it is not there is no error.
  void AlignGroup(const GroupParts& group, Done done);
  void MakeMissing(const GroupParts& group,
                   const std::vector<size_t>& partitions,
                   const GroupInfo& first, Done done);
  void MakeGroup(const GroupParts& group, NewGroup made,
                 DoneWith<GroupInfo> done);
  // The others are partition 1 and later ones.
  void DeleteOthers(const GroupParts& group, Done done);
  void UpdateOthers(const GroupParts& group, GroupInfo first,
                    DoneWith<GroupInfo> done);
  void SeekOthers(const GroupParts& group, const LogPosition& position,
                  bool drop, SeekResult first, DoneWith<SeekResult> done);
  void ListPart(Maps maps, GroupName name, UnsettledQuery query,
                UnsettledPage page, DoneWith<UnsettledPage> done);

  // --- Of watches.

  using ReaderDone = DoneWith<std::unique_ptr<EventReader>>;
  // Opens the readers of some maps with one wake.
  using OpenMaps = std::function<void(absl::Span<const std::string> maps,
                                      Wake wake, DoneWith<Readers> done)>;
  // Opens the reader of one namespace of several partitions.
  using OpenMerged = std::function<void(const std::string& name,
                                        const Maps& maps, ReaderDone done)>;
  // PartitionsOf each; empty if none of them has several.
  absl::StatusOr<std::vector<Maps>> MapsOf(
      absl::Span<const std::string> names) const;
  void OpenEach(absl::Span<const std::string> names,
                const std::vector<Maps>& all, const Wake& wake,
                const OpenMaps& open, const OpenMerged& open_merged,
                DoneWith<Readers> done);
  // A reader of each partition; `merge` makes one of them.
  using Merge = std::function<std::unique_ptr<EventReader>(
      Readers parts, std::shared_ptr<ReadyPartitions> ready)>;
  static void OpenParts(const Maps& maps,
                        const std::shared_ptr<ReadyPartitions>& ready,
                        const OpenMaps& open, Merge merge, ReaderDone done);
  void OpenAtPoints(absl::Span<const std::string> names,
                    const LogPoints& points, const Wake& wake,
                    const OpenMaps& open, DoneWith<Readers> done);
  void JoinPartitions(const std::string& name, const Maps& maps,
                      Membership membership, const Wake& wake, ReaderDone done);

  Store* const maps_;
  const PartitionDirectory* const directory_;
  // Namespaces of several partitions are created and deleted one at a time, as the
  // partitions of two of one name would mix.
  OneAtATime lifecycle_;
  // By the group's hash.
  std::array<OneAtATime, 16> group_turns_;
  std::atomic<uint64_t> last_member_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTS_PARTITIONED_STORE_H_
