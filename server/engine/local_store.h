// The store that is this process.

#ifndef TIMECACHED_SERVER_ENGINE_LOCAL_STORE_H_
#define TIMECACHED_SERVER_ENGINE_LOCAL_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/base/clock.h"
#include "server/engine/registry.h"
#include "server/engine/store/store.h"

namespace timecache::server {

// Implements Store on the maps of a registry. A call completes before it
// returns, on the caller's thread, at the cost of the registry and its maps.
// Only a call on a map with a ChangeLog waits until the changes that it made,
// or has seen, are stored: it then completes on a thread of that log.
class LocalStore final : public Store {
 public:
  enum class Names {
    // Maps are called as they are: PartitionName.
    kOfMaps,
    // Callers, who may be other nodes, say how many partitions a namespace has: by a
    // PartitionAddress of a map if there are several, by the namespace's name if it
    // has one. Nothing is done, and the answer is marked as stale (stale_names.h), if
    // it has not so many, or is not there. GetNamespace alone tells by a namespace's
    // name how many there are. What is returned has the maps' own names.
    kAddresses,
  };

  // Neither is owned; both must outlive the store.
  LocalStore(Registry* registry, const Clock* clock,
             Names names = Names::kOfMaps)
      : registry_(registry), clock_(clock), names_(names) {}

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
  absl::StatusOr<std::shared_ptr<TimeCacheMap>> Find(
      absl::string_view name) const;

  Registry* const registry_;
  const Clock* const clock_;
  const Names names_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_LOCAL_STORE_H_
