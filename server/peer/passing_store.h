// Has other stores do what it is asked.

#ifndef TIMECACHED_SERVER_PEER_PASSING_STORE_H_
#define TIMECACHED_SERVER_PEER_PASSING_STORE_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/store/store.h"

namespace timecache::server {

// Passes each call on to the store that its subclass chooses, by the names that the call
// is about: at once, or later, and again where the outcome says that another one would
// do it. GetUsage and SetDeadLetterRight are the subclass's.
//
// Thread-safe if the subclass is. A call that is passed on at once to a store that needs
// not be kept costs the choice; others an allocation.
class PassingStore : public Store {
 public:
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

 protected:
  // What a call is about. The names stay until it is done.
  struct About {
    // Whether one has to come after the other: what makes, changes or deletes something
    // that all partitions of a namespace have.
    enum class Turns : uint8_t { kNone, kOneAtATime };

    // Of one that opens readers empty, and of one that lists namespaces.
    absl::string_view name = {};
    absl::Span<const std::string> names = {};
    Turns turns = Turns::kNone;
    // Whether it may be made again where a part of it may have been done.
    bool repeatable = true;
  };

  // A call that was not passed on at once, or may have to be again.
  class Call : public std::enable_shared_from_this<Call> {
   public:
    explicit Call(const About& of) : about(of) {}
    virtual ~Call() = default;
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // Passes it on to `store`; `kept` as Choice's.
    virtual void PassTo(Store* store, std::shared_ptr<Store> kept) = 0;
    void PassTo(Store* store) { PassTo(store, nullptr); }
    // It ends with this error.
    virtual void Fail(absl::Status error) = 0;

    // Whether its caller may have given up meanwhile: it is not to be made again.
    bool IsOld() const {
      return std::chrono::steady_clock::now() - begun_ > kMaxAge;
    }

    const About about;
    // For the subclass: how often it was tried.
    int tries = 0;

   private:
    static constexpr std::chrono::seconds kMaxAge{1};
    const std::chrono::steady_clock::time_point begun_ =
        std::chrono::steady_clock::now();
  };

  struct Choice {
    // Null: Next chooses.
    Store* store = nullptr;
    // What is kept until the call is done; null: the store is there for good. Readers
    // that the store has opened are then passed through Keep.
    std::shared_ptr<Store> kept = nullptr;
    // Whether Again is asked about an error.
    bool may_repeat = false;
  };
  // Without waiting, and without a side effect.
  virtual Choice AtOnce(const About& about) = 0;
  // Passes the call on, or fails it: now or later.
  virtual void Next(std::shared_ptr<Call> call) = 0;
  // The call, for which Next has chosen, or a choice that may repeat, ended so. True: it
  // is seen to, and goes on or has failed. Else it ends so.
  virtual bool Again(const std::shared_ptr<Call>& call,
                     const absl::Status& error) = 0;
  // Of a batch whose later turn cannot be taken where the first ones were.
  static absl::Status OwnershipLost();

  // The readers of `kept`, which have this wake, as the caller gets them: they must keep
  // it.
  virtual Readers Keep(const About& about, const std::shared_ptr<Store>& kept,
                       const Wake& wake, Readers readers);

 private:
  template <typename Outcome>
  using Finish = absl::AnyInvocable<void(Outcome)>;
  template <typename Outcome, typename Make>
  class CallOf;

  // `make(store, finish)` makes the call, each time with its own copies of what is not
  // the caller's.
  template <typename Outcome, typename Make>
  void Pass(const About& about, Make make, Finish<Outcome> done);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_PASSING_STORE_H_
