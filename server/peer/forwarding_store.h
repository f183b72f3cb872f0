// Has whoever owns do what a node is asked.

#ifndef TIMECACHED_SERVER_PEER_FORWARDING_STORE_H_
#define TIMECACHED_SERVER_PEER_FORWARDING_STORE_H_

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/store/store.h"
#include "server/peer/peer_stores.h"

namespace timecache::server {

// While this node owns, its own store; otherwise the one of the node that does. What
// is asked goes on there, whatever comes between: a call that was not applied because
// another node owns now is made there, kMaxTries times at most, kLookAgain apart; then
// it ends with NOT_OWNER.
//
// A reader stays with the node that it was opened at, and ends with it. GetUsage and
// SetDeadLetterRight are this node's.
//
// Thread-safe. Costs a question for the owner for each call, and where it is another
// node what PeerStore costs.
class ForwardingStore final : public Store {
 public:
  static constexpr int kMaxTries = 10;
  static constexpr std::chrono::milliseconds kLookAgain{50};

  // OK while this node owns; else UNAVAILABLE (NOT_OWNER), with the metadata
  // owner_address if another node does.
  using CheckService = std::function<absl::Status()>;

  // None is owned; all must outlive this. `own_address`: where other nodes reach this
  // one, which does not call itself.
  ForwardingStore(Store* own, PeerStores* peers, CheckService check_service,
                  std::string own_address)
      : own_(*own),
        peers_(*peers),
        check_service_(std::move(check_service)),
        own_address_(std::move(own_address)) {}

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
  void DeleteGroup(GroupName name, Done done) override;
  void ListMembers(GroupName name,
                   DoneWith<std::vector<MemberInfo>> done) override;
  void SeekGroup(GroupName name, LogPosition position, bool drop,
                 DoneWith<SeekResult> done) override;
  void ListUnsettled(GroupName name, UnsettledQuery query,
                     DoneWith<UnsettledPage> done) override;
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

  StoreUsage GetUsage() const override { return own_.GetUsage(); }
  void SetDeadLetterRight(DeadLetterRight right) override {
    own_.SetDeadLetterRight(std::move(right));
  }

 private:
  // Of a call's result; see Run.
  template <typename Outcome>
  struct Attempt;

  // Calls `call(store, done)` with the store of who owns, until it is done by one that
  // does. `Outcome` is what it completes with.
  template <typename Outcome>
  void Run(
      absl::AnyInvocable<void(Store*, absl::AnyInvocable<void(Outcome)>)> call,
      absl::AnyInvocable<void(Outcome)> done);

  Store& own_;
  PeerStores& peers_;
  const CheckService check_service_;
  const std::string own_address_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_FORWARDING_STORE_H_
