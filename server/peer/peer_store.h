// The namespaces of another node, as a Store.

#ifndef TIMECACHED_SERVER_PEER_PEER_STORE_H_
#define TIMECACHED_SERVER_PEER_PEER_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/store/store.h"
#include "server/peer/peer_call.h"
#include "server/peer/peer_link.h"
#include "server/peer/remote_reader.h"

namespace timecache::server {

// Has the other node do what it is asked, with the results and errors that the
// caller would get there. Beyond these each call may end as PeerLink::Start says.
//
// A call that only reads is sent again when the stream breaks. A change of options is
// made here, on the options that the other node has, and applied there if they are
// still these: at most kMaxUpdates times, then UNAVAILABLE. A list that is not to
// show all names gets them in pages, and leaves the others out.
//
// Its readers have what the other node has sent ahead (peer_call.h); they end with
// UNAVAILABLE (NOT_OWNER) when the stream breaks. GetUsage is empty and
// SetDeadLetterRight does nothing: both concern the other process.
//
// Thread-safe. A call costs an encoding of its arguments; its answer comes on a thread
// of gRPC.
class PeerStore final : public Store {
 public:
  static constexpr int kMaxUpdates = 8;
  // Names of one page of a list.
  static constexpr size_t kListPage = 256;

  // What the calls are about: see kWholeNamespace.
  enum class Of : uint8_t { kMaps, kWholeNamespaces };
  explicit PeerStore(std::shared_ptr<PeerLink> link, Of of = Of::kMaps)
      : link_(std::move(link)), of_(of) {}
  // Ends its calls.
  ~PeerStore() override { link_->Stop(); }

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

  StoreUsage GetUsage() const override { return {}; }
  void SetDeadLetterRight(DeadLetterRight /*right*/) override {}

 private:
  template <typename Answer>
  void Ask(bool reads, std::string&& body, DoneWith<Answer> done);
  void Tell(std::string body, Done done);
  void Open(absl::Span<const std::string> names, PeerReaderKind kind,
            const Wake& wake, std::string body, DoneWith<Readers> done,
            const std::shared_ptr<InFlightLimit>& in_flight = nullptr);

  template <typename... Fields>
  std::string Body(PeerCall call, const Fields&... fields) const;
  std::string BatchBody(PeerCall call, absl::string_view name,
                        absl::Span<const Operation> operations) const;

  const std::shared_ptr<PeerLink> link_;
  const Of of_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_PEER_STORE_H_
