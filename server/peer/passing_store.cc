#include "server/peer/passing_store.h"

#include <type_traits>

#include "server/base/error.h"

namespace timecache::server {
namespace {

const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

template <typename Outcome>
constexpr bool kOpens = std::is_same_v<Outcome, absl::StatusOr<Store::Readers>>;

// Opens readers: `open(store, wake, finish)`.
template <typename Open>
struct Opening {
  Store::Wake wake;
  Open open;

  void operator()(Store* store, Store::DoneWith<Store::Readers> finish) const {
    open(store, wake, std::move(finish));
  }
};
template <typename Open>
Opening<Open> OpeningBy(Store::Wake wake, Open open) {
  return {std::move(wake), std::move(open)};
}

}  // namespace

absl::Status PassingStore::OwnershipLost() {
  return ErrorWithReason(
      absl::StatusCode::kUnavailable, Reason::kOwnershipLost,
      "this node owned when it began to apply the operations, and does not "
      "any more: some of them may be applied");
}

Store::Readers PassingStore::Keep(const About& /*about*/,
                                  const std::shared_ptr<Store>& /*kept*/,
                                  const Wake& /*wake*/, Readers readers) {
  return readers;
}

template <typename Outcome, typename Make>
class PassingStore::CallOf final : public Call {
 public:
  CallOf(PassingStore* owner, const About& about, Make make,
         Finish<Outcome> done)
      : Call(about),
        owner_(*owner),
        make_(std::move(make)),
        done_(std::move(done)) {}

  void PassTo(Store* store, std::shared_ptr<Store> kept) override {
    kept_ = std::move(kept);
    make_(store, [self = this->shared_from_this(), this](Outcome outcome) {
      if (!StatusOf(outcome).ok() && owner_.Again(self, StatusOf(outcome))) {
        return;
      }
      if constexpr (kOpens<Outcome>) {
        if (kept_ != nullptr && outcome.ok()) {
          outcome = owner_.Keep(about, kept_, make_.wake, *std::move(outcome));
        }
      }
      done_(std::move(outcome));
    });
  }
  void Fail(absl::Status error) override { done_(std::move(error)); }

 private:
  PassingStore& owner_;
  const Make make_;
  Finish<Outcome> done_;
  std::shared_ptr<Store> kept_;
};

template <typename Outcome, typename Make>
void PassingStore::Pass(const About& about, Make make, Finish<Outcome> done) {
  Choice choice = AtOnce(about);
  Store* const store = choice.store;
  if (store != nullptr && !choice.may_repeat) {
    if (choice.kept == nullptr) return make(store, std::move(done));
    if constexpr (!kOpens<Outcome>) {
      return make(store,
                  [kept = std::move(choice.kept), done = std::move(done)](
                      Outcome outcome) mutable { done(std::move(outcome)); });
    }
  }
  const auto call = std::make_shared<CallOf<Outcome, Make>>(
      this, about, std::move(make), std::move(done));
  if (store != nullptr) return call->PassTo(store, std::move(choice.kept));
  Next(call);
}

// --- Entries.

void PassingStore::Execute(absl::string_view name,
                           absl::Span<const Operation> operations,
                           absl::Span<Result> results, BatchProgress* progress,
                           Done done) {
  Pass<absl::Status>(
      {.name = name},
      [=](Store* store, Done finish) {
        store->Execute(name, operations, results, progress, std::move(finish));
      },
      std::move(done));
}

void PassingStore::ExecuteAtomic(absl::string_view name,
                                 absl::Span<const Operation> operations,
                                 absl::Span<Result> results, Done done) {
  Pass<absl::Status>(
      {.name = name},
      [=](Store* store, Done finish) {
        store->ExecuteAtomic(name, operations, results, std::move(finish));
      },
      std::move(done));
}

void PassingStore::GetSize(absl::string_view name,
                           DoneWith<NamespaceSize> done) {
  Pass<absl::StatusOr<NamespaceSize>>(
      {.name = name},
      [=](Store* store, DoneWith<NamespaceSize> finish) {
        store->GetSize(name, std::move(finish));
      },
      std::move(done));
}

void PassingStore::Scan(absl::string_view name, absl::string_view prefix,
                        int max_entries, int64_t max_bytes,
                        ScanPosition* position, bool* more, EntryVisitor visit,
                        Done done) {
  Pass<absl::Status>(
      {.name = name, .repeatable = !position->begun},
      [=, visit = std::move(visit)](Store* store, Done finish) {
        store->Scan(name, prefix, max_entries, max_bytes, position, more, visit,
                    std::move(finish));
      },
      std::move(done));
}

// --- Namespaces.

void PassingStore::CreateNamespace(absl::string_view name,
                                   NamespaceOptions options,
                                   DoneWith<NamespaceInfo> done) {
  Pass<absl::StatusOr<NamespaceInfo>>(
      {.name = name, .turns = About::Turns::kOneAtATime},
      [name, options = std::move(options)](Store* store,
                                           DoneWith<NamespaceInfo> finish) {
        store->CreateNamespace(name, options, std::move(finish));
      },
      std::move(done));
}

void PassingStore::GetNamespace(absl::string_view name, bool include_statistics,
                                DoneWith<NamespaceInfo> done) {
  Pass<absl::StatusOr<NamespaceInfo>>(
      {.name = name},
      [=](Store* store, DoneWith<NamespaceInfo> finish) {
        store->GetNamespace(name, include_statistics, std::move(finish));
      },
      std::move(done));
}

void PassingStore::ListNamespaces(ListQuery query,
                                  DoneWith<Page<NamespaceInfo>> done) {
  Pass<absl::StatusOr<Page<NamespaceInfo>>>(
      {},
      [query = std::move(query)](Store* store,
                                 DoneWith<Page<NamespaceInfo>> finish) {
        store->ListNamespaces(query, std::move(finish));
      },
      std::move(done));
}

void PassingStore::UpdateNamespace(absl::string_view name,
                                   OptionsChange<NamespaceOptions> change,
                                   DoneWith<NamespaceInfo> done) {
  Pass<absl::StatusOr<NamespaceInfo>>(
      {.name = name, .turns = About::Turns::kOneAtATime},
      [name, change = std::move(change)](Store* store,
                                         DoneWith<NamespaceInfo> finish) {
        store->UpdateNamespace(name, change, std::move(finish));
      },
      std::move(done));
}

void PassingStore::DeleteNamespace(absl::string_view name, Done done) {
  Pass<absl::Status>(
      {.name = name, .turns = About::Turns::kOneAtATime},
      [=](Store* store, Done finish) {
        store->DeleteNamespace(name, std::move(finish));
      },
      std::move(done));
}

void PassingStore::RotateNamespace(absl::string_view name,
                                   DoneWith<int64_t> done) {
  Pass<absl::StatusOr<int64_t>>(
      {.name = name, .repeatable = false},
      [=](Store* store, DoneWith<int64_t> finish) {
        store->RotateNamespace(name, std::move(finish));
      },
      std::move(done));
}

void PassingStore::GetDeaths(absl::string_view name, DeathsQuery query,
                             DoneWith<DeathsAhead> done) {
  Pass<absl::StatusOr<DeathsAhead>>(
      {.name = name},
      [=](Store* store, DoneWith<DeathsAhead> finish) {
        store->GetDeaths(name, query, std::move(finish));
      },
      std::move(done));
}

void PassingStore::GetHotKeys(absl::string_view name, size_t max_keys,
                              DoneWith<HotKeys> done) {
  Pass<absl::StatusOr<HotKeys>>(
      {.name = name},
      [=](Store* store, DoneWith<HotKeys> finish) {
        store->GetHotKeys(name, max_keys, std::move(finish));
      },
      std::move(done));
}

// --- Groups.

void PassingStore::CreateGroup(GroupName name, NewGroup group,
                               DoneWith<GroupInfo> done) {
  Pass<absl::StatusOr<GroupInfo>>(
      {.name = name.namespace_name, .turns = About::Turns::kOneAtATime},
      [name, group = std::move(group)](Store* store,
                                       DoneWith<GroupInfo> finish) {
        store->CreateGroup(name, group, std::move(finish));
      },
      std::move(done));
}

void PassingStore::GetGroup(GroupName name, bool include_statistics,
                            DoneWith<GroupInfo> done) {
  Pass<absl::StatusOr<GroupInfo>>(
      {.name = name.namespace_name},
      [=](Store* store, DoneWith<GroupInfo> finish) {
        store->GetGroup(name, include_statistics, std::move(finish));
      },
      std::move(done));
}

void PassingStore::ListGroups(absl::string_view namespace_name, ListQuery query,
                              DoneWith<Page<GroupInfo>> done) {
  Pass<absl::StatusOr<Page<GroupInfo>>>(
      {.name = namespace_name},
      [namespace_name, query = std::move(query)](
          Store* store, DoneWith<Page<GroupInfo>> finish) {
        store->ListGroups(namespace_name, query, std::move(finish));
      },
      std::move(done));
}

void PassingStore::UpdateGroup(GroupName name,
                               OptionsChange<GroupOptions> change,
                               DoneWith<GroupInfo> done) {
  Pass<absl::StatusOr<GroupInfo>>(
      {.name = name.namespace_name, .turns = About::Turns::kOneAtATime},
      [name, change = std::move(change)](Store* store,
                                         DoneWith<GroupInfo> finish) {
        store->UpdateGroup(name, change, std::move(finish));
      },
      std::move(done));
}

void PassingStore::DeleteGroup(GroupName name, Done done) {
  Pass<absl::Status>(
      {.name = name.namespace_name, .turns = About::Turns::kOneAtATime},
      [=](Store* store, Done finish) {
        store->DeleteGroup(name, std::move(finish));
      },
      std::move(done));
}

void PassingStore::ListMembers(GroupName name,
                               DoneWith<std::vector<MemberInfo>> done) {
  Pass<absl::StatusOr<std::vector<MemberInfo>>>(
      {.name = name.namespace_name},
      [=](Store* store, DoneWith<std::vector<MemberInfo>> finish) {
        store->ListMembers(name, std::move(finish));
      },
      std::move(done));
}

void PassingStore::SeekGroup(GroupName name, LogPosition position, bool drop,
                             DoneWith<SeekResult> done) {
  Pass<absl::StatusOr<SeekResult>>(
      {.name = name.namespace_name, .repeatable = false},
      [name, position = std::move(position), drop](
          Store* store, DoneWith<SeekResult> finish) {
        store->SeekGroup(name, position, drop, std::move(finish));
      },
      std::move(done));
}

void PassingStore::ListUnsettled(GroupName name, UnsettledQuery query,
                                 DoneWith<UnsettledPage> done) {
  Pass<absl::StatusOr<UnsettledPage>>(
      {.name = name.namespace_name},
      [name, query = std::move(query)](Store* store,
                                       DoneWith<UnsettledPage> finish) {
        store->ListUnsettled(name, query, std::move(finish));
      },
      std::move(done));
}

void PassingStore::Settle(GroupName name,
                          absl::Span<const Settlement> settlements,
                          absl::Span<SettleResult> results, Done done) {
  Pass<absl::Status>(
      {.name = name.namespace_name},
      [=](Store* store, Done finish) {
        store->Settle(name, settlements, results, std::move(finish));
      },
      std::move(done));
}

// --- Watches.

void PassingStore::OpenLogs(absl::Span<const std::string> names, LogStart start,
                            const LogPoints& points, Wake wake,
                            DoneWith<Readers> done) {
  Pass<absl::StatusOr<Readers>>(
      {.names = names},
      OpeningBy(std::move(wake),
                [=, points = &points](Store* store, const Wake& own_wake,
                                      DoneWith<Readers> finish) {
                  store->OpenLogs(names, start, *points, own_wake,
                                  std::move(finish));
                }),
      std::move(done));
}

void PassingStore::OpenChanges(absl::Span<const std::string> names,
                               LogStart start, const LogPoints& points,
                               Wake wake, DoneWith<Readers> done) {
  Pass<absl::StatusOr<Readers>>(
      {.names = names},
      OpeningBy(std::move(wake),
                [=, points = &points](Store* store, const Wake& own_wake,
                                      DoneWith<Readers> finish) {
                  store->OpenChanges(names, start, *points, own_wake,
                                     std::move(finish));
                }),
      std::move(done));
}

void PassingStore::JoinGroups(absl::Span<const std::string> names,
                              Membership membership, Wake wake,
                              DoneWith<Readers> done) {
  Pass<absl::StatusOr<Readers>>(
      {.names = names, .turns = About::Turns::kOneAtATime},
      OpeningBy(
          std::move(wake),
          [names, membership = std::move(membership)](
              Store* store, const Wake& own_wake, DoneWith<Readers> finish) {
            store->JoinGroups(names, membership, own_wake, std::move(finish));
          }),
      std::move(done));
}

void PassingStore::OpenExpiring(absl::Span<const std::string> names,
                                ExpiringOptions options, Wake wake,
                                DoneWith<Readers> done) {
  Pass<absl::StatusOr<Readers>>(
      {.names = names},
      OpeningBy(
          std::move(wake),
          [names, options = std::move(options)](
              Store* store, const Wake& own_wake, DoneWith<Readers> finish) {
            store->OpenExpiring(names, options, own_wake, std::move(finish));
          }),
      std::move(done));
}

}  // namespace timecache::server
